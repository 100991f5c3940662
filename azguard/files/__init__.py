"""Shares, directories and files: Azure Files over REST.

The service evaluates no conditions. What a lease protects (shares and files) is compared and written under one; what
has no lease (directories) can only be compared.

``shares``        shares, their snapshots, access policies, quota and size
``directories``   delete and rename directories
``files``         delete and rename files; list and delete temporary ones that a crash left
``entries``       directories and files as commands show and list them; headers, attributes, times, and metadata
``content``       the content of a file: read, ranges of it listed, written, cleared; and its length
``copies``        a file as a copy of another one, or of a blob
``replacing``     new content for a file, and its rename into place under the guard of the conditions
``temporary``     the temporary file that is filled first, the notes of it, and the requests that fill and rename a file
``trees``         files and folders below a directory, as trees of files see them
``handles``       who has what open over SMB, told with a refusal; closing it, and so breaking the lock of a file
``guarding``      lease, compare, write: the lease that guards a write, the record of its holder, and what a killed
                  one left
``writes``        one write under its guard, and its outcome where the answer is lost
``updates``       safe-update: content and metadata, and the lease around each write
"""
