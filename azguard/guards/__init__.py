"""What a request may send: which condition the service honours where, and what guards a write.

``resolve``     the conditions as requested → the headers of this operation, or a refusal
``requested``   the conditions that a caller names, and which of them an operation would ignore
``versions``    ETags; the versions that a scope has seen, and which of them guards a write
``values``      the values of other conditions and lease ids as typed → as sent
``fences``      the fence of a lock's holder, and the tag that carries it
"""
