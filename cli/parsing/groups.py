"""The Typer classes azguard's commands are made of.

They add three things: the options every command shares, the order in which options were typed, and speed: a command
is built when it is asked for. Typer validates even plain text with pydantic, whose import takes longer than all else
azguard does before a request: the commands here take text and flags only, and need none (``Plain``).
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_command_name, get_group
from typer.models import CommandInfo

from azguard import naming
from azguard.cache import scope
from azguard.cli import signals
from azguard.cli.options import common
from azguard.cli.parsing import command_line, command_spec
from azguard.cli.parsing.command_spec import COMMAND, LOCAL, OPERATION, ORDER, PARSED, SHARED, CommandSpec
from azguard.errors import AzguardError, UsageError

# Options whose text is content.
_OF_BYTES = ("append", "append_line", "create")
# A command by its name in another order, as in `metadata set`.
_SPELLINGS = {"properties set": "set-properties"}
# A summary longer than this would be cut.
_WHOLE = 200


class _Text:
    """Coercion for parameters that are text or flags already."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


_TEXT = _Text()


class Plain:
    """Put before a Typer class: gives every parameter, ``--help`` included, the coercion that needs no pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # a mixin of TyperCommand and TyperGroup
        for param in params:
            param._runtime_param = _TEXT  # noqa: SLF001  # Typer offers no other way
        return params

    def parse_once(self, ctx: Any, args: list[str]) -> list[Any]:
        """Return the parameters in the order that they were typed; what was found of them is kept for Typer."""
        parser = self.make_parser(ctx)
        found = parser.parse_args(args=list(args))
        parser.parse_args = lambda args: found
        ctx.meta[PARSED] = (ctx, parser)
        order: list[Any] = found[-1]
        return order

    def make_parser(self, ctx: Any) -> Any:
        of, parsed = ctx.meta.pop(PARSED, (None, None))
        return parsed if of is ctx else super().make_parser(ctx)  # type: ignore[misc]  # a mixin, as above

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]  # a mixin, as above
        places = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        if not places:
            return pieces
        from azguard.cli import help_text

        shown = [help_text.place(param) for param in places if not param.hidden]
        return [*pieces[: len(pieces) - len(places)], *shown]

    def get_help(self, ctx: Any) -> str:
        from azguard.cli import help_text

        formatter = ctx.formatter_class(width=help_text.width())
        self.format_help(ctx, formatter)  # type: ignore[attr-defined]  # a mixin, as above
        return str(formatter.getvalue()).rstrip("\n")

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]  # a mixin, as above
        option.callback = _show_help
        return option

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli import help_text

        help_text.write_summary(formatter, help_text.HelpText(self.help or ""))  # type: ignore[attr-defined]  # as above

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli import help_text

        sections: dict[str, list[Any]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if param.param_type_name == "argument" and not param.hidden:
                record = (help_text.place(param), param.help or "")
            # The name of the command says that it has --help.
            if record is not None and param.name != "help":
                arguments = "Arguments" if param.param_type_name == "argument" else None
                heading = arguments or getattr(param, "rich_help_panel", None) or "Options"
                sections.setdefault(heading, []).append(record)
        help_text.write_options(formatter, sections)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli import help_text

        command = ctx.command_path.partition(" ")[2]
        help_text.write_pointers(formatter, command, help_text.HelpText(self.help or ""))  # type: ignore[attr-defined]  # a mixin, as above


def _show_help(ctx: Any, _param: Any, is_asked: bool) -> None:
    """Show the help of a command, if that is asked for; the callback of ``--help``."""
    if is_asked and not ctx.resilient_parsing:
        from azguard.cli import help_text

        typer.echo(help_text.emphasize(ctx.get_help(), sys.stdout))
        ctx.exit()


class Command(Plain, TyperCommand):
    """A command with the shared options its callback asks for."""

    def __init__(self, *args: Any, spec: CommandSpec = LOCAL, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {param.name for param in self.params}
        shared = common.general_params()
        if spec.is_remote:
            shared = [*common.condition_params(spec.operation), *common.account_params(), *shared]
        # A command's own option of the same name wins, with its own default and help.
        self._shared = [param.name for param in shared if param.name not in own]
        self.params = [*self.params, *(param for param in shared if param.name not in own)]
        self.spec = spec

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = command_line.fill_in(args, self.spec.optional_value)
        with _naming_command(ctx):
            order = self.parse_once(ctx, args)
        command_line.refuse_repeated(order)
        ctx.meta[ORDER] = [param.name for param in order]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def invoke(self, ctx: Any) -> Any:
        for param in self.params:
            _refuse_bytes(param, ctx.params.get(param.name))
        shared = ctx.meta.setdefault(SHARED, {})
        for name in self._shared:
            value = ctx.params.pop(name)
            if value not in (None, False) and name in common.CONDITION_NAMES:
                self._check_condition(name)
            # An option before the command's name holds unless it is given again behind it.
            if value not in (None, False) or name not in shared:
                shared[name] = value
        if self.spec.is_remote:
            # Before any request, also where a command asks for its scope when it is done, or never.
            scope.find_named(shared.get("scope"), os.environ)
        operation = self.spec.find_operation(has_source=ctx.params.get("source_url") is not None)
        if operation is not None:
            from azguard.guards import requested
            from azguard.guards.requested import RequestedConditions

            requested.check(operation, RequestedConditions.of(shared))
        ctx.meta[OPERATION] = self.spec.operation
        ctx.meta[COMMAND] = (" ".join(ctx.command_path.split()[1:]), dict(ctx.params))
        writes = self.spec.operation is not None and self.spec.operation.writes
        try:
            with signals.until_committed() if writes else nullcontext():
                return super().invoke(ctx)
        except AzguardError as error:
            if self.spec.is_remote and ctx.obj is not None:
                from azguard.cli.words import refusals

                told = refusals.explain(ctx.obj, error)
                if told is not error:
                    raise told from error
            raise

    def _check_condition(self, name: str) -> None:
        """Refuse a condition on a command that has none, before anything else is looked at."""
        reason = self.spec.why_no_conditions
        if name == "source_lease_id":
            reason = "the service has not heeded the lease of a copy's source since 2012"
        if reason is not None:
            raise UsageError(f"--{name.replace('_', '-')} is not enforced here: {reason}", hint="leave it out")


@contextmanager
def _naming_command(ctx: Any) -> Iterator[None]:
    """Add the command to an error of the parser, which leaves it out where an option has no value."""
    try:
        yield
    except typer.TyperException as error:
        if getattr(error, "ctx", None) is None:
            error.ctx = ctx  # type: ignore[attr-defined]  # a field of those errors that are about usage
        raise


def _refuse_bytes(param: Any, value: Any) -> None:
    """Refuse text that is not UTF-8, except where any bytes are meant: in files' names, content and commands."""
    metavar = param.metavar or ""
    if "FILE" in metavar or "CMD" in metavar or param.name in _OF_BYTES:
        return
    what = metavar if param.param_type_name == "argument" else param.opts[0]
    for text in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(text, str):
            naming.check_text(text, what)


