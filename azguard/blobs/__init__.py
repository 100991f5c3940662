"""Blobs and containers.

``content``         bytes into blobs and out of them: puts, gets, blocks, appends, pages
``properties``      one blob's properties and tags, as the SDK has them
``listing``         blobs as commands show them: one, or those of a container; and their names, for trees
``metadata``        the metadata of a blob and of a container
``headers``         the content headers of a blob, and writes that read first what is to stay
``tags``            the index tags of a blob
``waiting``         waiting until a blob is there, gone, changed or not leased
``deletes``         deleting a blob
``copies``          a blob as a copy of another: begun, waited for, stopped
``copy_sources``    the source of a copy, of an append or of pages
``snapshots``       snapshots of a blob, and those that a write makes of what it replaces
``restores``        what is kept of a blob: found, brought back, compared with what is there
``write_checks``    what can refuse a write: a blob of another type, or one that is there already
``fenced_writes``   writes under the fence of a lock
``update_content``  the content of a blob as the update loop sees it
``update_parts``    metadata and tags of a blob, and the metadata of a container, as the update loop sees them
``trees``           blobs under a prefix as trees of files see them
``containers``      containers
``container_acl``   the access policies of a container
"""
