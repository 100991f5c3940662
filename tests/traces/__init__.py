"""What real processes did, step by step, held against the rules of the protocol and against the service's own log.

``records``   a step of a trace, and an answer of the service, as the rules see them
``rules``     the checker: the rules, and the replay of traces by them
``linear``    whether a history of one key is that of a register, or of a counter
``scenario``  a small race with faults and a run of locks, checked: ``python -m tests.traces``
"""
