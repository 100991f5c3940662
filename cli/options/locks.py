"""From the options of the lock commands to a plan for the core."""

import os
import random
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from azguard.accounts import transport
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli import completers, context, redaction
from azguard.cli.context import Environment
from azguard.cli.input import values
from azguard.cli.input.addresses import FILES, locate_designated, locks
from azguard.cli.options import common, guarded_runs, leases
from azguard.cli.parsing.rows import argument, flag, option
from azguard.errors import UsageError
from azguard.leases.actions import DEFAULT_SECONDS, LONGEST, SHORTEST
from azguard.leases.owners import Owner
from azguard.leases.process_leases import ProcessLeases
from azguard.locks.environment import is_under_lock
from azguard.locks.guarded_run import GuardedCommand
from azguard.locks.run import LockPlan, hold_lock
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.processes import child

if TYPE_CHECKING:
    from azguard.locks.terraform import StateGuard


_NOT_SHARED = {
    "--slots": "readers have no number, and writers are alone",
    "--sequence": "of readers beside each other, none is the newest",
    "--no-fair": "the queue is what lets a writer in between readers",
}
# As large as the ids of CI runs, and what other tools can read as a number.
_HIGHEST_SEQUENCE = 2**63 - 1

WaitForOne = Annotated[str | None, option("--wait", "DURATION", "Wait this long for the lock; by default, 60s.")]
Fair = Annotated[bool, flag("--fair/--no-fair", "Wait in the order of arrival.")]
NoCreate = Annotated[bool, flag("--no-create", "Do not create a lock blob that is missing.")]
KeepLog = Annotated[bool, flag("--log/--no-log", "Add a line to the lock's history.")]
Shared = Annotated[bool, flag("--shared", "Hold it as a reader, beside others; a run without --shared is alone.")]
Slots = Annotated[str | None, option("--slots", "N", "Let N jobs hold it at a time; all give the same N.")]
SequenceNumber = Annotated[
    str | None,
    option("--sequence", "N", "Refuse to run (exit 42) once a higher N has had the lock."),
]
Entity = Annotated[
    str,
    argument("TABLE/PARTITION/ROW", "The entity, or its URL.", completer=completers.entities),
]
Select = Annotated[
    list[str] | None,
    option("--select", "NAME,…", "Read only these properties, the keys, the ETag."),
]


@dataclass(frozen=True)
class CheckedLockOptions:
    """What the options of lock run say, without a contradiction."""

    slots: int
    sequence: int | None
    is_shared: bool
    #: The term of the leases, in seconds.
    seconds: int
    #: In seconds.
    wait: float
    #: In seconds.
    grace: float
    on_lost: str
    #: The exit status for a lock that others hold.
    busy_status: int
    #: The exit status for a lock that is lost.
    lost_status: int
    heartbeat: Path | None


