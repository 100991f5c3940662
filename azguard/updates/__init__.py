"""Read, change, write back: again on conflict, and applied exactly once. Knows no service.

``recording``    the entry: one update with what it leaves on this machine
``editing``      a person in an editor: what was typed is merged, written, and never lost
``update``       apply one plan exactly once
``plan``         what goes in and what comes out
``loop``         read, settle, change, write
``doubt``        the outcome of an attempt whose response was lost
``leases``       the lease that a slow update takes
``result``       what an update reports
``status``       the outcome of an earlier update
``op_ids``       the identity of an update
``applied``      what an earlier run of the same key did
``run``          one update under way
``resource``     what the loop needs of a resource
``compared``     metadata of which the service compares no version
``journal``      what is under way, for the next run of the same op
``local_queue``  writers on one machine, first come, first served
``unsaved``      content that could not be written, kept in a file
"""
