"""One row for each operation of a service, in the order of the REST reference.

``accounts``    the account as a whole
``blobs``       blobs of all types
``containers``  containers
``tables``      tables, entities and transactions
``queues``      queues and messages
``shares``      shares, directories and files
"""
