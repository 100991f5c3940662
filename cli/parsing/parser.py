"""Typer reads the words of a command line: this is the one module that knows it.

The rows of a command become Typer's options and arguments. Help, completion and the calls of commands are azguard's
own. Of Typer's inside four things are needed: its classes of parameters, which its signatures take 100 µs each to make;
the parser that a context has made, so that a line is read once (``make_parser``); the coercion of a value
(``_runtime_param``), which takes 20 ms and a second library where all values are text; and whether a command follows a
group (``_protected_args``).
"""

import copy
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from azguard.cache import scope
from azguard.cli import rules, signals
from azguard.cli.context import Environment
from azguard.cli.errors import CommandMissing, Facts
from azguard.cli.options import common
from azguard.cli.output.results import trace_to
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import Row, list_typed
from azguard.cli.parsing.tree import Command, Group, root
from azguard.cli.registry import ROOT
from azguard.errors import AzguardError, UsageError
from azguard.frozen import frozen

# How Typer tells words that no argument takes.
_EXTRA = r"(?s)Got unexpected extra argument\S* \((.*)\)"
_MISSING = r"(?s)Missing argument '(.*)'\."


class _Text:
    """The type of a parameter whose values are text or flags already, and its coercion."""

    annotation = str
    is_choice = False

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


_TEXT: Any = _Text()


def _build_param(row: Row) -> TyperArgument | TyperOption:
    told: dict[str, Any] = {
        "required": row.is_required,
        "default": None if row.is_required else row.default,
        "metavar": row.metavar or None,
        "type_descriptor": _TEXT,
    }
    if row.is_argument:
        return TyperArgument(param_decls=[row.name], nargs=-1 if row.is_many else None, **told)
    names = [f"{row.flags[0]}/{row.off}"] if row.off else row.flags
    return TyperOption(param_decls=[row.name, *names], is_flag=row.is_flag, multiple=row.is_many, **told)


class _Reader:
    """Put before a Typer class: reads the words once, and shows azguard's own help."""

    node: Command | Group

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters; for a line that was read, without the options that were not typed: they take longest.

        Their defaults are in the rows.
        """
        if "_params" not in vars(self):
            self._params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # a mixin of Typer's two classes
            for param in self._params:
                param._runtime_param = _TEXT  # noqa: SLF001  # Typer offers no other way
        of, parsed = ctx.obj.parsed or (None, None)
        if parsed is None or of is not ctx:
            return self._params
        typed, *_ = parsed.parse_args([])
        return [param for param in self._params if param.required or param.name in typed]

    def read_once(self, ctx: Any, args: list[str]) -> list[Any]:
        """Return the parameters in the order that they were typed; what was found of them is kept for Typer."""
        parser = copy.copy(self._make_parser(ctx))
        parser.ctx = ctx
        found = parser.parse_args(args=list(args))
        parser.parse_args = lambda args: found
        ctx.obj.parsed = (ctx, parser)
        order: list[Any] = found[-1]
        return order

    def _make_parser(self, ctx: Any) -> Any:
        """Return a parser of the options; it is made for the first line, since that takes a third of the time."""
        if "_parser" not in vars(self):
            self._parser = super().make_parser(ctx)  # type: ignore[misc]  # a mixin, as above
        return self._parser

    def make_parser(self, ctx: Any) -> Any:
        of, parsed = ctx.obj.parsed or (None, None)
        return parsed if of is ctx else super().make_parser(ctx)  # type: ignore[misc]  # a mixin, as above

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]  # a mixin, as above
        option.callback = _show_help
        return option


def _show_help(ctx: Any, _param: Any, is_asked: bool) -> None:
    """Show the help of a command, if that is asked for; the callback of ``--help``."""
    if is_asked and not ctx.resilient_parsing:
        from azguard.cli.help import layout

        layout.show(ctx.command_path)
        ctx.exit()


@frozen
class ReadyCommand:
    """A command whose line was read and keeps its rules: it can be called."""

    node: Command
    env: Environment
    #: The values of its own options and arguments.
    params: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Return whether the command is one write."""
        operation = self.node.spec.operation
        return operation is not None and operation.writes

    def call(self) -> int:
        try:
            return self.node.call(self.env, self.params)
        except AzguardError as error:
            if not self.node.spec.is_remote:
                raise
            from azguard.cli.words import refusals

            told = refusals.explain(self.env, error)
            if told is error:
                raise
            raise told from error

    def call_alone(self) -> int:
        """Run it as the one command of this process, whose signals and steps are its own; return its exit status."""
        env = self.env
        # A wrong --output is said before anything is done.
        requests = trace_to(env.out, env.shared, env.environ) if env.out.is_verbose else nullcontext()
        with signals.until_committed() if self.writes else nullcontext(), requests, _note_steps(env):
            return self.call()


