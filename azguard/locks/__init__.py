"""``lock run`` and ``lock hold``: leases around a command, so that it runs on one machine at a time.

azguard itself acquires and renews the leases. The command runs under a second, small process, the guardian, which ends
it when azguard says so, when azguard is gone, or when the last renewal it heard of is about to run out.

``run``          acquire, run, renew, release
``guarded_run``  a command under locks of any kind
``settings``     which lock to acquire, and how
``acquire``      acquire one lock, and wait for it
``slot_leases``  ask for the leases of a lock, and write the holder's record
``request_time``  how long the requests of an acquisition may take
``queue``        the queue of a lock, as one listing shows it
``place``        our place in it: how often we look, and whether we may ask
``ticket``       our ticket in it
``readers``      readers beside each other, and no writer beside them
``draining``     a writer's wait for the readers inside
``waiting``      tell people who holds the lock that is waited for
``renewal``      renew a lease until told to stop
``hold``         one lock around work in this process
``holder``       one lock beyond one command, in a process in the background
``holds``        the records on this machine of what is held so
``known``        the locks that this job holds, and their release
``checking``     whether this job still holds a lock
``sticky``       one lock without a process, until a time that stands on it
``overdue``      take a lock whose time is over
``log``          the history of a lock: the blob beside it
``log_lines``    its lines: who held the lock, how that ended, who broke it
``own_lease``    release a lease that is ours, and no other's
``environment``  the locks that are held around us
``lock_blobs``   the blobs that locks are
``listing``      the locks of a container
``terraform``    the lock of a Terraform state around a run
``run_notes``    notes about runs, which tell the next one whether they are over
``heartbeat``    a file that says until when the lock is held
"""
