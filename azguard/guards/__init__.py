"""What a request may send: which condition the service honours where, and what guards a write.

``resolve``    the conditions as requested → the headers of this operation, or a refusal
``requested``  the conditions that a caller names: which of them an operation would ignore, and their values as sent
``versions``   ETags; the versions that a scope has seen, and which of them guards a write
``fences``     the fence of a lock's holder, and the tag that carries it
"""