class ParsedCommand(_Reader, TyperCommand):
    """A command, with the options that it shares with others."""

    def __init__(self, node: Command, rows: Sequence[Row]) -> None:
        settings = {**_SETTINGS, "allow_interspersed_args": not node.spec.runs_program}
        super().__init__(node.name, params=[_build_param(row) for row in rows], context_settings=settings)
        self.node: Command = node

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for row in self.node.rows:
            if row.bare is not None and row.type is not None:
                args = command_line.fill_in(args, row.flags[0], row.bare, row.type.accepts)
        with _naming_command(ctx):
            order = self.read_once(ctx, args)
        command_line.refuse_repeated(order)
        ctx.obj.order = [param.name for param in order]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def invoke(self, ctx: Any) -> Any:
        facts, spec = ctx.obj, self.node.spec
        self._take_before(facts, ctx.params)
        rows = [row for row in self.node.rows if row.name in ctx.params]
        for row in rows:
            command_line.refuse_bytes(row, ctx.params[row.name])
            if row.is_many:
                ctx.params[row.name] = list(ctx.params[row.name]) or row.default
        typed = list_typed(rows, ctx.params, facts.order)
        # One before the command's name holds unless it is given again behind it.
        for row in self.node.shared:
            if row.name in ctx.params:
                self._check_condition(row.name)
                facts.shared[row.name] = ctx.params.pop(row.name)
        # All of them are known to who tells of an error in one.
        for row in self.node.shared:
            if row.name in facts.shared:
                facts.shared[row.name] = row.read(facts.shared[row.name])
        if spec.is_remote:
            # Before any request, also where a command asks for its scope when it is done, or never.
            scope.find_named(facts.shared.get("scope"), os.environ)
        facts.operation, facts.takes_key = spec.operation, spec.takes_key
        params = {row.name: row.default for row in self.node.own} | ctx.params
        facts.command, facts.params = " ".join(ctx.command_path.split()[1:]), dict(params)
        env = Environment.of(facts)
        self._refuse_ignored(facts, has_source=params.get("source_url") is not None)
        rules.check(self.node.rules, typed, lambda: _find_kind(env, self.node, params))
        for row in self.node.own:
            params[row.name] = row.read(params[row.name])
        facts.ready = ReadyCommand(self.node, env, params)

    def _refuse_ignored(self, facts: Facts, *, has_source: bool) -> None:
        """Refuse a condition that the service ignores here, before anything that is missing is told."""
        spec = self.node.spec
        if spec.operation is not None:
            from azguard.guards import requested
            from azguard.guards.requested import RequestedConditions

            told = spec.operation if spec.plain is None or has_source else spec.plain
            requested.refuse_ignored(told, RequestedConditions.of(facts.shared), spec.operation.asks)

    def _take_before(self, facts: Facts, params: dict[str, Any]) -> None:
        """Take the values from before the command's name of options that the command declares anew, as --timeout."""
        for row in self.node.own:
            value = facts.shared.pop(row.name, None)
            if value is not None and row.name not in facts.order:
                params[row.name] = value
                facts.order.append(row.name)

    def _check_condition(self, name: str) -> None:
        """Refuse a condition on a command that has none, before anything else is looked at."""
        if name not in common.CONDITION_NAMES:
            return
        reason = self.node.spec.why_no_conditions
        if name == "source_lease_id":
            reason = "the service has not heeded the lease of a copy's source since 2012"
        if reason is not None:
            raise UsageError(f"--{name.replace('_', '-')} is not enforced here: {reason}", hint="leave it out")


class ParsedGroup(_Reader, TyperGroup):
    """A noun, or all of azguard. Each of its commands is built when it is asked for: a run needs one of them."""

    def __init__(self, node: Group) -> None:
        super().__init__(name=node.name, params=[_build_param(row) for row in node.rows], context_settings=_SETTINGS)
        self.node: Group = node

    def list_commands(self, ctx: Any) -> list[str]:
        return self.node.list_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        node = self.node.get(cmd_name)
        return None if node is None else build(node)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # A value before the command's name may be given again behind it, as an alias of a shell does, but not here.
        command_line.refuse_repeated(self.read_once(ctx, args))
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def invoke(self, ctx: Any) -> Any:
        for row in self.node.rows:
            value = ctx.params.pop(row.name, None)
            if value not in (None, False):
                ctx.obj.shared[row.name] = value
        if not ctx._protected_args:  # noqa: SLF001  # Typer offers no other way
            path = ctx.command_path
            raise CommandMissing(f"{path} needs a command", hint=f"{path} --help", values={"path": path})
        return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, length = self.node.find_command(args)
        if length == 1 and self.node.get(args[0]) is None:
            from azguard.cli.words import guesses

            path = ctx.command_path.split()[1:]
            raise UsageError(f"no such command {args[0]!r}", hint=guesses.hint_for_command(path, args))
        return name, self.get_command(ctx, name), args[length:]


