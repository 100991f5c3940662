"""``azguard blob``.

``content``     get, put
``listing``     show, exists, list, delete, wait
``copies``      copy, abort-copy, snapshot, restore, undelete
``pieces``      append, page, block
``properties``  metadata, tags, set-properties, tier
"""
