"""``azguard entity``.

``reads``   get, query; and how entities are printed
``writes``  insert, replace, merge, upsert, delete, transaction
"""
