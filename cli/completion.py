"""Shell completion: commands, options, their values, and the names of containers, blobs and tables.

A shell's script runs ``azguard`` with ``_AZGUARD_COMPLETE`` set to the shell's name and ``_AZGUARD_LINE`` to the line
up to the cursor; the answer is one candidate per line, a tab, and what it is. Nothing is ever said on stderr.
"""

import re
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from typer.core import TyperGroup

from azguard.address import Kind, parse
from azguard.blobs.listing import BlobPrefix, list_blobs
from azguard.cli.completion_scripts import LINE, SHELL, WORD
from azguard.cli.registry import COMMANDS, ROOT
from azguard.folders import Folders

# A shell that hangs after Tab is worse than one that offers nothing.
SECONDS = 2.0
_MOST = 200
_CHOICES = re.compile(r"[A-Za-z]+(\|[A-Za-z]+)+")
# The kinds of resources whose names can be offered, and how each is written.
_LEASABLE = {Kind.BLOB: "CONTAINER/NAME", Kind.CONTAINER: "NAME"}
_NAMED = {**_LEASABLE, Kind.TABLE: "NAME", Kind.ENTITY: "TABLE/PARTITION/ROW"}
Candidate = tuple[str, str]


@dataclass
class Typed:
    """What was typed so far: the command, the options with their values, and how many arguments."""

    command: Any
    options: dict[str, Any] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    pending: Any = None  # the option whose value comes next
    rest: bool = False  # behind "--"


