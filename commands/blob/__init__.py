"""``azguard blob``.

``content``     get, put, delete
``listing``     show, exists, list, wait
``copies``      copy, abort-copy, snapshot, restore, undelete
``append``      append, append seal
``blocks``      block
``pages``       page
``properties``  metadata, tags, set-properties, tier, legal-hold, immutability
"""
