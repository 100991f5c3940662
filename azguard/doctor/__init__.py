"""``azguard doctor``: does what azguard promises hold on this machine, with this login, on this account?

``checks``        a check is a row, and one engine runs them; what they found
``tap``           a client that counts, loses and doubles requests
``stage``         what the checks are done to, and how it is removed
``machine``       the machine: cache, locks, processes, clock, network
``login``         who asks, by what, until when
``answers``       do answers belong to our requests, and is their time right?
``account_kind``  the kind of account, and what it means
``plays``         how each operation is tried
``promises``      each operation under each condition
``settling``      each way of settling doubt, with answers that are lost and requests that are sent twice
``rights``        what each feature needs
``writers``       the writers beside us
``run``           all checks in their order, what they cost, the diagnosis
"""
