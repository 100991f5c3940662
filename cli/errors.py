"""How a run ends: every exception becomes an exit status and words, here and nowhere else."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from azguard.cli import signals
from azguard.cli.output import terminal
from azguard.cli.output.stream import silence, tell_of_read
from azguard.documents import controls
from azguard.errors import AzguardError, Changed, ConfigError, Gone, Interrupted, OutputFailed, Partial, UsageError
from azguard.frozen import frozen, mutable

if TYPE_CHECKING:
    from azguard.wire.rows import Operation

T = TypeVar("T")
_CLOSED_PIPE = 141  # 128 + SIGPIPE, what any program gets whose reader has gone


@frozen
class SharedState:
    """The state that runs in one process share: a clock, and values made once. The lines of a batch are runs."""

    clock: Callable[[], float] = time.monotonic
    #: What is made once, such as an account with its connections, by what it is made of.
    _kept: dict[Any, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def keep(self, made_of: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the thing of this key; the first call makes it."""
        with self._lock:
            if made_of not in self._kept:
                self._kept[made_of] = make()
            found: T = self._kept[made_of]
            return found


@mutable
class Facts:
    """What is known of a run so far; an error is told with it, wherever the run ended."""

    #: All that was typed.
    argv: tuple[str, ...] = ()
    #: The options that every command shares, by name.
    shared: dict[str, Any] = field(default_factory=dict)
    #: The operation whose conditions the command takes.
    operation: "Operation | None" = None
    #: Whether it reads or writes blobs, which may be encrypted with a key of the user's.
    takes_key: bool = False
    #: The command's name, such as ``blob put``, and the values of its own options and arguments.
    command: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    #: The names of the options in the order that they were typed.
    order: list[str] = field(default_factory=list)
    #: The context of a command or a group, and its parser, which has read what was typed.
    parsed: Any = None
    #: What the run has in common with others in this process; None where it is the only one.
    common: SharedState | None = None
    #: The command of a line that was read and keeps its rules.
    ready: Any = None
    #: What is to be done once the result is told.
    once_told: list[Callable[[], object]] = field(default_factory=list)

    def note_told(self) -> None:
        for each in self.once_told:
            each()


class CommandMissing(UsageError):
    """A group was typed without one of its commands: people are shown its help. Its values name the ``path``."""


def report(error: BaseException, facts: Facts, environ: Mapping[str, str]) -> int:
    """Tell the error on stderr and return the exit status."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        return _CLOSED_PIPE
    known = _as_known(error)
    status = error.status if isinstance(error, signals.EndedBySignal) else known.exit_code
    is_delivered = deliver(sys.stdout, status)
    _tell(_words(error, known, facts, environ))
    # What came before either error has been told.
    if is_delivered and isinstance(known, (Partial, Interrupted)):
        facts.note_told()
    return status


def deliver(stream: TextIO, status: int = 0) -> bool:
    """Flush the result of a run that ends with a status, and return whether it went; a reader may have gone."""
    # A signal must not deny work that is done, and must not wait for a reader that has stopped.
    signals.hasten(status or OutputFailed.exit_code)
    try:
        stream.flush()
    except BrokenPipeError:
        silence(stream)
        return False
    except OutputFailed:
        silence(stream)
        if not status:
            raise
        return False
    return True


def _words(error: BaseException, known: AzguardError, facts: Facts, environ: Mapping[str, str]) -> str:
    # Hundreds of words, for errors alone.
    from azguard.cli import redaction
    from azguard.cli.parsing import command_line

    shared, argv = facts.shared, facts.argv
    text = ""
    if shared.get("debug") or "--debug" in argv:
        import traceback

        text = "".join(traceback.format_exception(error))
    known, secrets = explain(known, facts, environ)
    text = controls.escape(redaction.redact(text, secrets))
    # Typer knows no output where it could not read the command line to its end.
    output = shared.get("output")
    if output == "json" if output else command_line.wants_json(argv):
        told = json.dumps({"error": redaction.redact_values(known.as_json(), secrets)}, indent=2, ensure_ascii=False)
        return text + (controls.escape_json(told) if terminal.is_terminal(sys.stderr) else told)
    if isinstance(error, CommandMissing):
        from azguard.cli.help import layout

        text += layout.emphasize(layout.render_page(str(error.values["path"])), sys.stderr) + "\n"
        if not any(word.strip("-") and word.startswith("-") for word in argv):
            return text[:-1]
        known = known.but(hint=None)
    words = redaction.redact(_for_people(known, quiet=bool(shared.get("quiet"))), secrets)
    words = terminal.spell(words, sys.stderr)
    plain = {**shared, "no_color": shared.get("no_color") or "--no-color" in argv}
    return text + (terminal.paint_labels(words) if terminal.is_colored(sys.stderr, plain, environ) else words)


def describe(error: BaseException, facts: Facts, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON error object of a run."""
    from azguard.cli import redaction

    known, secrets = explain(_as_known(error), facts, environ)
    described: dict[str, Any] = redaction.redact_values(known.as_json(), secrets)
    return described


def explain(known: AzguardError, facts: Facts, environ: Mapping[str, str]) -> tuple[AzguardError, list[str]]:
    """Return an error in the words of the command line, and the secrets that they may not show."""
    from azguard.cli import redaction
    from azguard.cli.words import hints

    operation, argv = facts.operation, facts.argv
    if isinstance(known, OutputFailed) and operation is not None and not operation.writes:
        known = tell_of_read(known)
    known = hints.in_words(known, argv)
    known = known.but(hint=hints.keep(known.hint or hints.of(known, facts.command, facts.params, argv), argv))
    return known, redaction.find_secrets(facts.shared, environ, argv)


def _tell(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # The reader has gone; the exit status still tells.


def _as_known(error: BaseException) -> AzguardError:
    if isinstance(error, AzguardError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_folder_gone():
        return ConfigError("the folder that you are in was deleted", hint="cd to another one, and type it again")
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return AzguardError(f"{where}{error.strerror}")
    first = (str(error).splitlines() or [""])[0]
    return AzguardError(
        f"azguard met something it does not know: {type(error).__name__}: {first}",
        hint="please report this, with what --debug shows",
    )


def _is_folder_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _for_people(error: AzguardError, *, quiet: bool) -> str:
    # To decline a question is a choice, and no error.
    lines = [error.message if error.reason == signals.DECLINED else f"error: {error.message}"]
    # No service tells another's receipt; the message says all that is known.
    if isinstance(error, Changed) and error.expected_etag and error.reason != "receipt_stale":
        now = f"it is now {error.current_etag}" if error.current_etag else "that is no longer the current version"
        now = "and there is nothing now" if isinstance(error, Gone) else now
        lines.append(f"  you have {error.expected_etag}, {now}")
    elif isinstance(error, Changed) and error.current_etag:
        lines.append(f"  it is now {error.current_etag}")
    lines += [f"  {line}" for line in error.detail]
    if error.hint and not quiet:
        lines.append(f"hint: {error.hint}")
    return "\n".join(terminal.printable(line) for line in "\n".join(lines).split("\n"))
