"""Tables and entities.

``calls``                requests to the Table service
``reads``                entities read, one or many
``entity_input``         an entity to write, as JSON that was printed before, and the version it was read as
``write``                one write of an entity as a value
``writes``               writes of single entities
``existing``             what a create finds where an entity or a table is already
``write_outcome``        the outcome of a write whose response was lost
``transactions``         many writes of one partition, all or none
``transaction_outcome``  what is known of one whose response was lost
``transaction_lines``    the JSON lines of a transaction
``updating``             an entity as the update loop sees it
``ledger``               the same, with a row for each update
``update_many``          one update of every entity that matches
``update_jobs``          such an update as a job of a pool
``entity_json``          entities as JSON text
``entity_edits``         the built-in edits on typed properties
``typed_values``         properties as typed words
``edm``                  the types of properties
``filters``              filters with bound values
``limits``               the service's limits
``tables``               tables
``contents``             how many entities are in a table
``acl``                  access policies
"""
