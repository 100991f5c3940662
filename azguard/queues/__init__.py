"""Queues and their messages.

``queues``          queues: described, counted, deleted
``messages``        put, receive, peek, update, delete and clear messages, and which receipt a write names
``message_format``  what a message holds, text or base64; messages as the service tells them and as commands show them
``moving``          move messages from one queue to another
"""
