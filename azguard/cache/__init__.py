"""What each scope has read, and which leases it holds.

``reads``        what a scope knows of a resource, as one value, and what a run records of it
``etag_cache``   the cache as one scope sees it
``records``      its values, their rows, their form in an export, and what stands behind a recorded command
``database``     its SQL, safe under any number of processes; rows of one process, more than fit the memory
``file``         the file and its tables: found, checked, created; a damaged one is set aside
``scope``        whose reads guard whose writes, and which CI job a record is of
``copies``       which file a copy is, under any name
``kept_files``   what is kept in files beside that: listed, and deleted when it is not in use
"""
