"""Queues and their messages.

``queues``           queues: create, list, show, count, delete; their metadata and access policies
``messages``         put, receive, peek, update, delete and clear messages, and which receipt a write names
``message_results``  messages as commands show them, and what a message holds
``moving``           move messages from one queue to another
"""
