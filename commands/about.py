"""``azguard help``, ``version``, ``completion`` and ``demo``: what tells of azguard itself."""

import random
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from azguard import __version__
from azguard.cli import completion, help_text
from azguard.cli.completers import Candidate
from azguard.cli.parsing.groups import Group, group
from azguard.errors import UsageError

_WRITERS, _INCREMENTS = "8", "25"
# More would only measure this machine's memory and Azurite's patience.
_MOST_WRITERS, _MOST_INCREMENTS, _MOST_SEED = 64, 1000, 9999

app = group("About azguard: demo, help, version, completion.")


@app.command("demo")
def demo(
    ctx: typer.Context,
    writers: Annotated[str, typer.Option("--writers", metavar="N", help="Let N processes write.")] = _WRITERS,
    increments: Annotated[
        str, typer.Option("--increments", metavar="N", help="Let each writer apply N increments.")
    ] = _INCREMENTS,
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help="Choose which answers get lost.")] = None,
) -> None:
    """Watch updates get lost, doubled, and applied exactly once.

    Many processes add 1 to the same blob, in an emulator of their own. One answer in ten gets lost. They do it three
    times: as scripts do it today, as careful scripts do it, and with azguard safe-update. The demo needs no account and
    changes nothing of yours. It takes less than a minute. It exits with 0 only if the count of azguard is exact.

    Examples:
        azguard demo
        azguard demo --writers 4 --increments 10
    """
    from azguard.cli import context
    from azguard.cli.input import values
    from azguard.cli.output.demo import finish, of
    from azguard.demo import race
    from azguard.emulators.azurite_install import check_system

    check_system()
    env = context.of(ctx)
    plan = race.DemoPlan(
        writers=values.whole(writers, "--writers", 1, _MOST_WRITERS),
        increments=values.whole(increments, "--increments", 1, _MOST_INCREMENTS),
        seed=random.randint(0, _MOST_SEED) if seed is None else values.whole(seed, "--seed", 0, _MOST_SEED),
    )
    with of(env, plan) as view:
        result = race.run(plan, env.folders.emulator, env.environ, say=env.out.info, watch=view.watch)
    finish(env, view, result)


def _offer(ctx: typer.Context, incomplete: str) -> list[Candidate]:
    """Return the candidates that may follow: a command or a topic, then the commands of a noun."""
    words = list(ctx.obj.arguments)
    asked = ctx.obj.root.find(words) if words else ctx.obj.root
    found = completion.list_commands(asked) if isinstance(asked, Group) else []
    found += [] if ctx.obj.arguments else help_text.TOPICS.items()
    return [each for each in found if each[0].startswith(incomplete)]


@app.command("help")
def help_(
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
    text = help_text.render(words[0], help_text.width()) if words in [[name] for name in help_text.TOPICS] else None
    typer.echo(help_text.emphasize(text or _help_of(ctx, words), sys.stdout))


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
    if is_root and word in help_text.TOPICS:
        return UsageError(f"the topic {word} has no parts", hint=f"azguard help {word}")
    known = asked.command.list_commands(asked) if isinstance(asked.command, Group) else []
    similar = get_close_matches(word, [*known, *(help_text.TOPICS if is_root else ())], n=1)
    path = asked.command_path.replace("azguard", "azguard help", 1)
    what = "command or topic" if is_root else "command"
    return UsageError(
        f"{asked.command_path} has no {what} {word!r}",
        hint=f"did you mean: {path} {similar[0]}" if similar else path,
    )


@app.command("version")
def version(ctx: typer.Context) -> None:
    """Print the version of azguard; with -o or --query as data.

    Examples:
        azguard version
        azguard version --query version -o tsv
    """
    from azguard.cli import context

    env = context.of(ctx)
    if env.shared.get("output") or env.shared.get("query"):
        env.out.show({"version": __version__})
    else:
        typer.echo(f"azguard {__version__}")


@app.command("completion")
def completion_(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish|powershell", help="The shell.")],
) -> None:
    """Print the script that completes commands, options, and names of containers and blobs.

    Examples:
        eval "$(azguard completion bash)"   # in ~/.bashrc
        eval "$(azguard completion zsh)"    # in ~/.zshrc
        azguard completion fish | source    # in ~/.config/fish/config.fish
        azguard completion powershell | Out-String | Invoke-Expression  # in $PROFILE
    """
    sys.stdout.write(completion.of(shell))
