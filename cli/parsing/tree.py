"""The commands as a tree: nouns, and the commands in them. A command's module is imported when it is asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any

from azguard.cli.options import common
from azguard.cli.parsing.rows import LOCAL, CommandSpec, Row, fill, flag, list_rows, list_rules
from azguard.cli.registry import COMMANDS, ROOT, find_module, list_modules
from azguard.cli.rules import Rule
from azguard.frozen import mutable

# A command by its name in another order, as in `blob properties set`.
_SPELLINGS = {"properties set": "set-properties"}
_VERSION = flag("--version, -V", "Print the version.")
# Before the name of a command; each command has a default of its own.
_TIMEOUT = common.TIMEOUT._replace(default=None)


class TreeNode:
    """A command, or a group of them."""

    name: str
    help: str

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of all that it takes."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """Return the first sentence of its help."""
        first = " ".join(self.help.strip().split("\n\n")[0].split())
        return f"{first.partition('. ')[0].removesuffix('.')}."

    def list_options(self) -> dict[str, Row]:
        """Return the options that its help or another page shows, by each of their names."""
        shown = (row for row in self.rows if not row.is_argument and not row.is_hidden)
        return {name: row for row in shown for name in row.flags}


class Command(TreeNode):
    """A command: its help, what it takes, and the function that it calls."""

    def __init__(
        self, name: str, callback: Callable[..., Any], spec: CommandSpec, text: str | None, own_rules: Sequence[Rule]
    ) -> None:
        self.name = name
        self._own_rules = own_rules
        self.spec = spec
        self.help = text or callback.__doc__ or ""
        self._callback = callback

    @cached_property
    def own(self) -> tuple[Row, ...]:
        return list_rows(self._callback)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Return which of its options go together."""
        skips_existing = any("--if-exists" in row.flags for row in self.own)
        return (
            *list_rules(self._callback),
            *self._own_rules,
            *(rule for row in self.shared for rule in row.rules),
            *common.list_condition_rules(self.spec, skips_existing=skips_existing),
        )

    @cached_property
    def shared(self) -> tuple[Row, ...]:
        """Return the rows that it shares with others; its own of the same name wins, with its own default and help."""
        rows = common.GENERAL_ROWS
        if self.spec.is_remote:
            keys = common.ENCRYPTION_ROWS if self.spec.takes_key else ()
            rows = (*common.list_conditions(self.spec.operation), *common.ACCOUNT_ROWS, *keys, common.TIMEOUT, *rows)
        own = {row.name for row in self.own}
        return tuple(row for row in rows if row.name not in own)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of all that it takes."""
        return (*self.own, *self.shared)

    def call(self, env: Any, given: Mapping[str, Any]) -> int:
        """Run it with the values that were typed, by the names of their parameters; return the exit status."""
        return self._callback(env, **fill(self._callback, given)) or 0


class Group(TreeNode):
    """A noun, or all of azguard: commands in the order of their help.

    A noun without a text has that of the registry.

    The name of a command may be two words, such as ``append seal`` beside ``append``.
    """

    def __init__(self, text: str = "", name: str = "", modules: Mapping[str, str] = MappingProxyType({})) -> None:
        self.help = text
        self.name = name
        #: Where the commands stand in several modules: the name of a command, or of a group of them, → its module.
        self._modules = modules
        self._declared: dict[str, Command | Group] = {}

    def command(
        self,
        name: str | None = None,
        *,
        spec: CommandSpec = LOCAL,
        text: str | None = None,
        rules: Sequence[Rule] = (),
    ) -> Callable[[Any], Any]:
        """Declare a command by the function that it calls; ``text`` is its help, else the function's docstring."""

        def declare(callback: Callable[..., Any]) -> Callable[..., Any]:
            own = name or callback.__name__.strip("_").replace("_", "-")
            self._declared[own] = Command(own, callback, spec, text, rules)
            return callback

        return declare

    def add(self, name: str, group: "Group") -> "Group":
        group.name = name
        self._declared[name] = group
        return group

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the options that may stand before the name of a command: those of all commands."""
        return (*((_VERSION,) if self.name == ROOT else ()), *common.ACCOUNT_ROWS, _TIMEOUT, *common.GENERAL_ROWS)

    def summarize(self, name: str) -> str:
        """Return the summary of a command or group in it; for a noun, nothing is imported."""
        if self.name == ROOT:
            return COMMANDS[name].summary
        found = self.get(name)
        return "" if found is None else found.summary

    def summarize_all(self) -> list[tuple[str, str]]:
        """Return the names of one word in it, each with what it is for."""
        return [(name, self.summarize(name)) for name in self.list_names() if " " not in name]

    def list_names(self) -> list[str]:
        """Return the names of the commands in it, then those of the groups."""
        return list(self._modules or sorted(self._declared, key=lambda name: isinstance(self._declared[name], Group)))

    def get(self, name: str) -> "Command | Group | None":
        """Return the command or the group of that name; None if there is none."""
        if name not in self._declared and name in self._modules:
            self._declared[name] = self._load(name)
        return self._declared.get(name)

    def _load(self, name: str) -> "Command | Group":
        if self.name == ROOT and COMMANDS[name].files:
            return Group(COMMANDS[name].summary, name, list_modules(name))
        app: Group = import_module(f"azguard.commands.{self._modules[name]}").app
        found = app.get(name) or app
        found.name = name
        found.help = found.help or COMMANDS[name].summary
        return found

    def find_command(self, words: Sequence[str]) -> tuple[str, int]:
        """Return the name of the command that words begin with, and how many of them it is."""
        both = _SPELLINGS.get(" ".join(words[:2]), " ".join(words[:2]))
        return (both, 2) if words[1:] and both in self.list_names() else (words[0], 1)

    def follow(self, words: Sequence[str]) -> "tuple[Command | Group, list[str], list[str]]":
        """Return the command or group that words begin with, its names, and the rest. Typer takes 5 ms for this."""
        node: Command | Group = self
        names, rest = list[str](), list(words)
        while isinstance(node, Group) and rest:
            name, length = node.find_command(rest)
            found = node.get(name)
            if found is None:
                break
            node, rest = found, rest[length:]
            names.append(name)
        return node, names, rest

    def find(self, words: Sequence[str]) -> "Command | Group | None":
        """Return the command, or the group, that all of the words name; None if there is none."""
        node, _, rest = self.follow(words)
        return None if rest else node

    def walk(self, path: str = "") -> "Iterator[tuple[str, Command]]":
        """Yield every command in it with its words, such as ``blob metadata get``."""
        for name in self.list_names():
            found, words = self.get(name), f"{path} {name}".strip()
            if isinstance(found, Group):
                yield from found.walk(words)
            elif found is not None:
                yield words, found


#: All commands.
root = Group(
    "Concurrency-safe operations on Azure Storage. "
    "No write is unconditional unless you say so, and a read-modify-write is applied exactly once.\n\n"
    "Examples:\n"
    "  azguard demo\n"
    "  azguard blob get site/config.json -f config.json\n"
    "  azguard safe-update blob:site/config.json --increment replicas",
    ROOT,
    {name: find_module(name) for name in COMMANDS},
)


@mutable
class PartialLine:
    """A line that may not be whole, for completion and for help: what its words are, by the rows of the commands."""

    command: Group | Command
    #: The group that the command is in.
    group: Group | None = None
    #: The words of the command.
    path: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    #: What was typed, by the names that rules have for it.
    names: set[str] = field(default_factory=set)
    #: The options that the command does not have, ``--help`` among them, and words that name no command.
    unknown: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    #: The option whose value comes next.
    pending: Row | None = None
    #: Whether the cursor is behind ``--``.
    rest: bool = False


def walk(words: Sequence[str]) -> PartialLine:
    """Read the words of a line, up to ``--``, by the rows of its command."""
    typed = PartialLine(root)
    for word in words:
        if typed.pending is not None:
            _keep(typed, typed.pending, word)
            typed.pending = None
        elif word == "--":
            typed.rest = True
            break
        elif word.startswith("-"):
            _read_option(typed, word)
        elif isinstance(typed.command, Group):
            _read_name(typed, typed.command, word)
        elif not typed.arguments and word in list_second_words(typed):
            typed.command = _within(typed, f"{typed.path[-1]} {word}")
            typed.path.append(word)
        else:
            typed.arguments.append(word)
    return typed


def _read_name(typed: PartialLine, group: Group, word: str) -> None:
    found = group.get(word)
    if found is None:
        typed.unknown.append(word)
    else:
        typed.path.append(word)
        typed.group, typed.command = group, found


def _read_option(typed: PartialLine, word: str) -> None:
    name, equals, value = word.partition("=")
    row = find_option(typed.command, name)
    if row is None:
        typed.unknown.append(word)
    elif row.is_flag:
        typed.options[row.name] = True
        typed.names.add(name if name == row.off else row.flags[0])
    elif equals:
        _keep(typed, row, value)
    else:
        typed.pending = row


def _keep(typed: PartialLine, row: Row, value: str) -> None:
    typed.options[row.name] = value
    typed.names |= {row.flags[0], f"{row.flags[0]}={value}"}


def _within(typed: PartialLine, name: str) -> Group | Command:
    found = None if typed.group is None else typed.group.get(name)
    assert found is not None
    return found


def list_second_words(typed: PartialLine) -> dict[str, str]:
    """Return the words that make another command of the one that was typed, such as ``seal`` behind ``append``."""
    if typed.group is None or typed.arguments:
        return {}
    first = f"{typed.path[-1]} "
    found = [name for name in typed.group.list_names() if name.startswith(first)]
    return {name.removeprefix(first): typed.group.summarize(name) for name in found}


def find_option(command: Group | Command, name: str) -> Row | None:
    """Return the option of that name; None if the command has none."""
    return next((row for row in command.rows if name in row.flags or name == row.off), None)
