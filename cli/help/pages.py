"""The help page of a command, from its docstring and its rows.

The docstring of a command is its help. The first paragraph is the summary. ``Examples:`` and ``Topics:`` begin
paragraphs of their own. All other paragraphs are notes: ``azguard help COMMAND`` and the manual page show them,
``COMMAND --help`` does not.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property

from azguard.cli.help import layout
from azguard.cli.help.layout import HelpPage
from azguard.cli.help.topics import TOPICS, TextBlock, render_page
from azguard.cli.parsing.rows import ARGUMENTS, CONDITIONS, OPTIONS, TREES
from azguard.cli.parsing.tree import Command, Group, TreeNode
from azguard.cli.registry import ROOT
from azguard.frozen import frozen

# The groups that a command's help shows. ``azguard help options`` shows the others, once for all commands.
_ORDER = (ARGUMENTS, OPTIONS, TREES, CONDITIONS)
_EXAMPLES, _TOPICS = "Examples:", "Topics:"


@frozen
class HelpText:
    """The help of a command or a group, as its docstring has it."""

    text: str

    @property
    def summary(self) -> str:
        """Return the description of the command or group, in one sentence or two."""
        return self._paragraphs[0] if self._paragraphs else ""

    @property
    def notes(self) -> list[str]:
        """Return the notes on the command or group, paragraph by paragraph."""
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


def build(node: TreeNode, path: str) -> HelpPage:
    """Return the page of a command, or of a group; ``path`` is what was typed, such as ``azguard blob put``."""
    text = HelpText(node.help)
    sections = [(heading, list(rows)) for heading, rows in _list_sections(node, path, text)]
    return HelpPage(path, usage(node), text.summary, text.examples, sections)


def build_all(node: Group | Command, path: str = ROOT) -> Iterator[HelpPage]:
    """Yield the page of a command, or of a group and of all that is in it."""
    yield build(node, path)
    for name in node.list_names() if isinstance(node, Group) else ():
        found = node.get(name) if isinstance(node, Group) else None
        if found is not None:
            yield from build_all(found, f"{path} {name}")


def usage(node: TreeNode) -> str:
    """Return the words that may follow the name of a command or a group."""
    places = [row.place for row in node.rows if row.is_argument and not row.is_hidden]
    return " ".join(["[OPTIONS]", *places, *(["COMMAND [ARGS]..."] if isinstance(node, Group) else [])])


def _list_sections(node: TreeNode, path: str, text: HelpText) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    """Yield the headings of a help with what stands under each, except the options that all commands share."""
    for panel in _ORDER:
        if rows := [(row.usage, node.explain(row)) for row in node.rows if row.panel == panel and not row.is_hidden]:
            yield panel, rows
    if isinstance(node, Group):
        yield "Commands", [(name, node.summarize(name)) for name in node.list_names()]
    if isinstance(node, Command) and (answers := _explain(node, path)):
        yield "In short", answers
    if node.name == ROOT:
        yield "Topics (azguard help TOPIC)", [(", ".join(TOPICS), "")]
    else:
        yield "Read on", _list_pointers(path.partition(" ")[2], text)


def _explain(command: Command, path: str) -> list[tuple[str, str]]:
    from azguard.cli.help import facts  # reads the rows of operations, which the page of a noun does not

    return facts.explain(command, path)


def _list_pointers(command: str, text: HelpText) -> Iterator[tuple[str, str]]:
    """Yield where to read on: the notes of the command, the shared options, the topics."""
    if text.notes:
        yield f"azguard help {command}", "Notes on this command."
    yield "azguard help options", "Shared options: account, output, scope."
    if text.topics:
        yield "azguard help TOPIC", f"TOPIC: {', '.join(text.topics)}."


def with_notes(shown: str, text: HelpText) -> str:
    """Return the help of a command and what else there is to know of it."""
    notes = render_page([TextBlock("paragraph", (" ".join(each.split()),)) for each in text.notes], layout.find_width())
    return f"{shown}\n\nNotes:\n{notes}"