@dataclass(frozen=True)
class LockOptions:
    """The options of lock run as typed."""

    wait: guarded_runs.Wait = None
    no_wait: guarded_runs.NoWait = False
    conflict_exit_code: guarded_runs.ConflictExitCode = None
    lost_exit_code: guarded_runs.LostExitCode = None
    slots: Slots = None
    fair: Fair = True
    sequence: SequenceNumber = None
    shared: Shared = False
    lease_duration: common.LeaseDuration = None
    grace: guarded_runs.Grace = None
    on_lost: guarded_runs.OnLost = "term"
    heartbeat_file: guarded_runs.HeartbeatFile = None
    no_create: NoCreate = False
    lock_container: common.LockContainer = None
    terraform: Annotated[
        str | None,
        option(
            "--terraform",
            "ADDRESS",
            "Wait for this Terraform state; unlock it if the run dies.",
            completer=completers.blobs,
        ),
    ] = None
    reason: common.Reason = None
    log: KeepLog = True
    publish_command: Annotated[
        bool,
        flag("--publish-command", "Record the arguments too, for all readers; those named like a secret are masked."),
    ] = False

    def check(self) -> CheckedLockOptions:
        """Return the checked options.

        Raises:
            UsageError: the options contradict each other, or one is malformed.
        """
        slots = 1 if self.slots is None else values.whole(self.slots, "--slots", 1, 1000)
        wait = guarded_runs.read_wait(self.wait, no_wait=self.no_wait)
        seconds = _term(self.lease_duration)
        return CheckedLockOptions(
            slots=slots,
            sequence=_sequence(self.sequence, slots),
            is_shared=self._check_shared(),
            seconds=seconds,
            wait=wait,
            grace=guarded_runs.read_grace(self.grace, seconds, "the lease's term", "which renewals need"),
            on_lost=str(values.choice(self.on_lost, "--on-lost", guarded_runs.ON_LOST)),
            busy_status=guarded_runs.read_busy_status(self.conflict_exit_code),
            lost_status=guarded_runs.read_lost_status(self.lost_exit_code),
            heartbeat=guarded_runs.read_heartbeat(self.heartbeat_file),
        )

    def _check_shared(self) -> bool:
        others = {"--slots": self.slots, "--sequence": self.sequence, "--no-fair": None if self.fair else "given"}
        for name, value in others.items():
            if self.shared and value is not None:
                raise UsageError(
                    f"--shared and {name} contradict each other: {_NOT_SHARED[name]}",
                    hint="leave one of them out",
                )
        return self.shared


@dataclass(frozen=True)
class TableLock:
    """The options of a write under the lock of its table, as typed."""

    with_table_lock: Annotated[
        bool,
        flag("--with-table-lock", "Hold the lock of the table during the write."),
    ] = False
    wait: WaitForOne = None
    lock_container: common.LockContainer = None

    def check(self) -> None:
        """Refuse what is about a lock that was not asked for.

        Raises:
            UsageError: names the option.
        """
        for name, value in (("--wait", self.wait), ("--lock-container", self.lock_container)):
            if value is not None and not self.with_table_lock:
                raise UsageError(f"{name} is about a lock", hint="add --with-table-lock, or leave it out")


def check_kinds(targets: Sequence[Target], asked: Mapping[str, bool]) -> None:
    """Refuse options that take blobs beside the lock, for a lock that is none."""
    kind = next((each.kind for each in targets if each.kind is not Kind.BLOB), None)
    option = values.first_given(asked)
    if kind is not None and option is not None:
        raise UsageError(f"{option} is not for a {kind}: it takes blobs beside the lock", hint="lock a name instead")


def plan_run(env: Environment, addresses: Sequence[str], command: Sequence[str], given: LockOptions) -> LockPlan:
    """Return the plan that the options describe.

    Raises:
        UsageError: the options contradict each other, or one is malformed.
        CommandNotFound, NotExecutable: there is no such command.
    """
    checked = given.check()
    targets = locks(env, addresses, given.lock_container, also=FILES)
    check_kinds(targets, {"--slots": given.slots is not None, "--shared": given.shared})
    requests = [LockRequest(target, checked.slots, checked.sequence, checked.is_shared) for target in targets]
    child.check(command, env.environ)
    for each in requests:
        context.warn_of_end(each.target, checked.wait + checked.seconds, env.out.warn_once)
    return LockPlan(
        locks=requests,
        command=GuardedCommand(
            words=command,
            environ=env.environ,
            grace=checked.grace,
            on_lost=checked.on_lost,
            say=env.out.say,
            address=str(targets[0].address) if len(targets) == 1 else None,
            heartbeat=checked.heartbeat,
            is_nested=is_under_lock(env.environ),
            busy_status=checked.busy_status,
            lost_status=checked.lost_status,
        ),
        settings=replace(
            acquire_settings(env, _owner(env, command, given), checked.seconds, create=not given.no_create),
            is_fair=given.fair,
            keeps_log=given.log,
        ),
        wait=checked.wait,
        on_held=lambda held: env.out.note(f"holding {held.target}{_describe_fence(held.fence)}"),
        state=None if given.terraform is None else _state_guard(env, given.terraform, checked.wait),
    )


