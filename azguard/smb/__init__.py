"""Locks of the file system's half of Azure Files: a file that is opened through SMB keeps others out while it is open.

The lock is the open handle. It lasts as long as its connection: when the connection ends, the server closes the handle
at once, and the next one may open the file. azguard and the process that guards the command both keep the connection
open. So it ends after the command has ended, even if azguard is killed.

``file_lock``      which file to lock, on which server, and how; the locks around a command
``file_lock_run``  acquire the lock of one run, watch its handle, release it
``session``        a connection to one share, and what the server's answers mean
"""
