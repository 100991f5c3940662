"""Run a command of the user that edits a file: the content in a private copy, read back when the command has ended.

The copy stands where the command has ``{}``: as an argument of its own, or behind the ``=`` of an option such as
``--file={}``. Everything else is left alone, so that ``jq '.labels = {}'`` means what it says, and so that no name of a
file gets into a line of shell. The command's standard input is empty, and its output is not the content.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from azguard.errors import GaveUp, TransformFailed
from azguard.processes import filter_command
from azguard.processes.scratch import ScratchFile
from azguard.processes.signals import hold_back_interruptions

#: What stands for the file.
PLACE = "{}"
_OPTION = re.compile(r"(--[A-Za-z][A-Za-z0-9_.-]*=)\{\}")


@dataclass(frozen=True)
class Edited:
    """What a command left."""

    content: bytes
    #: Whether it wrote the file at all.
    is_touched: bool


def names_file(command: Sequence[str]) -> bool:
    """Return whether a command edits a file in place, instead of printing the new content."""
    return any(word == PLACE or _OPTION.fullmatch(word) for word in command[1:])


def run(
    command: Sequence[str],
    content: bytes,
    name: str,
    *,
    environ: Mapping[str, str],
    deadline: float | None,
    clock: Callable[[], float],
    relay: Callable[[bytes], None],
) -> Edited:
    """Return what the command leaves in the private copy, whose file is called as the end of ``name``.

    What it prints is passed on to ``relay``. ``deadline`` is in seconds of ``clock``, or None.

    Not guaranteed: if azguard itself is killed, the copy stays in the temporary folder, where only its owner reads it.

    Raises:
        TransformFailed: it cannot be started, fails or is ended by a signal; or the file is gone or no regular file.
        GaveUp: the deadline passed; it was stopped.
    """
    scratch = None
    try:
        with hold_back_interruptions():
            scratch = ScratchFile.make(name, content)
        path, before = str(scratch.path), scratch.stamp()
        words = [command[0], *(_put_in(word, path) for word in command[1:])]
        try:
            filter_command.run(words, b"", environ=environ, deadline=deadline, clock=clock, relay=relay)
        except (TransformFailed, GaveUp) as error:
            # A person knows what was typed, and not where the copy was.
            raise error.but(message=error.message.replace(path, PLACE)) from None
        return Edited(scratch.read(filter_command.MOST_BYTES), scratch.stamp() != before)
    finally:
        with hold_back_interruptions():
            if scratch is not None:
                scratch.remove()


def _put_in(word: str, path: str) -> str:
    if word == PLACE:
        return path
    found = _OPTION.fullmatch(word)
    return word if found is None else found[1] + path
