"""What commands and groups of commands have in common: values without pydantic, and how help looks.

Typer validates even plain text with pydantic, whose import takes longer than all else azguard does before a request.
The commands here take text and flags only, so that step is replaced by one that returns the text.
"""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from azguard.cli.run_keys import PARSED


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
