"""Read, change, write back: again on conflict, and applied exactly once. Knows no service.

``recording``    the entry: one update, what it leaves on this machine, and what it reports
``editing``      a person in an editor: what was typed is merged, written, and never lost
``update``       read, settle, change, write: apply one plan exactly once
``doubt``        the outcome of an attempt whose response was lost, and of an earlier update
``leases``       the lease that a slow update takes
``run``          one update under way
``resource``     what goes in, under which id, and what comes out; what the loop needs of a resource, and what its
                 version tells of an earlier update
``compared``     metadata of which the service compares no version
``local_runs``   the write that a killed run left in doubt, and the queue of the writers on this machine
"""
