"""Every interleaving of the real code, up to a bound: ``python -m tests.explorer``.

- ``player`` runs one process of azguard's core, a step at a time: each request, pause and event is handed over. What it
  does next depends on what it was told alone, so each history is played once, and remembered.
- ``wire`` is the network under the SDK's transport: a request comes out, and an answer goes in.
- ``service``, and ``blob_service``, ``table_service``, ``queue_service`` and ``file_service``, are the services in
  memory, as values; ``foreign`` is what programs do to them that are not azguard.
- ``names`` renames versions, so that a process cannot tell apart what differs in names alone.
- ``rests`` digests what a process knows while it rests, so that histories which it has forgotten are not told apart.
- ``faults`` says what can happen to a request.
- ``scenario`` is which processes run, and which rules must hold.
- ``world`` is one state of everything: services, processes, what is under way; and the steps that lead out of it.
- ``doubts`` judges whether a process that does not know how its write ended could have known it.
- ``search`` visits all states up to a bound, or walks at random beyond it, and tells violations as stories.
- ``updates``, ``entities``, ``files``, ``writes``, ``fenced``, ``trees``, ``leases``, ``locks``, ``holds`` and
  ``workers`` say which processes run, and what must be true; ``catalogue`` has all scenarios, and ``pages`` writes what
  they found into docs/guarantees.md.
"""
