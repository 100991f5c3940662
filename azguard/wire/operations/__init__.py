"""One row for each operation of a service, in the order of the REST reference.

``blobs``       blobs of all types
``containers``  containers, and the account as a whole
``tables``      tables, entities and transactions
``queues``      queues and messages
``shares``      shares, directories and files
"""
