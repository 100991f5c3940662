"""How a run ends: every exception becomes an exit status and words, here and nowhere else."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import typer

from azguard.cli import signals
from azguard.cli.output import terminal
from azguard.cli.output.stream import silence, tell_of_read
from azguard.cli.parsing import command_spec
from azguard.documents import controls
from azguard.errors import AzguardError, Changed, ConfigError, Gone, Interrupted, OutputFailed, UsageError

# How the parser tells words that no argument takes.
_EXTRA = re.compile(r"Got unexpected extra argument\S* \((.*)\)", re.DOTALL)

_CLOSED_PIPE = 141  # 128 + SIGPIPE, what any program gets whose reader has gone


def report(error: BaseException, meta: Mapping[str, Any], argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Tell what went wrong on stderr and return the exit status; ``meta`` is what the run left of itself."""
    if isinstance(error, typer.Exit):
        try:
            deliver(sys.stdout, error.exit_code)
        except OutputFailed as failure:
            error = failure
        else:
            return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        return _CLOSED_PIPE
    known = _as_known(error, argv)
    status = error.status if isinstance(error, signals.EndedBySignal) else known.exit_code
    deliver(sys.stdout, status)
    _tell(_words(error, known, meta, argv, environ))
    return status


def deliver(stream: TextIO, status: int = 0) -> None:
    """Flush the result of a run that ends with a status; a reader that has gone is no failure of what was done."""
    # A signal must not say of what is done that it is not, nor wait for a reader that reads no more.
    signals.hasten(status or OutputFailed.exit_code)
    try:
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OutputFailed:
        silence(stream)
        if not status:
            raise


def _words(
    error: BaseException, known: AzguardError, meta: Mapping[str, Any], argv: Sequence[str], environ: Mapping[str, str]
) -> str:
    # Hundreds of words, for errors alone.
    from azguard.cli import help_text, redaction
    from azguard.cli.parsing import command_line
    from azguard.cli.parsing.groups import CommandMissing
    from azguard.cli.words import hints

    shared = meta.get(command_spec.SHARED, {})
    text = ""
    if shared.get("debug") or "--debug" in argv:
        import traceback

        text = "".join(traceback.format_exception(error))
    command, params = meta.get(command_spec.COMMAND, ("", {}))
    operation = meta.get(command_spec.OPERATION)
    if isinstance(known, OutputFailed) and operation is not None and not operation.writes:
        known = tell_of_read(known)
    known = hints.in_words(known, argv)
    known = known.but(hint=hints.keep(known.hint or hints.of(known, command, params, argv), argv))
    secrets = redaction.find_secrets(shared, environ, argv)
    text = controls.escape(redaction.redact(text, secrets))
    # Typer knows no output where it could not read the command line to its end.
    output = shared.get("output")
    if output == "json" if output else command_line.wants_json(argv):
        told = json.dumps({"error": redaction.redact_values(known.as_json(), secrets)}, indent=2, ensure_ascii=False)
        return text + (controls.escape_json(told) if terminal.is_terminal(sys.stderr) else told)
    if isinstance(error, CommandMissing):
        return text + help_text.emphasize(error.help, sys.stderr)
    words = redaction.redact(_for_people(known, quiet=bool(shared.get("quiet"))), secrets)
    words = terminal.spell(words, sys.stderr)
    plain = {**shared, "no_color": shared.get("no_color") or "--no-color" in argv}
    return text + (terminal.paint_labels(words) if terminal.is_colored(sys.stderr, plain, environ) else words)


def _tell(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # The reader has gone; the exit status still tells.


def _as_known(error: BaseException, argv: Sequence[str]) -> AzguardError:
    if isinstance(error, AzguardError):
        return error
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return Interrupted("interrupted")
    if isinstance(error, typer.TyperException):
        return _usage(error, argv)
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


def _usage(error: Any, argv: Sequence[str]) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "azguard"
    option = getattr(error, "option_name", None)
    from azguard.cli.words import guesses

    if context is not None and option is not None and hasattr(error, "possibilities"):
        hint = guesses.hint_for_option(context.command, path.split()[1:], option, argv)
        return UsageError(f"no such option: {option}", hint=hint)
    message, hint = error.format_message(), guesses.hint_for_values(argv) or f"{path} --help"
    if context is not None and (extra := _EXTRA.fullmatch(message)):
        takes_file = "-f" in guesses.list_shown_options(context.command)
        named = (
            f"an address is one word, such as site/config.json{', and -f names a file or folder' if takes_file else ''}"
        )
        return UsageError(f"`{path}` takes fewer words; these are too many: {extra[1]}", hint=f"{named}: {hint}")
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def _for_people(error: AzguardError, *, quiet: bool) -> str:
    # To decline a question is a choice, and no error.
    lines = [error.message if error.reason == signals.DECLINED else f"error: {error.message}"]
    # No service tells another's receipt, and what is said of it says all.
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
