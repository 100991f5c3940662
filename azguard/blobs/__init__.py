"""Blobs and containers.

``content``        bytes into blobs and out of them: puts, gets, blocks, appends, pages
``listing``        blobs as commands show them: one, or those of a container; and their names, for trees
``metadata``       the metadata of a blob and of a container: read and replaced
``metadata_updates``  the same as the update loop sees it
``headers``        the content headers of a blob, and writes that read first what is to stay
``tags``           the index tags of a blob: read, replaced, and as the update loop sees them
``waiting``        waiting until a blob is there, gone, changed or not leased
``deletes``        deleting a blob
``copies``         a blob as a copy of another: begun, waited for, stopped
``copy_sources``   the source of a copy, of an append or of pages
``snapshots``      snapshots of a blob, and those that a write makes of what it replaces
``restores``       what is kept of a blob: found, brought back, compared with what is there
``refusals``       what can refuse a read or a write: another version or type, what is there, the fence of a lock
``updates``        the content of a blob as the update loop sees it; text that is added to an append blob
``trees``          blobs under a prefix as trees of files see them
``containers``     containers: shown, listed, deleted; their access policies
"""
