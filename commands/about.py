"""``azguard help``, ``version`` and ``completion``: what tells of azguard itself."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from azguard import __version__
from azguard.cli import completion
from azguard.cli.completers import Candidate, TypedLine
from azguard.cli.context import Environment
from azguard.cli.help import layout, pages
from azguard.cli.parsing.rows import argument, flag
from azguard.cli.parsing.tree import Command, Group, TreeNode, root
from azguard.cli.registry import ROOT
from azguard.cli.rules import checked
from azguard.errors import UsageError

app = Group()


def _offer(line: TypedLine, incomplete: str) -> list[Candidate]:
    """Return the candidates that may follow: a command or a topic, then the commands of a noun."""
    words = list(line.arguments)
    asked = root.find(words)
    found = asked.summarize_all() if isinstance(asked, Group) else []
    found += [] if words else list(pages.TOPICS.items())
    return [each for each in found if each[0].startswith(incomplete)]


@app.command("help", rules=(checked("--json", "a command, not a topic, which is text", "about.help_"),))
def help_(
    env: Environment,
    command: Annotated[
        list[str] | None,
        argument("[COMMAND|TOPIC]", "A command or a topic.", completer=_offer, otherwise="azguard itself"),
    ] = None,
    json: Annotated[bool, flag("--json", "Show as data what the command takes and answers, or all commands.")] = False,
) -> None:
    """Show the help of a command with its notes, or explain a topic.

    With --json, programs read which arguments, options, rules, conditions and exit statuses a command has, and the
    JSON Schema of its result. Of a noun, all its commands are described.

    Examples:
        azguard help blob put
        azguard help conditions
        azguard help blob put --json --query 'commands[0].statuses'

    Topics: exit-status, output
    """
    words = command or []
    is_topic = len(words) == 1 and words[0] in pages.TOPICS
    if json and not is_topic:
        _describe(env, words)
        return
    if json:
        raise UsageError(f"the topic {words[0]} is text, not data", hint=f"azguard help {words[0]}")
    text = pages.render_topic(words[0], layout.find_width()) if is_topic else _help_of(words)
    sys.stdout.write(layout.emphasize(text, sys.stdout) + "\n")


def _describe(env: Environment, words: Sequence[str]) -> None:
    """Describe a command, or all commands of a noun, as data; as JSON where no format was asked for."""
    from azguard.cli.help import description

    found, path = _find(words)
    name = " ".join(path[1:])
    commands = found.walk(name) if isinstance(found, Group) else [(name, found)]
    out = env.out if env.shared.get("output") else replace(env.out, format="json")
    out.show(description.describe_all(commands))


def _help_of(words: Sequence[str]) -> str:
    """Return the help of a command, with its notes."""
    found, path = _find(words)
    text = pages.HelpText(found.help)
    shown = layout.render_page(" ".join(path))
    return pages.with_notes(shown, text) if words and text.notes else shown


def _find(words: Sequence[str]) -> tuple[Group | Command, list[str]]:
    """Return the command or the group that words name, and its whole name."""
    found, names, left = root.follow(words)
    path = [ROOT, *names]
    if left:
        raise _build_unknown(found, path, left[0])
    return found, path


def _build_unknown(asked: TreeNode, path: Sequence[str], word: str) -> UsageError:
    """Return the error for what is neither a command nor a topic, with the most similar name."""
    from difflib import get_close_matches

    is_root = asked is root
    if is_root and word in pages.TOPICS:
        return UsageError(f"the topic {word} has no parts", hint=f"azguard help {word}")
    known = asked.list_names() if isinstance(asked, Group) else []
    similar = get_close_matches(word, [*known, *(pages.TOPICS if is_root else ())], n=1)
    line = " ".join([ROOT, "help", *path[1:]])
    what = "command or topic" if is_root else "command"
    return UsageError(
        f"{' '.join(path)} has no {what} {word!r}",
        hint=f"did you mean: {line} {similar[0]}" if similar else line,
    )


@app.command("version")
def version(env: Environment) -> None:
    """Print the version of azguard; with -o or --query as data.

    Examples:
        azguard version
        azguard version --query version -o tsv
    """
    if env.shared.get("output") or env.shared.get("query"):
        env.out.show({"version": __version__})
    else:
        sys.stdout.write(f"azguard {__version__}\n")


@app.command("completion")
def completion_(
    env: Environment,
    shell: Annotated[str, argument("bash|zsh|fish|powershell", "The shell.")],
) -> None:
    """Print the script that completes commands, options, and names of containers and blobs.

    Examples:
        eval "$(azguard completion bash)"   # in ~/.bashrc
        eval "$(azguard completion zsh)"    # in ~/.zshrc
        azguard completion fish | source    # in ~/.config/fish/config.fish
        azguard completion powershell | Out-String | Invoke-Expression  # in $PROFILE
    """
    sys.stdout.write(completion.of(shell))
