"""Shell completion: commands, options, their values, and the names of containers, blobs and tables.

A shell's script runs ``azguard`` with ``_AZGUARD_COMPLETE`` set to the shell's name and ``_AZGUARD_LINE`` to the line
up to the cursor; the answer is one candidate per line, a tab, and what it is. Nothing is ever said on stderr.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from azguard.cli.completers import Candidate, TypedLine
from azguard.cli.parsing.rows import Row
from azguard.cli.parsing.tree import Group, PartialLine, find_option, list_second_words, walk
from azguard.errors import UsageError

#: Answered where a command of the user's follows: the shell completes it as if it stood alone.
COMMAND_OF_SHELL = "--"
# What bash gives a meaning, and a backslash takes it away.
_SPECIAL = re.compile(r"""[\s"'`$!&*?()<>\[\]{}|;,^\\]|^[~#]""")
_SPECIAL_IN_QUOTES = re.compile(r"""["`$\\]""")
# What PowerShell takes as it is; of an option, a dot would begin the next word.
_PLAIN_IN_POWERSHELL = re.compile(r"[A-Za-z0-9_/][\w./:+-]*|--?[A-Za-z0-9-]+", re.ASCII)
# Each of these ends a text in single quotes there, and doubled is one.
_POWERSHELL_QUOTE = re.compile("['\u2018\u2019\u201a\u201b]")
# The variables by which a shell's script talks to azguard.
SHELL, LINE, WORD = "_AZGUARD_COMPLETE", "_AZGUARD_LINE", "_AZGUARD_WORD"
# The scripts have the names by which a shell finds them where packages put them; the wheel installs them there, too.
_SCRIPTS = {"bash": "azguard", "zsh": "_azguard", "fish": "azguard.fish", "powershell": "azguard.ps1"}
_FOLDER = os.path.join(os.path.dirname(__file__), "completions")


def answer(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that a shell's script reads."""
    line = environ.get(LINE, "")
    words, incomplete, quote = split(line)
    # Bash replaces only what stands behind the last ":" or "=", or behind a quote that is open.
    replaced = _find_quoted(line) if quote else environ.get(WORD, "")
    fragment = split(replaced)[1] if WORD in environ else incomplete
    kept = len(incomplete) - len(fragment) if incomplete.endswith(fragment) else 0
    for value, meaning in _candidates(words[1:], incomplete, environ):
        if not value.isprintable():
            continue
        if environ[SHELL] == "bash":
            yield value if value == COMMAND_OF_SHELL else _quote_for_bash(value[kept:], quote)
        elif environ[SHELL] == "powershell":
            if value != COMMAND_OF_SHELL:  # It completes nothing of its own there.
                yield f"{quote_for_powershell(value)}\t{meaning}"
        else:
            yield f"{value}\t{meaning}"


def split(line: str) -> tuple[list[str], str, str]:
    """Return the words of a line, the last one, which is not finished yet, and the quote that is open in it, if any."""
    for quote in ("", "'", '"'):
        try:
            # A letter stands where the cursor is, so that a blank before it counts only if it ends a word.
            *words, last = shlex.split(f"{line}x{quote}")
        except ValueError:
            continue
        return words, last[:-1], quote
    return [], "", ""


def _find_quoted(line: str) -> str:
    """Return the quote that is open at the end of a line, and what stands behind it."""

    def is_open(end: int) -> bool:
        return bool(split(line[:end])[2])

    return next(line[at:] for at in reversed(range(len(line))) if is_open(at + 1) and not is_open(at))


def _quote_for_bash(value: str, quote: str) -> str:
    """Return a value as it has to stand in a line, where this quote may be open."""
    if quote == "'":
        return value.replace("'", r"'\''")
    if quote == '"':
        # Inside of these quotes a ! is a word of the history, and a backslash before it would stay.
        return _SPECIAL_IN_QUOTES.sub(r"\\\g<0>", value).replace("!", r'"\!"')
    return _SPECIAL.sub(r"\\\g<0>", value)


def quote_for_powershell(value: str) -> str:
    """Return a value as one word of a line, in which nothing is expanded.

    Source: about_Parsing and about_Quoting_Rules, in the documentation of PowerShell.
    """
    if _PLAIN_IN_POWERSHELL.fullmatch(value):
        return value
    return f"'{_POWERSHELL_QUOTE.sub(lambda found: found[0] * 2, value)}'"


def _candidates(words: Sequence[str], incomplete: str, environ: Mapping[str, str]) -> list[Candidate]:
    """Return the candidates for the place of ``incomplete``, each with its meaning."""
    typed = walk(words)
    if typed.rest:
        return (
            [(COMMAND_OF_SHELL, "")]
            if any("CMD" in row.metavar for row in typed.command.rows if row.is_argument)
            else []
        )
    option, equals, value = incomplete.partition("=")
    if typed.pending is not None:
        found = _values(typed.pending, typed, incomplete, environ)
    elif equals and (row := find_option(typed.command, option)) is not None:
        found = [(f"{option}={each}", meaning) for each, meaning in _values(row, typed, value, environ)]
    elif incomplete.startswith("-"):
        found = _options(typed)
    elif isinstance(typed.command, Group):
        found = typed.command.summarize_all()
    else:
        found = [*list_second_words(typed).items(), *_arguments(typed, incomplete, environ)]
    return [each for each in found if each[0].startswith(incomplete)]


def _options(typed: PartialLine) -> list[Candidate]:
    """Return the options that can still be typed: none that a rule excludes, and none twice that takes one value."""
    shown = [row for row in typed.command.rows if not row.is_argument and not row.is_hidden]
    excluded = _list_excluded(typed)
    left = [row for row in shown if row.flags[0] not in excluded and (row.is_many or row.name not in typed.options)]
    return [(row.flags[0], row.help) for row in left] + [("--help", "Show what it does.")]


def _list_excluded(typed: PartialLine) -> set[str]:
    """Return the options that a rule excludes beside those that were typed, by their names in rules."""
    if isinstance(typed.command, Group):
        return set()
    places = [row.metavar.strip("[]") for row in typed.command.rows if row.is_argument]
    names = typed.names | set(places[: len(typed.arguments)])
    return {each for rule in typed.command.rules for each in rule.list_excluded(names)}


def _values(row: Row, typed: PartialLine, incomplete: str, environ: Mapping[str, str]) -> list[Candidate]:
    """Return the values of an option or argument: its completer's, or the choices that its help shows.

    None leaves it to the shell, which offers files.
    """
    if row.completer is not None:
        return row.completer(TypedLine(typed.options, environ, typed.path, typed.arguments), incomplete)
    excluded = _list_excluded(typed)
    return [(each, "") for each in row.choices if row.is_argument or f"{row.flags[0]}={each}" not in excluded]


def _arguments(typed: PartialLine, incomplete: str, environ: Mapping[str, str]) -> list[Candidate]:
    places = [row for row in typed.command.rows if row.is_argument]
    position = len(typed.arguments)
    if not places or (position >= len(places) and not places[-1].is_many):
        return []
    return _values(places[min(position, len(places) - 1)], typed, incomplete, environ)


def of(shell: str) -> str:
    """Return the script for a shell.

    Raises:
        UsageError: there is none for it.
    """
    if shell not in _SCRIPTS:
        raise UsageError(f"there is no completion for {shell!r}", hint=" or ".join(_SCRIPTS))
    with open(os.path.join(_FOLDER, shell, _SCRIPTS[shell]), encoding="utf-8") as script:
        return script.read()
