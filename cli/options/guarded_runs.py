"""The options of commands that run another one under a lock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from azguard.cli.input import values
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import flag, option
from azguard.errors import GaveUp, LockLost, UsageError

# As everything in azguard waits; by then a crashed holder's lease has ended.
_WAIT_SECONDS = 60.0
_GRACE_SECONDS = 5.0
# Of the time after which a lock is lost, renewals and answers that are late need the rest.
_PART_FOR_GRACE = 3
ON_LOST = ("term", "kill", "continue")

Wait = Annotated[str | None, option("--wait", "DURATION", "Wait this long for the locks; by default, 60s.")]
NoWait = Annotated[bool, flag("--no-wait", "Do not wait.")]
ConflictExitCode = Annotated[
    str | None,
    option("--conflict-exit-code, -E", "N", "Exit with N if others hold a lock; by default, 75."),
]
LostExitCode = Annotated[
    str | None,
    option("--lost-exit-code", "N", "Exit with N if a lock is lost; by default, 77."),
]
Grace = Annotated[
    str | None,
    option("--grace", "DURATION", "Wait between TERM and KILL; by default, 5s."),
]
OnLost = Annotated[
    str,
    option("--on-lost", "term|kill|continue", "Choose how the command ends if a lock is lost."),
]
HeartbeatFile = Annotated[
    str | None,
    option("--heartbeat-file", "FILE", "Refresh this file at each renewal; delete it when a lock is lost or released."),
]


def split(
    words: Sequence[str], argv: Sequence[str], *, example: str = "deploy-prod", needs_lock: bool = True
) -> tuple[list[str], list[str]]:
    """Return the addresses and the command, which ``--`` divides.

    Raises:
        UsageError: one of them is missing.
    """
    command = command_line.split(argv)[1][1:]
    addresses = list(words[: len(words) - len(command)])
    if not command or not command[0]:
        raise UsageError("there is no command to run", hint="write it after --, as in: -- ./deploy.sh")
    if not addresses and needs_lock:
        raise UsageError("there is no lock", hint=f"name it before --, as in: {example} -- ./deploy.sh")
    return addresses, command


def read_wait(text: str | None, *, no_wait: bool = False) -> float:
    """Return how many seconds to wait for other holders."""
    if text is not None and no_wait:
        raise UsageError("--wait and --no-wait contradict each other", hint="leave one of them out")
    if no_wait:
        return 0.0
    return _WAIT_SECONDS if text is None else values.duration(text, "--wait")


def read_grace(text: str | None, seconds: float, what: str, need: str) -> float:
    """Return how many seconds the command has to end.

    ``seconds`` is the time after which the lock is lost, ``what`` is its name, and ``need`` says what needs the rest.
    """
    grace = _GRACE_SECONDS if text is None else values.duration(text, "--grace")
    if grace > seconds / _PART_FOR_GRACE:
        raise UsageError(
            f"--grace {grace:g}s is more than a third of {what}, {seconds:g} s, {need}",
            hint=f"at most --grace {int(seconds // _PART_FOR_GRACE)}s",
        )
    return grace


def read_busy_status(text: str | None) -> int:
    """Return the exit status for a lock that others hold."""
    return GaveUp.exit_code if text is None else values.whole(text, "--conflict-exit-code", 0, 255)


def read_lost_status(text: str | None) -> int:
    """Return the exit status for a lock that is lost, which is no success."""
    return LockLost.exit_code if text is None else values.whole(text, "--lost-exit-code", 1, 255)


def read_heartbeat(text: str | None) -> Path | None:
    """Return the file that says until when the lock is held; None is no file."""
    found = values.not_empty(text, "--heartbeat-file")
    return None if found is None else Path(found)
