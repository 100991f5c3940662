"""``azguard queue``.

``queues``  create, show, exists, list, delete, move, poison, metadata, acl
``work``    work
"""
