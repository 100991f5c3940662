"""The unfinished line that a completer is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TypedLine:
    """The line up to the cursor, as far as a completer needs it."""

    #: The values of the options that were typed, by name.
    options: Mapping[str, Any]
    environ: Mapping[str, str]
    #: The words of the command, and its arguments.
    path: Sequence[str] = ()
    arguments: Sequence[str] = ()
    #: The root of all commands.
    root: Any = None
