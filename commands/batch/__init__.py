"""``azguard batch``: many command lines in one process, each in a thread, as if each were a process of its own.

``run``    the command, and what it shows
``lines``  one line
"""
