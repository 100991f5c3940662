"""From the words of a command line to the call of a command.

``rows``          what a command takes, as rows: options and arguments, each declared once
``tree``          the nouns and their commands; a command's module is imported when it is asked for
``parser``        Typer, which reads the words of a line; the one module that knows it
``command_line``  the words as they were typed, for what Typer cannot tell
``partial_line``  a line that is not whole yet, for completion and for help
"""
