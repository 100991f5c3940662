"""An emulator of Azure Files over REST: Werkzeug, SQLite and a plain folder.

``__main__``     the command line: ``python -m azguard.emulators.files``
``server``       the HTTP server
``routes``       which request is which operation, and what a SAS must allow for it
``signatures``   SharedKey and SAS
``wire``         a request as it was read, and its answer
``answers``      errors, times and XML as the service writes them
``errors``       the error codes of the service
``store``        shares and what is in them: found, read, changed
``room``         how much a share may hold still
``database``     the tables behind it
``disk``         files and folders on the disk
``smb``          the shares over SMB: what follows, put together
``samba``        a private Samba in front of the shares
``samba_programs``  its programs and its config
``smb_client``   the emulator's own way into it
``arbiter``      what each operation of REST opens over SMB, so that conflicts are real
``open_files``   what SMB clients have open
``records``      what is kept of a share, a directory, a file
``leases``       the states of a lease
``headers``      properties, metadata and ranges in headers
``foreign``      the source of a copy on another server
``pending``      copies from other servers, which go on after they are answered
``shares`` ``directories`` ``files`` ``ranges`` ``renames`` ``copies`` ``listings`` ``permissions`` ``handles``
                 the operations

Not guaranteed: power loss. What was acknowledged survives ``kill -9``, but SQLite does not wait for the disk.
Not emulated: NFS, symbolic and hard links, billing, throttling, Entra tokens, metrics, structured bodies.
"""
