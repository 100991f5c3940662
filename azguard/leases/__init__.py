"""Leases on every kind of resource that has them.

``actions``         acquire, renew, change, release, break; and their outcome after a lost answer
``state``           the kinds of resources that have leases; the state of a lease, and other programs' marks of a holder
``shown``           a lease, its holder and its age, as commands show it; and the wait until one is free
``conventions``     how other programs say who holds what: a function for each; what lists show of it
``holdings``        who holds what in an account, and what changes
``owners``          the record that a holder leaves, read
``owner_records``   the record that a holder leaves, written under the lease
``process_leases``  the notes of leases that end with a process, by which the next one ends what a kill left
``recorded``        the records of leases in the cache of a scope, by which one that a crash left is found; acquire,
                    renew, change, release with the record
``own``             the leases that this machine remembers: which are still held, and their release
``guard``           a lease held between a comparison and a write
``breaking``        a break as an operator does it
``ci_runs``         ask whether the CI run in a record is over
"""
