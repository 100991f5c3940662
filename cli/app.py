"""The command line's front door: how a run begins and ends.

A command's module is imported when that command runs. Help, the version and completion need no parser either.
"""

import os
import sys
from typing import TYPE_CHECKING

from azguard import __version__

if TYPE_CHECKING:
    from azguard.cli.errors import Facts


def run(argv: list[str]) -> int:
    """Run one command line and return its exit status; nothing but a result ever reaches stdout."""
    if _show_page(argv):
        return 0
    from azguard.cli import errors, signals
    from azguard.cli.output import stream

    stream.open_streams()
    if "_AZGUARD_COMPLETE" in os.environ:
        return _complete()
    facts = errors.Facts(tuple(argv))
    try:
        signals.end_in_order()
        status = 0 if _tell_of_itself(argv) else _parse_and_call(facts)
        if errors.deliver(sys.stdout, status):
            facts.note_told()
    except BaseException as error:  # noqa: BLE001  # the one place where every end becomes an exit status
        # Not a call: Python runs a signal's handler where a function begins.
        signals.state.over = True
        status = errors.report(error, facts, os.environ)
    signals.hasten(status)
    stream.flush_messages()
    return status


def _show_page(argv: list[str]) -> bool:
    """Show the help of a command if that is all that was typed, with no more imports than it needs.

    Where it cannot be written, nothing is said yet: then the usual way is gone, which tells what is wrong.
    """
    asks = argv[-1:] in (["--help"], ["-h"])
    if "_AZGUARD_COMPLETE" in os.environ or not (asks or set(argv) <= {"--"}):
        return False
    from azguard.cli.help import layout

    page = layout.find_page(" ".join(["azguard", *argv[:-1]]) if asks else "azguard")
    try:
        return page is not None and layout.write(page, sys.stdout)
    except (OSError, AttributeError):
        return False


def _complete() -> int:
    from azguard.cli import completion, errors
    from azguard.errors import OutputFailed

    # In one piece: it fits the buffer, so that a shell that has gone shows itself when it is closed.
    sys.stdout.write("".join(f"{line}\n" for line in completion.answer(os.environ)))
    try:
        errors.deliver(sys.stdout)
    except OutputFailed as failure:
        return failure.exit_code
    return 0


def _tell_of_itself(argv: list[str]) -> bool:
    """Show the help or the version, if it was typed; return whether it was.

    A line that is not understood up to there is left to the parser, which says what is wrong.
    """
    if set(argv) <= {"--"}:
        argv = ["--help"]
    if any(word in ("--help", "-h", "--version", "-V") for word in argv):
        from azguard.cli.parsing.tree import walk

        typed = walk(argv)
        if typed.unknown in ([], ["--help"], ["-h"]) and typed.options.get("version"):
            sys.stdout.write(f"azguard {__version__}\n")
            return True
        if typed.unknown in (["--help"], ["-h"]):
            from azguard.cli.help import layout

            layout.show(" ".join(["azguard", *typed.path]))
            return True
    return False


def _parse_and_call(facts: "Facts") -> int:
    from azguard.cli.parsing import parser  # Typer alone costs five times a bare Python

    return parser.parse_and_call(facts, list(facts.argv))
