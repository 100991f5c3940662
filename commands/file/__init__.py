"""``azguard file``.

``content``  get, put, range
``tree``     show, exists, list, delete, prune, resize, properties, permission, metadata
``copies``   copy, abort-copy, rename
``handles``  handle, lock: which programs have a file open through SMB
"""
