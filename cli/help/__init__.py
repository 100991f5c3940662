"""What tells of azguard itself: help for people, and a description for programs.

``pages``         the help page of a command, from its docstring and its rows; the pages of ``azguard help TOPIC``
``layout``        how a page stands on the screen, and the pages that ship with azguard
``facts``         what follows from a command's rows: its exit statuses, and answers of a line each
``description``   what a command takes, as data: ``azguard help --json``

``schemas``       the JSON Schemas of results and errors
"""
