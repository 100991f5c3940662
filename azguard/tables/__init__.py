"""Tables and entities.

``tables``        tables: create, list, show, count, delete; their access policies
``entities``      requests about entities; entities read, one or those that a filter finds
``writes``        writes of single entities, and their outcome where the answer is lost
``transactions``  many writes of one partition, all or none, from JSON lines
``updates``       safe-update: an entity, alone or with a ledger that has a row for each update; edits of properties
``update_many``   one update of every entity that matches
``entity_json``   entities as JSON text, printed and given
``edm``           the types of properties, properties as typed words, and the limits of an entity
"""
