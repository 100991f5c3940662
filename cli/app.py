"""The command line's front door: which commands there are, and how a run ends.

``azguard --help`` and ``--version`` import no SDK: a command's module is imported when that command runs.
"""

import os
import sys
from types import MappingProxyType
from typing import Any

import typer
from typer.main import get_command

from azguard import __version__
from azguard.cli.options import common
from azguard.cli.parsing import command_spec, groups
from azguard.cli.registry import COMMANDS, ROOT, find_module, list_modules
from azguard.errors import OutputFailed


class Root(groups.Group):
    """The root group, which imports a command's module only when that command is asked for."""

    modules = MappingProxyType({name: find_module(name) for name in COMMANDS})

    def load(self, name: str) -> Any:
        if not COMMANDS[name].files:
            return super().load(name)
        noun = groups.group(COMMANDS[name].summary).build()
        noun.name, noun.modules = name, list_modules(name)
        return noun

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli import help_text

        with formatter.section("Commands"):
            help_text.write_rows(formatter, [(name, entry.summary) for name, entry in COMMANDS.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from azguard.cli.help_text import TOPICS

        with formatter.section("Topics (azguard help TOPIC)"):
            formatter.write_text(", ".join(TOPICS))

    def invoke(self, ctx: Any) -> Any:
        shared = ctx.meta.setdefault(command_spec.SHARED, {})
        for name in [name for name in ctx.params if name in _GENERAL]:
            shared[name] = ctx.params.pop(name)
        if set(ctx.meta[command_spec.ARGV]) <= {"--"}:
            from azguard.cli import help_text

            typer.echo(help_text.emphasize(ctx.get_help(), sys.stdout))
            return None
        return super().invoke(ctx)


_GENERAL = {param.name for param in common.general_params()}


def _version(value: bool) -> None:
    if value:
        typer.echo(f"azguard {__version__}")
        raise typer.Exit


def _root() -> Any:
    app = typer.Typer(
        cls=Root,
        rich_markup_mode=None,
        add_completion=False,
        help="Concurrency-safe operations on Azure Storage. "
        "No write is unconditional unless you say so, and a read-modify-write is applied exactly once.\n\n"
        "Examples:\n"
        "  azguard demo\n"
        "  azguard blob get site/config.json -f config.json\n"
        "  azguard safe-update blob:site/config.json --increment replicas",
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", "-V", is_eager=True, callback=_version, help="Print the version."
        ),
    ) -> None:
        pass

    command = get_command(app)
    command.name = ROOT
    command.params = [*command.params, *common.general_params()]
    return command


def run(argv: list[str]) -> int:
    """Run one command line and return its exit status; nothing but a result ever reaches stdout."""
    from azguard.cli import errors, signals
    from azguard.cli.output import stream

    stream.open_streams()
    command = _root()
    if "_AZGUARD_COMPLETE" in os.environ:
        return _complete(command)
    meta: dict[str, Any] = {}
    try:
        signals.end_in_order()
        context = command.make_context(ROOT, list(argv))
        meta = context.meta
        meta[command_spec.ARGV] = tuple(argv)
        with context:
            command.invoke(context)
        errors.deliver(sys.stdout)
        status = 0
    except BaseException as error:  # noqa: BLE001  # the one place where every end becomes an exit status
        # Not a call: Python runs a signal's handler where a function begins.
        signals.state.over = True
        status = errors.report(error, meta, argv, os.environ)
    signals.hasten(status)
    stream.flush_messages()
    return status


def _complete(command: Any) -> int:
    from azguard.cli import completion, errors

    # In one piece: it fits the buffer, so that a shell that has gone shows itself when it is closed.
    sys.stdout.write("".join(f"{line}\n" for line in completion.answer(command, os.environ)))
    try:
        errors.deliver(sys.stdout)
    except OutputFailed as failure:
        return failure.exit_code
    return 0
