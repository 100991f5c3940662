"""How the help of a command is laid out: summary, examples, options by group, and where to read on.

The docstring of a command is its help. The first paragraph is the summary. ``Examples:`` and ``Topics:`` begin
paragraphs of their own. All other paragraphs are notes: ``azguard help COMMAND`` and the manual page show them,
``COMMAND --help`` does not.
"""

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TextIO

from azguard.cli import terminal

# The groups that a command's help shows. ``azguard help options`` shows the others, once for all commands.
_ORDER = ("Arguments", "Options", "With --recursive", "Conditions")
_EXAMPLES, _TOPICS = "Examples:", "Topics:"
# Below this, an option stands above its text, not beside it.
_NARROW = 60
_WIDEST, _NARROWEST = 100, 30
_HEADING = re.compile(r"^(Usage:|[A-Z][^\n]*:$)", re.MULTILINE)


@dataclass(frozen=True)
class HelpText:
    """The help of a command or a group, as its docstring has it."""

    text: str

    @property
    def summary(self) -> str:
        """Return what it does, in one sentence or two."""
        return self._paragraphs[0] if self._paragraphs else ""

    @property
    def notes(self) -> list[str]:
        """Return what is to be known besides, paragraph by paragraph."""
        return [each for each in self._paragraphs[1:] if not each.startswith((_EXAMPLES, _TOPICS))]

    @property
    def examples(self) -> list[str]:
        """Return the command lines to show, as they are typed; one may take several lines."""
        lines = textwrap.dedent("\n".join(self._after(_EXAMPLES).splitlines()[1:]))
        return re.findall(r"(?:[^\n]*\\\n)*[^\n]+", lines)

    @property
    def topics(self) -> list[str]:
        """Return the topics that explain more."""
        return self._after(_TOPICS).removeprefix(_TOPICS).replace(",", " ").split()

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [each for each in re.split(r"\n\s*\n", inspect.cleandoc(self.text)) if each]

    def _after(self, start: str) -> str:
        return next((each for each in self._paragraphs if each.startswith(start)), "")


def place(param: Any) -> str:
    """Return how an argument is written: in brackets if it may be left out."""
    name = param.metavar or param.name.upper()
    name = f"{name}..." if param.nargs == -1 and "..." not in name else name
    return name if param.required or name.startswith("[") else f"[{name}]"


def width() -> int:
    """Return how wide help is: as the terminal, but lines of more than 100 columns are hard to read."""
    # Where stdout goes to a pager, stderr is still the terminal.
    stream = sys.stdout if terminal.is_terminal(sys.stdout) else sys.stderr
    return max(min(terminal.width(stream), _WIDEST) - 2, _NARROWEST)


def write_summary(formatter: Any, text: HelpText) -> None:
    """Write what a command does, and examples of it."""
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(text.summary)
    if text.examples:
        with formatter.section("Examples"):
            write_lines(formatter, text.examples)


def write_lines(formatter: Any, lines: Sequence[str]) -> None:
    """Write lines as they are: what is to be typed is never wrapped."""
    formatter.write(textwrap.indent("\n".join(lines), " " * formatter.current_indent) + "\n")


def write_rows(formatter: Any, rows: Sequence[tuple[str, str]]) -> None:
    """Write names with their meanings: beside each other, or below each other where the terminal is narrow."""
    if formatter.width >= _NARROW:
        formatter.write_dl(rows)
        return
    for name, meaning in rows:
        formatter.write(f"{'':>{formatter.current_indent}}{name}\n")
        with formatter.indentation():
            formatter.write_text(meaning)


def write_options(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    """Write the options by group, except those that all commands share."""
    for heading in _ORDER:
        if sections.get(heading):
            with formatter.section(heading):
                write_rows(formatter, sections[heading])


def write_pointers(formatter: Any, command: str, text: HelpText) -> None:
    """Write where to read on: the notes of the command, the shared options, the topics."""
    rows = [(f"azguard help {command}", "Notes on this command.")] if text.notes else []
    rows += [("azguard help options", "Shared options: account, output, scope.")]
    if text.topics:
        rows += [("azguard help TOPIC", f"TOPIC: {', '.join(text.topics)}.")]
    with formatter.section("Read on"):
        write_rows(formatter, rows)


def with_notes(shown: str, text: HelpText) -> str:
    """Return the help of a command and what else there is to know of it."""
    from azguard.cli import markdown

    notes = markdown.render(
        [markdown.TextBlock("paragraph", (" ".join(each.split()),)) for each in text.notes], width()
    )
    return f"{shown}\n\nNotes:\n{notes}"


def emphasize(text: str, stream: TextIO) -> str:
    """Return help with bold headings, if it goes to a terminal that shows them."""
    if not terminal.is_colored(stream, {"no_color": "--no-color" in sys.argv}, os.environ):
        return text
    return _HEADING.sub(lambda found: terminal.paint(found[1], "bold"), text)