class Group(Plain, TyperGroup):
    """A group of commands, shown in the order they are declared, or of ``modules``.

    Each is built, or imported, when it is asked for: a run needs one of them. The name of a command may be two words,
    such as ``append seal`` beside ``append``.
    """

    #: The name of a command that this group's one module declares → what it is built from.
    declared: Mapping[str, CommandInfo] = MappingProxyType({})
    #: Where the commands stand in several modules: the name of a command, or of a group of them, → its module.
    modules: Mapping[str, str] = MappingProxyType({})

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.modules or dict.fromkeys((*self.declared, *self.commands)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name in self.declared:
            self.commands[cmd_name] = _build(self.declared[cmd_name])
        elif cmd_name in self.modules:
            self.commands[cmd_name] = self.load(cmd_name)
        return self.commands.get(cmd_name)

    def load(self, name: str) -> Any:
        """Import the module of a command, or of the group of its name."""
        found = import_module(f"azguard.commands.{self.modules[name]}").app.build()
        command = found.get_command(None, name) or found
        command.name = name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli import help_text

        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands.items()]
            help_text.write_rows(formatter, rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # A value before the command's name may be given again behind it, as an alias of a shell does, but not here.
        command_line.refuse_repeated(self.parse_once(ctx, args))
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def invoke(self, ctx: Any) -> Any:
        if not ctx._protected_args:  # noqa: SLF001  # Typer offers no other way
            raise CommandMissing.of(ctx)
        return super().invoke(ctx)

    def find_command(self, words: Sequence[str]) -> tuple[str, int]:
        """Return the name of the command that words begin with, and how many of them it is."""
        both = _SPELLINGS.get(" ".join(words[:2]), " ".join(words[:2]))
        return (both, 2) if words[1:] and both in self.list_commands(None) else (words[0], 1)

    def find(self, words: Sequence[str]) -> Any:
        """Return the command, or the group, that all of the words name; None if there is none."""
        name, length = self.find_command(words)
        found, rest = self.get_command(None, name), words[length:]
        if not rest:
            return found
        return found.find(rest) if isinstance(found, Group) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, length = self.find_command(args)
        if length > 1:
            return name, self.get_command(ctx, name), args[length:]
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from azguard.cli.words import guesses

            path = ctx.command_path.split()[1:]
            raise UsageError(
                f"no such command {args[0]!r}", hint=guesses.hint_for_command(ctx.find_root().command, path, args)
            )
        return super().resolve_command(ctx, args)


def _build(info: CommandInfo) -> TyperCommand:
    info.callback = command_spec.expand(cast("Callable[..., None]", info.callback))
    return cast("TyperCommand", get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None))


class Commands(typer.Typer):
    """A Typer whose commands are ``Command``s. A parameter that is a dataclass stands for the options in it."""

    def __init__(self, help_text: str) -> None:
        self._declared: dict[str, CommandInfo] = {}
        kind = type("NounGroup", (Group,), {"declared": self._declared})
        super().__init__(help=help_text, cls=kind, rich_markup_mode=None, add_completion=False)

    def command(self, name: str | None = None, *, spec: CommandSpec = LOCAL, **kwargs: Any) -> Callable[[Any], Any]:
        # Typer takes a class, and only calls it.
        kind = cast("type[TyperCommand]", partial(Command, spec=spec))

        def declare(callback: Callable[..., None]) -> Callable[..., None]:
            own = name or get_command_name(callback.__name__)
            self._declared[own] = CommandInfo(own, cls=kind, callback=callback, **kwargs)
            return callback

        return declare

    def build(self) -> Any:
        """Return the group of what was declared."""
        return get_group(self)


def group(help_text: str) -> Commands:
    """Return a Typer for the commands of one noun, or of one module."""
    return Commands(help_text)


@dataclass(eq=False)
class CommandMissing(UsageError):
    """A group was typed without one of its commands: people are shown its help."""

    help: str = ""

    @classmethod
    def of(cls, ctx: Any) -> "CommandMissing":
        """Return the error for the group that a context is of."""
        path = ctx.command_path
        return cls(f"{path} needs a command", hint=f"{path} --help", help=ctx.get_help())
