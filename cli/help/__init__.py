"""What tells of azguard itself: help for people, and a description for programs.

``pages``         the text of ``azguard help TOPIC``, and that of a docstring
``layout``        the help page of a command, which ships with azguard, and how it stands on the screen
``description``   what a command takes, and its exit statuses, as data: ``azguard help --json``

``schemas``       the JSON Schemas of results and errors
"""
