"""How a command line is read and answered.

The way of one run:

``app``         the front door: which commands there are, and how a run ends
``registry``    the commands by name: their modules and their summaries
``nouns``       commands that several nouns have alike
``parts``       metadata, tags and policies: the commands, and the files
``rules``       which options go together: rows, and the one function that checks them
``context``     what a command is handed: the account, the cache, the conditions, the output
``errors``      every exception as an exit status and words, the one place
``signals``     what a signal does to a run

Rooms:

``parsing``     from the words of a command line to the call of a command
``options``     the options of commands, and what the core is asked for by them
``input``       what a command line names: values, accounts, addresses, files and streams
``output``      what a command shows
``words``       what happened, and what to type next
``help``        what tells of azguard itself: help for people, and a description for programs

Completion and redaction:

``completion``  what a shell is answered, and the scripts that ask
``completers``  what may stand in the place of a value
``redaction``   a text without credentials
"""
