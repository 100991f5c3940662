"""Locks of the file system's half of Azure Files: a file that is opened through SMB keeps others out while it is open.

The lock is the open handle. It lasts as long as its connection: when the connection ends, the server closes the handle
at once, and the next one may open the file. azguard and the process that guards the command both keep the connection
open. So it ends after the command has ended, even if azguard is killed.

``run``          run a command while a file is locked
``file_lock``    which file to lock, how, and for how long
``file_locks``   acquire the lock of one run, keep it and release it
``watcher``      find out whether the handle is still open
``environment``  the files that are locked around us
``holders``      who has files open, and how an operator ends that
``place``        where the SMB server is, and as whom to ask it
``share_protocol``  why a share is not there through SMB
``session``      a connection to one share
``refusals``     what the server's answers mean
"""
