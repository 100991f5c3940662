"""The options of commands as dataclasses, what of them goes together, and what the core is asked for by them.

Of many commands:

``common``          the options that are declared once for many commands

By what a command is about:

``content_headers`` of ``put`` and ``set-properties``: content, headers, which bytes
``copies``          of what names the source of a copy
``trees``           of trees of files, and the run that they describe
``messages``        of messages, and which receipt is meant
``leases``          of leases, and how one is broken
``locks``           of a lock that is held, and of what runs a command under one
"""
