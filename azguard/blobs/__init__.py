"""Blobs and containers.

``content``        bytes into blobs and out of them: puts, gets, blocks, appends, pages
``listing``        blobs as commands show them: one, or those of a container; and what is kept of one, found
``headers``        the content headers, the metadata and the tier of a blob, and writes that read first what is to stay
``tags``           the index tags of a blob: read, replaced, and as the update loop sees them
``retention``      what keeps a blob from being changed and deleted: legal holds and policies
``waiting``        waiting until a blob is there, gone, changed or not leased
``deletes``        deleting a blob
``copies``         a blob as a copy of another: begun, waited for, stopped
``snapshots``      snapshots of a blob, those that a write makes of what it replaces, and their return: an undelete, and
                   the preview of a restore
``refusals``       what can refuse a read or a write: another version or type, what is there, the fence of a lock
``updates``        content and metadata of a blob as the update loop sees them; text added to an append blob
``trees``          blobs under a prefix as trees of files see them
``containers``     containers: described, deleted; their access policies
"""
