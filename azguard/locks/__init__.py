"""``lock run`` and ``lock hold``: leases around a command, so that it runs on one machine at a time.

azguard itself acquires and renews the leases. The command runs under a second, small process, the guardian, which ends
it when azguard says so, when azguard is gone, or when the last renewal it heard of is about to run out.

``run``                acquire, run, renew, release; and the same around work in this process
``guarded_run``        a command under locks of any kind, and the heartbeat file
``background_holder``  ``lock hold``: a process in the background renews the lease
``hold_records``       the records on this machine of what ``lock hold`` took
``job_locks``          the locks of this job: find, check and release them
``steps``              a lock that is held for the later steps of a job, with a process or, sticky, without; its release
``acquire``            acquire one lock: wait for it, and tell people who holds it
``slot_leases``        ask for the leases of a lock's slots, and write the holder's record
``held_lock``          a lock that is held: renew its lease, release it, end one whose time is over
``queue``              the queue of a lock, as one listing shows it
``waiter``             our place in it, and the ticket that keeps it
``readers``            readers beside each other, and the writer that waits for their end
``lock_blobs``         which lock to acquire, and how; the blobs that locks are, and what is written on them
``metrics``            waits, holds and losses, in a file that a scraper reads
``log``                the history of a lock: who held it, how that ended, who broke it
``shown``              what ``lock show``, ``hold``, ``check`` and ``release`` print
``environment``        the variables that tell a command, or later steps, of locks
``terraform``          the lock of a Terraform state around a run, and the notes of runs
"""
