"""Queues and their messages.

``queues``: create, list, show and delete them. ``metadata`` and ``acl``: what belongs to a queue and has no version in
the service, so that azguard makes one and compares. ``existing``: what a create finds. ``contents``: how many messages
a queue has. ``bodies``: the XML that is sent.
"""
