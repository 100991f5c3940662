"""Queues and their messages.

``queues``           create, list, show and delete queues
``metadata``         the metadata of a queue, which have no version in the service: azguard makes one and compares
``updating``         the metadata of a queue as the update loop sees them
``acl``              the access policies of a queue, likewise
``existing``         what a create finds
``contents``         how many messages a queue has
``messages``         put, receive, peek, update, delete and clear messages
``moving``           move messages from one queue to another
``lifetimes``        how long a moved message is kept
``message_results``  messages as commands show them
``receipts``         which receipt a write names
``encodings``        what a message holds
``bodies``           the XML that is sent
"""
