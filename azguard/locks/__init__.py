"""``lock run``: leases around a command, so that it runs on one machine at a time.

azguard itself acquires and renews the leases. The command runs under a second, small process, the guardian, which ends
it when azguard says so, when azguard is gone, or when the last renewal it heard of is about to run out.

``run``          acquire, run, renew, release
``settings``     which lock to acquire, and how
``acquire``      acquire one lock, and wait for it
``waiting``      tell people who holds the lock that is waited for
``renewal``      renew a lease until told to stop
``hold``         one lock around work in this process
``environment``  the locks that the lock run around us holds
``lock_blobs``   the blobs that locks are
``listing``      the locks of a container
``heartbeat``    a file that says until when the lock is held
"""