def answer(root: Any, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that a shell's script reads."""
    words, incomplete = split(environ.get(LINE, ""))
    fragment = environ.get(WORD, incomplete)
    # Bash replaces only what stands behind the last ":" or "=".
    kept = len(incomplete) - len(fragment) if incomplete.endswith(fragment) else 0
    for value, meaning in candidates(root, words[1:], incomplete, environ):
        shown = value[kept:] if environ[SHELL] == "bash" else value
        if shown.isprintable():
            yield shown if environ[SHELL] == "bash" else f"{shown}\t{meaning}"


def split(line: str) -> tuple[list[str], str]:
    """Return the words of a line, and the last one, which is not finished yet."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        fresh = not closing and (not line or line[-1].isspace())
        return (words, "") if fresh or not words else (words[:-1], words[-1])
    return [], ""


def candidates(root: Any, words: Sequence[str], incomplete: str, environ: Mapping[str, str]) -> list[Candidate]:
    """Return what may stand in the place of ``incomplete``, with what each is."""
    typed = _walked(root, words)
    if typed.rest:
        return []
    option, equals, _ = incomplete.partition("=")
    if typed.pending is not None:
        found = _values(typed.pending, environ)
    elif equals and (param := _option(typed.command, option)) is not None:
        found = [(f"{option}={each}", meaning) for each, meaning in _values(param, environ)]
    elif incomplete.startswith("-"):
        found = _options(typed.command)
    elif isinstance(typed.command, TyperGroup):
        found = _commands(typed.command)
    else:
        found = _arguments(typed, incomplete, environ)
    return [each for each in found if each[0].startswith(incomplete)]


def _walked(root: Any, words: Sequence[str]) -> Typed:
    typed = Typed(root)
    for word in words:
        if typed.pending is not None:
            typed.options[typed.pending.name], typed.pending = word, None
        elif word == "--":
            typed.rest = True
            break
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            param = _option(typed.command, name)
            if param is not None and param.is_flag:
                typed.options[param.name] = True
            elif param is not None and equals:
                typed.options[param.name] = value
            else:
                typed.pending = param
        elif isinstance(typed.command, TyperGroup):
            typed.command = _subcommand(typed.command, word) or typed.command
        else:
            typed.arguments.append(word)
    return typed


def _subcommand(group: Any, name: str) -> Any:
    return group.get_command(None, name)


def _option(command: Any, name: str) -> Any:
    return next((param for param in command.params if name in param.opts), None)


def _options(command: Any) -> list[Candidate]:
    shown = [param for param in command.params if param.param_type_name == "option" and not param.hidden]
    return [(param.opts[0], _first(param.help or "")) for param in shown] + [("--help", "Show what it does.")]


def _values(param: Any, environ: Mapping[str, str]) -> list[Candidate]:
    """Return the values an option takes; none leaves it to the shell, which offers files."""
    if param.name == "profile":
        return _profiles(environ)
    if param.metavar and _CHOICES.fullmatch(param.metavar):
        return [(each, "") for each in param.metavar.split("|")]
    return []


def _arguments(typed: Typed, incomplete: str, environ: Mapping[str, str]) -> list[Candidate]:
    places = [param for param in typed.command.params if param.param_type_name == "argument"]
    position = len(typed.arguments)
    if not places or (position >= len(places) and places[-1].nargs != -1):
        return []
    metavar = (places[min(position, len(places) - 1)].metavar or "").strip("[].")
    if _CHOICES.fullmatch(metavar):
        return [(each, "") for each in metavar.split("|")]
    if metavar == "CONTAINER/NAME":
        return _resources(typed, incomplete, Kind.BLOB, environ)
    of_container = typed.command.callback.__module__.endswith(".container")
    if metavar == "CONTAINER" or (metavar == "NAME" and of_container):
        return _resources(typed, incomplete, Kind.CONTAINER, environ)
    if metavar in ("TABLE", "TABLE/PARTITION/ROW"):
        return _resources(typed, incomplete, Kind.TABLE if metavar == "TABLE" else Kind.ENTITY, environ)
    if metavar == "NAME" and typed.command.callback.__module__.endswith(".profile"):
        return _profiles(environ)
    if "ADDRESS" not in metavar:
        return []
    kinds = _LEASABLE if typed.command.callback.__module__.endswith(".lease") else _NAMED
    prefix, colon, rest = incomplete.partition(":")
    if not colon:
        return [(f"{kind}:", meaning) for kind, meaning in kinds.items()]
    if prefix not in kinds:
        return []
    return [(f"{prefix}:{each}", meaning) for each, meaning in _resources(typed, rest, Kind(prefix), environ)]


def _profiles(environ: Mapping[str, str]) -> list[Candidate]:
    from azguard.accounts import profiles
    from azguard.errors import AzguardError

    try:
        return [(name, "") for name in profiles.load(Folders.of(environ).profiles)]
    except AzguardError:
        return []


def _resources(typed: Typed, incomplete: str, kind: Kind, environ: Mapping[str, str]) -> list[Candidate]:
    """Return names that the service lists, in time or not at all."""
    try:
        with _at_most(SECONDS):
            return list(islice(_listed(typed, incomplete, kind, environ), _MOST))
    # Whatever keeps the names from being known, the line being typed must stay as it is.
    except Exception:  # noqa: BLE001
        return []


def _listed(typed: Typed, incomplete: str, kind: Kind, environ: Mapping[str, str]) -> Iterator[Candidate]:
    from azguard.accounts.target import Target
    from azguard.cli import accounts
    from azguard.requests.deadline import Deadline

    folders = Folders.of(environ)
    account = accounts.choose(typed.options, environ, Path(folders.profiles), lambda: accounts.local_emulator(folders))
    if kind.service == "table":
        from azguard.tables import tables

        end = "/" if kind is Kind.ENTITY else ""
        for table in tables.list_tables(account, Deadline(SECONDS), incomplete, _MOST):
            yield f"{table.name}{end}", "table"
        return
    from azguard.blobs import containers

    container, slash, prefix = incomplete.partition("/")
    if kind is Kind.CONTAINER or not slash:
        end = "" if kind is Kind.CONTAINER else "/"
        for each in containers.list_containers(account, Deadline(SECONDS), container or None, _MOST):
            yield f"{each.name}{end}", "container"
        return
    target = Target(account, parse(container, Kind.CONTAINER).address)
    for item in list_blobs(target, Deadline(SECONDS), prefix=prefix or None, delimiter="/", limit=_MOST):
        yield f"{container}/{item.name}", "folder" if isinstance(item, BlobPrefix) else "blob"


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError once the time is up, where the system has a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _commands(group: Any) -> list[Candidate]:

    if group.name == ROOT:
        return [(name, entry.summary) for name, entry in COMMANDS.items()]
    return [(name, _first(group.get_command(None, name).help or "")) for name in group.list_commands(None)]


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]
