"""How a run ends: every exception becomes an exit status and words, here and nowhere else."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import typer

from azguard.cli import groups, ways_out
from azguard.cli.output import UNDELIVERED
from azguard.errors import AzguardError, Changed, Interrupted, UsageError

_CLOSED_PIPE = 141  # 128 + SIGPIPE, what any program gets whose reader has gone


# Windows has no SIGHUP.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP; handled as Ctrl-C is, but with an exit status of its own: 143 or 129."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does, so that what was begun is settled and released."""
    for number in _ENDING:
        # What we were started to ignore, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)


def _terminate(number: int, frame: object) -> None:
    raise Terminated(number)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C, TERM and HUP while telling what is done already; 130 would say that it is not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def report(error: BaseException, meta: Mapping[str, Any], argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Tell what went wrong on stderr and return the exit status; ``meta`` is what the run left of itself."""
    if isinstance(error, typer.Exit):
        return close_stdout(sys.stdout, error.exit_code)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):
        _silence(sys.stdout)
        return _CLOSED_PIPE
    shared = meta.get(groups.SHARED, {})
    text = ""
    if shared.get("debug") or "--debug" in argv:
        import traceback

        text = "".join(traceback.format_exception(error))
    known = _known(error)
    command, params = meta.get(groups.COMMAND, ("", {}))
    known.hint = known.hint or ways_out.of(known, command, params, argv)
    from azguard import redaction

    secrets = redaction.handed(shared, environ, argv)
    text = redaction.redacted(text, secrets)
    if _wants_json(shared, argv):
        text += json.dumps({"error": redaction.redacted_values(known.known(), secrets)}, indent=2, ensure_ascii=False)
    else:
        text += redaction.redacted(_for_people(known, quiet=bool(shared.get("quiet"))), secrets)
    status = close_stdout(sys.stdout, known.exit_code)
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # Nobody is listening; the exit status still tells.
    return error.status if isinstance(error, Terminated) else status


def close_stdout(stream: TextIO, status: int = 0) -> int:
    """Flush the result; a reader that has gone is no failure of what was done, a full disk is said."""
    try:
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError as error:
        _silence(stream)
        if not status:
            sys.stderr.write(f"error: {UNDELIVERED}: {error.strerror}\n")
        return status or 1
    return status


def _known(error: BaseException) -> AzguardError:
    if isinstance(error, AzguardError):
        return error
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return Interrupted("interrupted")
    if isinstance(error, typer.TyperException):
        return _usage(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else "the output cannot be written: "
        return AzguardError(f"{where}{error.strerror}")
    first = (str(error).splitlines() or [""])[0]
    return AzguardError(
        f"azguard met something it does not know: {type(error).__name__}: {first}",
        hint="please report this, with what --debug shows",
    )


def _usage(error: Any) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "azguard"
    message = error.format_message()
    return UsageError(message[:1].lower() + message[1:], hint=f"{path} --help")


def _for_people(error: AzguardError, *, quiet: bool) -> str:
    lines = [f"error: {error.message}"]
    if isinstance(error, Changed) and error.expected_etag:
        now = f"it is now {error.current_etag}" if error.current_etag else "that is no longer the current version"
        lines.append(f"  you have {error.expected_etag}, {now}")
    lines += [f"  {line}" for line in error.detail]
    if error.hint and not quiet:
        lines.append(f"hint: {error.hint}")
    return "\n".join(_printable(line) for line in "\n".join(lines).split("\n"))


def _printable(text: str) -> str:
    # A blob's name must not be able to drive the terminal.
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _wants_json(shared: Mapping[str, Any], argv: Sequence[str]) -> bool:
    """Return whether ``-o json`` was typed, also where the command line could not be read to its end."""
    if shared.get("output"):
        return bool(shared["output"] == "json")
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    pairs = zip(own, [*own[1:], ""], strict=True)
    return any(
        word in ("-ojson", "--output=json") or (word in ("-o", "--output") and after == "json") for word, after in pairs
    )


def _silence(stream: TextIO) -> None:
    """Point a broken stdout at nothing, so that the interpreter's own flush at exit stays quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass  # There is no stdout to point anywhere.
