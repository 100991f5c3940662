"""``azguard doctor``: does what azguard promises hold on this machine, with this login, on this account?

``stage``     a check is a row; what all checks are done to, and how it is removed
``machine``   the machine: cache, locks, processes, clock, network
``account``   who asks, the kind of account, its answers, what each feature needs, the writers beside us
``plays``     how each operation is tried; a client that counts, loses and doubles requests
``promises``  each operation under each condition
``settling``  each way of settling doubt, with answers that are lost and requests that are sent twice
``run``       all checks in their order, what they cost, the diagnosis
"""
