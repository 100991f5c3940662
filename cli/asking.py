"""Questions on the terminal, for what cannot be undone."""

import sys

from azguard.cli import signals, terminal
from azguard.errors import Interrupted

#: The reason of a run that ends because a person declined.
DECLINED = "declined"


def on_terminal() -> bool:
    """Return whether there is a person to ask: stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def asks_to_go_on(question: str) -> bool:
    """Ask on the terminal whether to go on, which is what Enter means; the end of the input is a no."""
    sys.stderr.write(f"{terminal.printable(question)} [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")


def confirm(question: str, otherwise: str) -> None:
    """Ask on the terminal; only a yes is one.

    Raises:
        Interrupted: the answer is another; ``otherwise`` says what was not done.
    """
    sys.stderr.write(f"{terminal.printable(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        signals.state.declined = True
        raise Interrupted(otherwise, reason=DECLINED)