def _note_steps(env: Environment) -> AbstractContextManager[None]:
    """Note the steps of a command in the file of ``AZGUARD_TRACE``, if that is set."""
    path = env.environ.get("AZGUARD_TRACE")
    if not path:
        return nullcontext()
    from azguard.requests import trace

    return trace.into(path, env.command, env.out.warn)


_SETTINGS = {"help_option_names": ["--help", "-h"]}


@cache
def build(node: Command | Group) -> "ParsedCommand | ParsedGroup":
    """Return the Typer object that reads the lines of a command or a group."""
    return ParsedGroup(node) if isinstance(node, Group) else ParsedCommand(node, node.rows)


def _build_for(node: Command, words: Sequence[str]) -> ParsedCommand:
    """Return a Typer object that reads one line: most of a command's options are not typed, and each takes 40 µs."""
    typed = [word.partition("=")[0] for word in words if word.startswith("-")]
    # Short options may stand in one word, such as -qy, or with their value, such as -ojson.
    long = {word for word in typed if word.startswith("--")}
    has_short = len(long) < len(set(typed))
    return ParsedCommand(
        node,
        [
            row
            for row in node.rows
            if row.is_argument
            or not long.isdisjoint((*row.flags, row.off))
            or (has_short and any(len(name) == len("-f") for name in row.flags))
        ],
    )


def parse_and_call(facts: Facts, argv: list[str]) -> int:
    """Read the words of a line, run its command, and return its exit status.

    Raises:
        UsageError: the line is not understood.
        Exception: what ended the command.
    """
    ready = parse(facts, argv, is_alone=True)
    return 0 if ready is None else ready.call_alone()


def parse(facts: Facts, argv: list[str], *, is_alone: bool = False) -> ReadyCommand | None:
    """Read the words of a line and check its rules; return its command, None if its help was shown instead.

    ``is_alone`` says that no other line of the same command follows, so that nothing is kept for one.
    Not guaranteed: that threads can read lines at the same time.

    Raises:
        UsageError: the line is not understood.
    """
    try:
        node, names, rest = root.follow(argv)
        command = _build_for(node, rest) if is_alone and isinstance(node, Command) else build(node)
        context = command.make_context(" ".join([ROOT, *names]), rest, obj=facts)
        with context:
            command.invoke(context)
    except typer.Exit:
        return None
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        raise _explain(error, argv) from error
    # It refers to the facts again: then only the garbage collector would free a line of a batch.
    facts.parsed = None
    ready: ReadyCommand | None = facts.ready
    return ready


def _explain(error: Any, argv: Sequence[str]) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "azguard"
    option = getattr(error, "option_name", None)
    from azguard.cli.words import guesses

    if context is not None and option is not None and hasattr(error, "possibilities"):
        hint = guesses.hint_for_option(context.command.node, path.split()[1:], option, argv)
        return UsageError(f"no such option: {option}", hint=hint)
    message, guessed = error.format_message(), guesses.hint_for_values(argv)
    if context is not None and (missing := re.fullmatch(_MISSING, message)):
        return guesses.explain_missing(context.command.node, path, missing[1], argv)
    hint = guessed or f"{path} --help"
    if context is not None and (extra := re.fullmatch(_EXTRA, message)):
        takes_file = "-f" in context.command.node.list_options()
        folder = ", and -f names a file or folder" if takes_file else ""
        named = f"an address is one word, such as site/config.json{folder}: {path} --help"
        hint = f"did you mean: {guessed}" if guessed else named
        return UsageError(f"`{path}` takes fewer words; these are too many: {extra[1]}", hint=hint)
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def _find_kind(env: Environment, node: Command, params: Mapping[str, Any]) -> str | None:
    """Return the kind of the first address on the line; None if it is malformed, which the command refuses."""
    place = next((row for row in node.own if row.is_argument), None)
    words = None if place is None else params[place.name]
    first = (words or [None])[0] if isinstance(words, list) else words
    try:
        return None if first is None else env.location(first).address.kind
    except AzguardError:
        return None


@contextmanager
def _naming_command(ctx: Any) -> Iterator[None]:
    """Add the command to an error of the parser, which leaves it out where an option has no value."""
    try:
        yield
    except typer.TyperException as error:
        if getattr(error, "ctx", None) is None:
            error.ctx = ctx  # type: ignore[attr-defined]  # a field of those errors that are about usage
        raise
