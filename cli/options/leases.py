"""The options of leases and locks: how one is acquired, held and broken, and of a command that runs under a lock."""

import random
from collections.abc import Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.cli import redaction, signals
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import DURATION, FILE, TEXT, ValueType, choice, read_seconds, seconds, whole
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules import checked, excludes, only_for
from azguard.errors import GaveUp, LockLost, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases.owners import Owner, describe_this_process
from azguard.leases.process_leases import ProcessLeases
from azguard.leases.state import DEFAULT_SECONDS, LONGEST, LONGEST_BREAK, SHORTEST, Action, LeaseState, operation_of
from azguard.requests.deadline import Deadline
from azguard.times import iso, span
from azguard.wire import listeners

if TYPE_CHECKING:
    from azguard.leases.breaking import BreakDone, Safeguards
    from azguard.leases.shown import LeaseFacts
    from azguard.locks.guarded_run import GuardedCommand
    from azguard.locks.lock_blobs import AcquireSettings, LockRequest


# After its end the service may take up to a minute until it gives a lease to the next, says its documentation.
_SLACK_SECONDS = 60.0


def _read_term(text: str, name: str) -> int:
    if text.strip().lower() in ("-1", "infinite"):
        raise UsageError(f"{name} {text.strip()}: a lease for ever is asked for by name", hint="--infinite")
    return read_seconds(text, name, SHORTEST, LONGEST)


TERM = ValueType("duration", _read_term, DURATION.write, bounds=(SHORTEST, LONGEST))
LeaseDuration = Annotated[
    int,
    option("--lease-duration", "DURATION", "End it this long after its last renewal, 15s to 60s.", TERM),
]


def conditions(env: Environment, target: Target, action: Action | None, lease_id: str | None = None) -> Conditions:
    """Return the conditions of an operation on a lease of this kind of resource."""
    return env.conditions(target, operation=operation_of(target, action), lease_id=lease_id)


def this_process(env: Environment, command: str, reason: str | None = None, *, is_lasting: bool = False) -> Owner:
    """Return the owner record of this process; ``command`` is the published part of the command."""
    secrets = redaction.find_secrets(env.shared, env.environ)
    return describe_this_process(
        command,
        reason,
        env.environ,
        redact=lambda text: redaction.redact(text, secrets),
        is_lasting=is_lasting,
    )


def wait_free(env: Environment, target: Target, patience: Deadline) -> LeaseState:
    """Wait until a lease is free, saying who holds it."""
    from azguard.leases import shown

    return shown.wait_until_free(target, patience, lambda state: say_waiting(env, state), random.SystemRandom().uniform)


def say_waiting(env: Environment, state: LeaseState) -> None:
    """Say who holds the lease that is waited for."""
    from azguard.leases import shown

    env.out.info(f"waiting: {state.address} is {shown.describe(state)}")


@frozen
class BreakOptions:
    """The options of a break, as typed."""

    lease_break_period: Annotated[
        int | None,
        option(
            "--lease-break-period",
            "DURATION",
            "Let the lease last this much longer, 0 to 60s.",
            seconds(0, LONGEST_BREAK),
        ),
    ] = None
    yes: common.Yes = False
    if_owner: Annotated[str | None, option("--if-owner", "NAME", "Only if this user or host holds it.", TEXT)] = None
    if_older_than: Annotated[
        float | None, option("--if-older-than", "DURATION", "Only if it was taken longer ago than this.", DURATION)
    ] = None
    if_run_finished: Annotated[
        bool, flag("--if-run-finished", "Only if GitHub or Azure Pipelines says that its CI run is over.")
    ] = False
    reason: Annotated[
        str | None, option("--reason", "TEXT", "Say why you break it; the history of a lock shows it.")
    ] = None
    waiting: common.OptionalWaitOptions = field(default_factory=common.OptionalWaitOptions)
    dry_run: Annotated[bool, flag("--dry-run", "Show who holds it; break nothing.")] = False

    RULES: ClassVar = (
        excludes(
            "--if-owner --if-older-than --if-run-finished",
            "--if-none-match --if-modified-since --if-unmodified-since --if-tags",
            "they judge one version of the blob, which the other condition does not name",
            "leave one of them out, or name the version: --etag",
        ),
        checked("ADDRESS", "a terminal to ask on, or an option that says what is meant", "leases.break_lease"),
    )

    def build_safeguards(self, env: Environment) -> "Safeguards":
        from azguard.leases.breaking import Safeguards
        from azguard.leases.ci_runs import RunCheck

        run_check = RunCheck(env.environ, env.deadline) if self.if_run_finished else None
        return Safeguards(self.if_owner, self.if_older_than, run_check)


def break_lease(env: Environment, target: Target, given: BreakOptions) -> "BreakDone | LeaseFacts":
    """Show who holds a lease, see that breaking it is meant, and break that very lease; wait for its end if asked to.

    With --dry-run the lease is returned as it is.

    Raises:
        UsageError: nothing says that it is meant, and there is no terminal to ask on.
        GaveUp: it was broken, and is not free in time.
    """
    from azguard.leases import breaking, shown
    from azguard.locks import log

    breaker = this_process(env, f"azguard {env.command}", given.reason)
    request = breaking.BreakRequest(
        target=target,
        period=given.lease_break_period,
        safeguards=given.build_safeguards(env),
        conditions=conditions(env, target, Action.BREAK),
        assume_yes=given.yes,
    )
    if given.dry_run:
        return shown.summarize(breaking.look_before_breaking(request, env.deadline, env.out.info))
    confirm = (lambda: streams.confirm("break it?", "nothing was broken")) if streams.on_terminal() else None
    done = breaking.break_after_showing(request, env.deadline, env.out.info, confirm)
    if done.broken.held_by is None:
        env.out.warn("no record says who held it: whether it was still the lease that was shown cannot be told")
    log.append_break(target, done, breaker, env.out.info)
    if done.lease_time != 0 and given.waiting.wait is None:
        env.out.say(_describe_end(target, done.lease_time))
    if given.waiting.wait is not None:
        # A lease that ends after just as long as that is not missed.
        slack = _SLACK_SECONDS if given.waiting.wait >= LONGEST_BREAK else 0
        patience = env.patience(None, given.waiting.wait + slack)
        with signals.heed():
            wait_free(env, target, patience)
    return done


def _describe_end(target: Target, left: int | None) -> str:
    """Return when the next holder can have the lease; the seconds left can be unknown."""
    seconds = LONGEST_BREAK if left is None else left
    end = iso(datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds))
    return (
        f"{target} stays taken for up to {span(seconds)}: the next one can have it at {end}, or as soon as its holder "
        "releases it"
    )


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
    lease_duration: LeaseDuration = DEFAULT_SECONDS
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
        from azguard.locks.lock_blobs import LockRequest

        return LockRequest(target, self.slots, self.sequence, self.shared)

    def settings(self, env: Environment, owner: Owner) -> "AcquireSettings":
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
        checked("--grace", "at most a third of the time after which the lock is lost", "leases.check_grace"),
        checked("ADDRESS... --", "the words before -- are addresses, those behind it are the command", "leases.split"),
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
