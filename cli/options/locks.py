"""The options of a lock that is held, how it is acquired, and of a command that runs under one."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.cli.context import Environment
from azguard.cli.options import common, leases
from azguard.cli.options.types import DURATION, FILE, TEXT, choice, whole
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules import checked, excludes, only_for
from azguard.errors import GaveUp, LockLost, UsageError
from azguard.frozen import frozen
from azguard.leases.owner_records import ProcessLeases
from azguard.leases.owners import Owner
from azguard.leases.state import DEFAULT_SECONDS
from azguard.requests.deadline import Deadline
from azguard.wire import listeners

if TYPE_CHECKING:
    from azguard.locks.guarded_run import GuardedCommand
    from azguard.locks.lock_blobs import AcquireSettings, LockRequest

# As large as the ids of CI runs, and what other tools can read as a number.
_HIGHEST_SEQUENCE = 2**63 - 1
# Of the time after which a lock is lost, renewals and answers that are late need the rest.
_PART_FOR_GRACE = 3


Shared = Annotated[bool, flag("--shared", "Hold it as a reader, beside others; a run without --shared is alone.")]


@frozen
class LockOptions:
    """What lock run and lock hold say of the lock."""

    slots: Annotated[
        int, option("--slots", "N", "Let N jobs hold it at a time; all give the same N.", whole(1, 1000))
    ] = 1
    fair: Annotated[bool, flag("--fair/--no-fair", "Wait in the order of arrival.")] = True
    sequence: Annotated[
        int | None,
        option(
            "--sequence", "N", "Refuse to run (exit 42) once a higher N has had the lock.", whole(0, _HIGHEST_SEQUENCE)
        ),
    ] = None
    shared: Shared = False
    lease_duration: leases.LeaseDuration = DEFAULT_SECONDS
    no_create: Annotated[bool, flag("--no-create", "Do not create a lock blob that is missing.")] = False
    lock_container: common.LockContainer = None
    reason: common.Reason = None
    log: Annotated[bool, flag("--log/--no-log", "Add a line to the lock's history.")] = True
    metrics: Annotated[
        Path | None,
        option("--metrics", "FILE", "Keep waits, holds and losses in this file, as OpenMetrics text.", FILE),
    ] = None

    RULES: ClassVar = (
        excludes("--shared", "--slots", "readers have no number, and writers are alone"),
        excludes("--shared", "--sequence", "of readers beside each other, none is the newest"),
        excludes("--shared", "--no-fair", "the queue is what lets a writer in between readers"),
        excludes("--sequence", "--slots", "of runs beside each other, none is the newest"),
        only_for("--slots --shared", "blob", "it takes blobs beside the lock", "lock a name instead"),
    )

    @property
    def metrics_file(self) -> Path | None:
        """Return the file for a scraper: also a process in the background writes it, which has another folder."""
        return None if self.metrics is None else self.metrics.absolute()

    def request(self, target: Target) -> "LockRequest":
        """Return which lock is asked for."""
        from azguard.locks.lock_blobs import LockRequest

        return LockRequest(target, self.slots, self.sequence, self.shared)

    def settings(self, env: Environment, owner: Owner) -> "AcquireSettings":
        """Return how the lock is acquired."""
        found = acquire_settings(env, owner, self.lease_duration, create=not self.no_create)
        return replace(found, is_fair=self.fair, keeps_log=self.log)


def acquire_settings(env: Environment, owner: Owner, seconds: int, *, create: bool) -> "AcquireSettings":
    """Return how a lock is acquired; ``seconds`` is the term of its lease."""
    from azguard.locks import job_locks  # a help text must not wait for it
    from azguard.locks.hold_records import JobScope
    from azguard.locks.lock_blobs import ANSWER_SECONDS, AcquireSettings

    def refuse_own(request: "LockRequest", wait: float) -> None:
        job_locks.refuse_own(request, wait, env.holds, JobScope(env.scope, env.job), env.deadline.fresh())

    return AcquireSettings(
        owner=owner,
        seconds=seconds,
        create=create,
        patience=Deadline(env.deadline.seconds, answer_seconds=ANSWER_SECONDS),
        records=env.lease_records,
        processes=ProcessLeases(env.folders.process_leases),
        say=env.out.say,
        tell=listeners.tell_listeners,
        uniform=random.SystemRandom().uniform,
        refuse_own=refuse_own,
    )


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
        checked("--grace", "at most a third of the time after which the lock is lost", "locks.check_grace"),
        checked("ADDRESS... --", "the words before -- are addresses, those behind it are the command", "locks.split"),
    )

    def build_command(
        self, env: Environment, words: Sequence[str], address: str | None, *, is_fenced: bool = True
    ) -> "GuardedCommand":
        """Return the command that runs under the lock; ``address`` is that of the lock, if there is one alone."""
        from azguard.locks.environment import is_under_lock
        from azguard.locks.guarded_run import GuardedCommand

        return GuardedCommand(
            words=words,
            environ=env.environ,
            grace=self.grace,
            on_lost=self.on_lost,
            say=env.out.say,
            address=address,
            heartbeat=None if self.heartbeat_file is None else Path(self.heartbeat_file),
            is_nested=is_under_lock(env.environ),
            is_fenced=is_fenced,
            busy_status=self.conflict_exit_code,
            lost_status=self.lost_exit_code,
        )

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
