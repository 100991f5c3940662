"""``azguard blob``.

``content``     get, put
``listing``     show, exists, list, delete, wait
``copies``      copy, abort-copy, snapshot, restore, undelete
``append``      append, append seal
``blocks``      block
``pages``       page
``properties``  metadata, tags, set-properties, tier
``retention``   legal-hold, immutability
"""
