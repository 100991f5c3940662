"""One request and its outcome, for every service.

``calls``           send once and classify: committed, refused, not sent or in doubt; read, and list, until
                    answered
``settle``          send a write until its outcome is known
``commits``         how a write ended, and that no interruption denies what is committed
``results``         what commands show of what was read or written
``lineage``         the last writes of a resource and the keys applied to it, kept in its metadata
``service_codes``   what the codes of the service mean: leases, conflicts, states, limits; when it refused
``service_errors``  what a refusal says → one of our errors
``denials``         why the service refused these credentials
``deadline``        the time that is left, and looking again until then
``trace``           the steps of the protocol, for people and tests to check
"""
