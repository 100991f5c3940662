"""The options of commands that run another one under a lock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from azguard.cli.options import common
from azguard.cli.options.types import DURATION, TEXT, choice, whole
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import option
from azguard.cli.rules.engine import checked
from azguard.errors import GaveUp, LockLost, UsageError
from azguard.frozen import frozen

# Of the time after which a lock is lost, renewals and answers that are late need the rest.
_PART_FOR_GRACE = 3


#: Of commands that only wait: --timeout would look like the time of waiting.


@frozen
class GuardedRunOptions(common.WaitOptions):
    """What a command takes that runs another one under a lock."""

    conflict_exit_code: Annotated[
        int, option("--conflict-exit-code, -E", "N", "Exit with N if others hold a lock.", whole(0, 255))
    ] = GaveUp.exit_code
    lost_exit_code: Annotated[int, option("--lost-exit-code", "N", "Exit with N if a lock is lost.", whole(1, 255))] = (
        LockLost.exit_code
    )
    grace: Annotated[float, option("--grace", "DURATION", "Wait between TERM and KILL.", DURATION)] = 5.0
    on_lost: Annotated[
        str,
        option(
            "--on-lost",
            "term|kill|continue",
            "Choose how the command ends if a lock is lost.",
            choice,
        ),
    ] = "term"
    heartbeat_file: Annotated[
        str | None,
        option(
            "--heartbeat-file",
            "FILE",
            "Refresh this file at each renewal; delete it when a lock is lost or released.",
            TEXT,
        ),
    ] = None

    RULES: ClassVar = (
        checked("--grace", "at most a third of the time after which the lock is lost", "guarded_runs.check_grace"),
        checked(
            "ADDRESS... --", "the words before -- are addresses, those behind it are the command", "guarded_runs.split"
        ),
    )

    @property
    def heartbeat(self) -> Path | None:
        """Return the file that says until when the lock is held; None is no file."""
        return None if self.heartbeat_file is None else Path(self.heartbeat_file)

    def check_grace(self, seconds: float, what: str, need: str) -> None:
        """Refuse a grace that takes more than a third of the time after which the lock is lost.

        ``seconds`` is that time, ``what`` is its name, and ``need`` says what needs the rest.
        """
        if self.grace > seconds / _PART_FOR_GRACE:
            raise UsageError(
                f"--grace {self.grace:g}s is more than a third of {what}, {seconds:g} s, {need}",
                hint=f"at most --grace {int(seconds // _PART_FOR_GRACE)}s",
            )


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
