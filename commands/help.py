"""``azguard help``: the help of a command with its notes, or the text of a topic."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from azguard.cli import completion, help_text, topics
from azguard.cli.completers import Candidate
from azguard.cli.groups import Group, alone
from azguard.errors import UsageError


def _offer(ctx: typer.Context, incomplete: str) -> list[Candidate]:
    """Return what may follow: a command or a topic, then the commands of a noun."""
    words = list(ctx.obj.arguments)
    asked = ctx.obj.root.find(words) if words else ctx.obj.root
    found = completion.list_commands(asked) if isinstance(asked, Group) else []
    found += [] if ctx.obj.arguments else topics.TOPICS.items()
    return [each for each in found if each[0].startswith(incomplete)]


def show(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND|TOPIC]", help="A command or a topic; by default, azguard itself.", autocompletion=_offer
        ),
    ] = None,
) -> None:
    """Show the help of a command with its notes, or explain a topic.

    Examples:
        azguard help blob put
        azguard help conditions
        azguard help exit-status
    """
    words = command or []
    text = topics.render(words[0], help_text.width()) if words in [[name] for name in topics.TOPICS] else None
    typer.echo(help_text.emphasize(text or _help_of(ctx, words), sys.stdout))


app = alone(show, "help")


def _help_of(ctx: Any, words: Sequence[str]) -> str:
    """Return the help of a command, with its notes."""
    asked, left = ctx.find_root(), list(words)
    while left:
        group = asked.command
        name, length = group.find_command(left) if isinstance(group, Group) else ("", 0)
        found = group.get_command(asked, name) if length else None
        if found is None:
            raise _build_unknown(asked, left[0])
        asked = type(asked)(found, info_name=name, parent=asked)
        del left[:length]
    text = help_text.HelpText(asked.command.help or "")
    return help_text.with_notes(asked.get_help(), text) if len(words) and text.notes else str(asked.get_help())


def _build_unknown(asked: Any, word: str) -> UsageError:
    """Return the error for what is neither a command nor a topic, with the most similar name."""
    from difflib import get_close_matches

    is_root = asked.parent is None
    if is_root and word in topics.TOPICS:
        return UsageError(f"the topic {word} has no parts", hint=f"azguard help {word}")
    known = asked.command.list_commands(asked) if isinstance(asked.command, Group) else []
    similar = get_close_matches(word, [*known, *(topics.TOPICS if is_root else ())], n=1)
    path = asked.command_path.replace("azguard", "azguard help", 1)
    what = "command or topic" if is_root else "command"
    return UsageError(
        f"{asked.command_path} has no {what} {word!r}",
        hint=f"did you mean: {path} {similar[0]}" if similar else path,
    )
