"""From the words of a command line to the call of a command.

``command_line``  the words as they were typed; the unfinished line that a completer is given
``command_spec``  what a command says of itself: its operation, its options as dataclasses; the keys of a run's facts
``groups``        the Typer classes that commands are made of
"""
