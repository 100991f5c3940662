"""The command line as it was typed: the one reader of its words, for what Typer cannot tell.

An error may come before Typer has read the line to its end, and a hint shows the line again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

from azguard import naming
from azguard.cli.options import common
from azguard.cli.parsing.rows import Row
from azguard.documents import controls
from azguard.errors import UsageError

#: The options that say which version a command is about.
GUARDS = ("--etag", "--if-match", "--if-none-match", "--if-modified-since", "--if-unmodified-since", "--if-tags")
_LAST_OF_FOUR_DIGITS = 0xFFFF
# Options whose text is content.
_OF_BYTES = ("append", "append_line", "create")
_STDIN = (["-f", "-"], ["--file", "-"], ["-f-"], ["--file=-"])
_OTHERS_WITH_VALUE = ("-f", "--file", "--content", "--lease-id", "--source-lease-id", "--resume")
_SHARED = (*common.ACCOUNT_ROWS, *common.SECRET_ROWS, *common.GENERAL_ROWS)
_SHARED_WITH_VALUE = (name for row in _SHARED if not row.is_flag for name in row.flags)
_WITH_VALUE = frozenset((*GUARDS, *_OTHERS_WITH_VALUE, *_SHARED_WITH_VALUE))
_SECRETS = frozenset(row.flags[0] for row in common.SECRET_ROWS)


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return azguard's own words, and the rest, which begins with ``--`` if there is a rest."""
    end = argv.index("--") if "--" in argv else len(argv)
    return list(argv[:end]), list(argv[end:])


def require_divider(command: Sequence[str], argv: Sequence[str]) -> None:
    """Refuse a command to run that does not stand after ``--``.

    Raises:
        UsageError: the hint is the line to type.
    """
    own, rest = split(argv)
    before = list(command[: len(command) - len(rest[1:])])
    if not before and list(command) == rest[1:]:
        return
    words = []
    for word in reversed(own):
        if before and word == before[-1]:
            before.pop()
        else:
            words.append(word)
    raise UsageError("a command to run stands after --", hint=show(["azguard", *reversed(words), "--", *command]))


def find_value(argv: Sequence[str], option: str) -> str | None:
    """Return the value that was typed for an option, the last if there are several; None if it was not typed."""
    own, _ = split(argv)
    found = find_values(own, (option,))
    return found[-1] if found else None


def find_values(words: Iterable[str], options: Collection[str]) -> list[str]:
    """Return the values of some options, each as ``--option value`` or ``--option=value``."""
    found = []
    for word, after in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name in options:
            found.append(value if equals else after)
    return found


def wants_json(argv: Sequence[str]) -> bool:
    """Return whether ``-o json`` was typed."""
    own, _ = split(argv)
    return "-ojson" in own or "json" in (find_value(own, "-o"), find_value(own, "--output"))


def fill_in(args: list[str], option: str, bare: str, accepts: Callable[[str], bool]) -> list[str]:
    """Write ``--wait`` as ``--wait=60s`` where no value follows: the end, another option, or a word that is none."""
    own, rest = split(args)
    if option not in own:
        return args
    position = own.index(option)
    after = own[position + 1] if position + 1 < len(own) else "--"
    # An empty word is a value: an unset shell variable looks like it.
    if after.startswith("-") or (after and not accepts(after)):
        return [*own[:position], f"{option}={bare}", *own[position + 1 :], *rest]
    return args


def refuse_repeated(typed: Iterable[Any]) -> None:
    """Refuse an option that takes one value and was given several times: the last one would win unnoticed."""
    seen = set()
    for param in typed:
        if param.param_type_name != "option" or param.multiple or param.is_flag:
            continue
        if param.name in seen:
            raise UsageError(
                f"{'/'.join(param.opts)} is given twice, and takes one value", hint="leave one of them out"
            )
        seen.add(param.name)


def drop(argv: Sequence[str], options: Collection[str]) -> list[str]:
    """Return the words without some options and their values, and without ``-f -``, which cannot be read again."""
    return [word for group in _group(argv) if _name(group) not in options and group not in _STDIN for word in group]


def keep(argv: Sequence[str], options: Collection[str]) -> list[str]:
    """Return the words of some options and their values; of one that was typed before the command too, the last."""
    found = {_name(group): group for group in _group(argv) if _name(group) in options}
    return [word for group in found.values() for word in group]


def keep_account(argv: Sequence[str]) -> list[str]:
    """Return the words of the options of the account, and of the scope."""
    own, _ = split(argv)
    return keep(own, [*(row.flags[0] for row in common.ACCOUNT_ROWS), "--scope"])


def show(words: Sequence[str]) -> str:
    """Return words as a line for a shell; where a secret stood, it names what to fill in."""
    return " ".join(quote(hide_secret(word, before)) for before, word in pairwise(["", *words]))


def quote(word: str) -> str:
    """Return a word as typed in a shell; a character that no terminal shows is spelled as bash and zsh read it."""
    if not controls.are_in(word):
        import shlex

        return shlex.quote(word)
    return f"$'{''.join(map(_spell, word))}'"


def _spell(character: str) -> str:
    if controls.are_in(character):
        number = ord(character)
        return f"\\u{number:04x}" if number <= _LAST_OF_FOUR_DIGITS else f"\\U{number:08x}"
    return f"\\{character}" if character in "\\'" else character


def hide_secret(word: str, before: str = "") -> str:
    """Return a word that was typed behind another one; where a secret stood, it names what to fill in."""
    name, equals, value = word.partition("=")
    if before in _SECRETS:
        return word if word.startswith("@") else "@FILE"
    if equals and name in _SECRETS:
        return word if value.startswith("@") else f"{name}=@FILE"
    url, _, query = word.partition("?")
    return f"{url}?SAS" if url.startswith(("http://", "https://")) and "sig=" in query else word


def _group(argv: Sequence[str]) -> list[list[str]]:
    """Return the words, each option together with its value."""
    groups: list[list[str]] = []
    rest = list(argv)
    while rest:
        has_value = rest[0] in _WITH_VALUE or (rest[0] == "--wait" and "".join(rest[1:2])[:1].isdigit())
        length = 2 if has_value else 1
        groups.append(rest[:length])
        del rest[:length]
    return groups


def _name(group: Sequence[str]) -> str:
    return group[0].partition("=")[0]


def refuse_bytes(row: Row, value: Any) -> None:
    """Refuse text that is not UTF-8, except where any bytes are meant: in files' names, content and commands."""
    if "FILE" in row.metavar or "CMD" in row.metavar or row.name in _OF_BYTES:
        return
    what = row.metavar if row.is_argument else row.flags[0]
    for text in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(text, str):
            naming.check_text(text, what)
