"""From the words of a command line to the call of a command.

``rows``          what a command takes, as rows: options and arguments, each declared once
``tree``          the nouns and their commands, which are imported when they are asked for; lines that are not whole yet
``parser``        Typer, which reads the words of a line; the one module that knows it
``command_line``  the words as they were typed, for what Typer cannot tell
"""
