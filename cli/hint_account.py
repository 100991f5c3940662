"""The account, and the scope, in the command lines of a hint: what was typed of them counts there too.

Without it a line that is typed as it was printed would be about another account, or about none.
"""

import re
from collections.abc import Sequence

from azguard.cli.parsing import command_line
from azguard.cli.registry import COMMANDS

_LOCAL = ("profile", "emulator", "demo", "help", "version", "completion")
_ALONE = ("safe-update", "edit", "status")
_SCOPED = "cache"
_NOUNS = "|".join(name for name in COMMANDS if name not in (*_LOCAL, *_ALONE))
_GROUPS = "metadata|acl|tags|page|block|handle|range|poison|(?<=file )lock"
# What follows where a command is told of, and not to be typed.
_PROSE = r" --help| (?:sets|keeps|writes|makes|with|copies)\b"
# Atomic: where a command is left alone, so is the group that it is in.
_COMMAND = re.compile(
    rf"\bazguard (?>{'|'.join(_ALONE)}|(?P<noun>{_NOUNS}) (?>(?:{_GROUPS}) [a-z][a-z-]*|append seal|[a-z][a-z-]*))"
    rf"(?![\w-]|{_PROSE})"
)


def keep(hint: str | None, argv: Sequence[str]) -> str | None:
    """Return a hint whose command lines have the options of the account and the scope that were typed."""
    if hint is None:
        return None
    own, _ = command_line.split(argv)
    options, scope = (command_line.keep(own, names) for names in (command_line.ACCOUNT, ("--scope",)))
    return "\n".join(_add(line, options, scope) for line in hint.split("\n")) if options else hint


def _add(line: str, options: list[str], scope: list[str]) -> str:
    """Return a line with the options, unless it has some of them already."""
    names = [word.partition("=")[0] for word in options if word.startswith("--")]
    if any(name in re.split(r"[\s=]", line) for name in names):
        return line

    def insert(found: re.Match[str]) -> str:
        added = scope if found["noun"] == _SCOPED else options
        return f"{found[0]} {command_line.show(added)}" if added else found[0]

    return _COMMAND.sub(insert, line)
