"""``azguard file``.

``content``  get, put, range
``tree``     show, exists, list, delete, prune, copy, abort-copy, rename, resize, set-properties, metadata
``handles``  handle, lock: which programs have a file open through SMB
"""
