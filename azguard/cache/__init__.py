"""What each scope has read, and which leases it holds.

``reads``        what a scope knows of a resource, as one value, and what a run records of it
``lookup``       what was read of an address, in whichever account
``etag_cache``   the cache as one scope sees it
``statements``   its SQL
``schema``       its tables, and their version
``records``      its values, their rows, and their form in an export
``remarks``      what else is kept of a version, behind the command that read it
``scratch``      rows of one process, more than fit the memory
``database``     the statements, safe under any number of processes
``file``         find, check and create the file; set a damaged one aside
``scope``        whose reads guard whose writes
``copies``       which file a copy is, whatever its name
``kept_files``   what is kept in files beside that: listed, and deleted when it is not in use
"""
