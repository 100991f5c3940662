"""The options of commands as dataclasses, what of them goes together, and what the core is asked for by them.

Of many commands:

``common``    the options that are declared once for many commands

By what a command is about:

``content``   of ``put``, ``get`` and ``copy``: headers, properties, which bytes, the source
``trees``     of trees of files, and the run that they describe
``messages``  of messages, and which receipt is meant
``leases``    of leases and locks: how one is acquired, held and broken, and of what runs a command under one
"""