def _state_guard(env: Environment, text: str, wait: float) -> "StateGuard":
    """Return the guard that waits for a Terraform state, and releases the lock that a dead run left on the state."""
    from azguard.locks.terraform import RunNotes, StateGuard

    return StateGuard(
        target=env.locate(text, Kind.BLOB, writable=True),
        notes=RunNotes(env.folders.runs),
        wait_seconds=wait,
        say=env.out.say,
        uniform=random.SystemRandom().uniform,
    )


def _describe_fence(fence: int | None) -> str:
    return "" if fence is None else f" (fence {fence})"


@contextmanager
def around_write(env: Environment, target: Target, asked: TableLock) -> Iterator[Callable[[], None]]:
    """Hold the lock of an entity's table, if that was asked for; what is yielded sees that it is held still.

    Raises:
        GaveUp: others hold it, and the time for waiting is over; nothing was written.
    """
    if not asked.with_table_lock:
        yield lambda: None
        return
    table = Target(target.account, Address(Kind.TABLE, target.address.parts[:1]))
    blob = locate_designated(env, table, asked.lock_container)
    wait = guarded_runs.read_wait(asked.wait)
    settings = acquire_settings(env, leases.this_process(env, f"azguard {env.command}"), DEFAULT_SECONDS, create=True)
    context.warn_of_end(blob, wait + DEFAULT_SECONDS, env.out.warn_once)
    with hold_lock(blob, settings, wait, env.environ) as held:
        yield lambda: None if held is None else held.check()


def _sequence(text: str | None, slots: int) -> int | None:
    """Return the number of the run."""
    if text is None:
        return None
    if slots > 1:
        raise UsageError(
            "--sequence and --slots contradict each other: of runs beside each other, none is the newest",
            hint="leave one of them out",
        )
    return values.whole(text, "--sequence", 0, _HIGHEST_SEQUENCE)


def acquire_settings(env: Environment, owner: Owner, seconds: int, *, create: bool) -> AcquireSettings:
    """Return how a lock is acquired; ``seconds`` is the term of its lease."""
    from azguard.cli.options import steps  # a help text must not wait for it

    return AcquireSettings(
        owner=owner,
        seconds=seconds,
        create=create,
        patience=env.deadline.seconds,
        records=leases.CacheRecords(env),
        processes=ProcessLeases(env.folders.process_leases),
        say=env.out.say,
        tell=transport.tell_listeners,
        uniform=random.SystemRandom().uniform,
        refuse_own=lambda request, wait: steps.refuse_own(env, request, wait),
    )


def _owner(env: Environment, command: Sequence[str], given: LockOptions) -> Owner:
    """Return the record of a run: the program's name, and its arguments only if that was asked for."""
    masked = redaction.mask_arguments(command)
    published = shlex.join(masked) if given.publish_command else os.path.basename(command[0])
    return leases.this_process(env, published, given.reason)


def _term(text: str | None) -> int:
    return DEFAULT_SECONDS if text is None else values.seconds(text, "--lease-duration", SHORTEST, LONGEST)


@dataclass(frozen=True)
class EntityOptions:
    """The options that insert, replace, merge, upsert and delete share, as typed."""

    properties: Annotated[
        list[str] | None,
        argument("NAME[:TYPE]=VALUE", "Its properties, such as status=shipped n:int64=5."),
    ] = None
    file: Annotated[
        str | None,
        option("--file, -f", "FILE|-", "Read JSON from this file; by default, stdin."),
    ] = None
    no_lineage: common.NoLineage = False
    lock: TableLock = field(default_factory=TableLock)

    def check(self) -> None:
        """Refuse options that contradict each other.

        Raises:
            UsageError: names the options.
        """
        if self.properties and self.file is not None:
            raise UsageError(
                f"-f {self.file} and {self.properties[0]!r} do not go together", hint="leave one of them out"
            )
        self.lock.check()
