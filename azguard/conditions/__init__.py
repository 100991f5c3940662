"""What a request may send: which condition the service honours where, and what guards a write.

``operations``   one row for each operation of the four services
``resolve``      the conditions as requested → the headers of this operation, or a refusal
``requested``    the conditions that a caller names, as text
``refusals``     conditions that an operation would ignore
``seen``         the versions of a resource that a scope has seen
``remembered``   the version that guards, of those a scope has seen
``values``       the values of conditions as typed → as sent
``etags``        ETags as typed → as sent
``lease_ids``    lease ids as typed → as sent
``fences``       the fence of a lock's holder, and the tag that carries it
"""
