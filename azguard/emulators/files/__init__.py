"""An emulator of Azure Files over REST: Werkzeug, SQLite and a plain folder.

``__main__``         the command line: ``python -m azguard.emulators.files``
``server``           the HTTP server
``signatures``       SharedKey and SAS
``request``          a request as it was read: content properties, metadata and ranges in its headers
``answers``          errors, times and XML as the service writes them
``shares``           operations on shares, their permissions for files, the service
``directories``      operations on directories, and listings
``file_operations``  operations on files, and renames
``put_range``        operations on ranges of a file
``copies``           copies, also from other servers, which go on after they are answered
``handles``          what SMB clients have open
``leases``           the states of a lease
``store``            shares and what is in them: found, read, changed; attributes, times and permissions
``database``         the tables behind it, and their records
``disk``             files and folders on the disk, and the room left
``samba``            a private Samba in front of the shares: programs, config, process
``smb_client``       the emulator's own way into Samba
``arbiter``          what each operation of REST opens over SMB, so that conflicts are real

Not guaranteed: power loss. What was acknowledged survives ``kill -9``, but SQLite does not wait for the disk.
Not emulated: NFS, symbolic and hard links, billing, throttling, Entra tokens, metrics, structured bodies.
"""
