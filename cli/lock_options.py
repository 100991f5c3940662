"""From the options of the lock commands to a plan for the core."""

import os
import random
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from azguard.accounts import trace
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.cli import command_line, ending, lease_options, options, values
from azguard.cli.context import Environment
from azguard.errors import GaveUp, UsageError
from azguard.leases.actions import DEFAULT_SECONDS, LONGEST, SHORTEST
from azguard.leases.owners import Owner
from azguard.locks import lock_blobs
from azguard.locks.hold import hold_lock
from azguard.locks.run import LockPlan
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.processes import child

# As everything in azguard waits; by then a crashed holder's lease has ended.
_WAIT_SECONDS = 60.0
_GRACE_SECONDS = 5.0
ON_LOST = ("term", "kill", "continue")


@dataclass(frozen=True)
class CheckedLockOptions:
    """What the options of lock run say, without a contradiction."""

    slots: int
    #: The term of the leases, in seconds.
    seconds: int
    #: In seconds.
    wait: float
    #: In seconds.
    grace: float
    on_lost: str
    #: The exit status for a lock that others hold.
    busy_status: int
    heartbeat: Path | None


@dataclass(frozen=True)
class LockOptions:
    """The options of lock run as typed."""

    wait: str | None
    no_wait: bool
    conflict_exit_code: str | None
    slots: str | None
    lease_duration: str | None
    grace: str | None
    on_lost: str
    no_create: bool
    heartbeat_file: str | None
    lock_container: str | None
    reason: str | None = None
    publish_command: bool = False

    def check(self) -> CheckedLockOptions:
        """Return what the options say.

        Raises:
            UsageError: they contradict each other, or one is malformed.
        """
        slots = 1 if self.slots is None else values.whole(self.slots, "--slots", 1, 1000)
        if self.wait is not None and self.no_wait:
            raise UsageError("--wait and --no-wait contradict each other", hint="leave one of them out")
        seconds = _term(self.lease_duration)
        grace = _GRACE_SECONDS if self.grace is None else values.duration(self.grace, "--grace")
        if grace > seconds / 3:
            raise UsageError(
                f"--grace {grace:g}s is more than a third of the lease's {seconds} s, which renewals need",
                hint=f"at most --grace {seconds // 3}s",
            )
        return CheckedLockOptions(
            slots=slots,
            seconds=seconds,
            wait=0.0 if self.no_wait else _wait(self.wait),
            grace=grace,
            on_lost=str(values.choice(self.on_lost, "--on-lost", ON_LOST)),
            busy_status=_busy_status(self.conflict_exit_code),
            heartbeat=_file(self.heartbeat_file),
        )


@dataclass(frozen=True)
class TableLock:
    """The options of a write under the lock of its table, as typed."""

    with_table_lock: Annotated[
        bool,
        typer.Option("--with-table-lock", help="Hold the lock of the table during the write."),
    ] = False
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="DURATION", help="Wait this long for the lock; by default, 60s."),
    ] = None
    lock_container: options.LockContainer = None

    def check(self) -> None:
        """Refuse what is about a lock that was not asked for.

        Raises:
            UsageError: names the option.
        """
        for option, value in (("--wait", self.wait), ("--lock-container", self.lock_container)):
            if value is not None and not self.with_table_lock:
                raise UsageError(f"{option} is about a lock", hint="add --with-table-lock, or leave it out")


def split(words: Sequence[str], argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the addresses and the command, which ``--`` divides.

    Raises:
        UsageError: one of them is missing.
    """
    command = command_line.split(argv)[1][1:]
    addresses = list(words[: len(words) - len(command)])
    if not command or not command[0]:
        raise UsageError("there is no command to run", hint="write it after --, as in: -- ./deploy.sh")
    if not addresses:
        raise UsageError("there is no lock", hint="name it before --, as in: deploy-prod -- ./deploy.sh")
    return addresses, command


def plan(
    env: Environment, addresses: Sequence[str], command: Sequence[str], given: LockOptions
) -> tuple[LockPlan, int]:
    """Return what the options describe, and the exit status for a lock that others hold.

    Raises:
        UsageError: they contradict each other, or one is malformed.
        CommandNotFound, NotExecutable: there is no such command.
    """
    checked = given.check()
    requests = [LockRequest(target, checked.slots) for target in locks(env, addresses, given.lock_container)]
    child.check(command, env.environ)
    for each in requests:
        ending.warn(each.target, checked.wait + checked.seconds, env.out.warn_once)
    planned = LockPlan(
        locks=requests,
        command=command,
        environ=env.environ,
        settings=_settings(env, _owner(env, command, given), checked.seconds, create=not given.no_create),
        wait=checked.wait,
        grace=checked.grace,
        on_lost=checked.on_lost,
        heartbeat=checked.heartbeat,
        on_held=lambda held: env.out.note(f"holding {held.target}{_describe_fence(held.fence)}"),
    )
    return planned, checked.busy_status


def _describe_fence(fence: int | None) -> str:
    return "" if fence is None else f" (fence {fence})"


def lock(env: Environment, text: str, container: str | None) -> Target:
    """Return the blob that a lock's address names: itself, the one of a bare name, or the one that stands for a table.

    Raises:
        UsageError: neither a blob nor a table, or a container is named that it is not in.
    """
    return locks(env, [text], container)[0]


def locks(env: Environment, texts: Sequence[str], container: str | None) -> list[Target]:
    """Return the blobs that locks' addresses name.

    Raises:
        UsageError: one is neither a blob nor a table, or a container of locks is named, and none of them is in it.
    """
    found = [_locate(env, text, container) for text in texts]
    if container is not None and not any(
        _is_bare(text) or env.location(text).address.kind is Kind.TABLE for text in texts
    ):
        raise UsageError(
            f"--lock-container is for bare names, and {found[0].address} names its own container",
            hint="leave the option out, or give a bare name such as deploy-prod",
        )
    return found


def _locate(env: Environment, text: str, container: str | None) -> Target:
    target = env.locate(_expand_name(env, text, container), writable=True)
    if target.kind is Kind.BLOB:
        return target
    if target.kind is not Kind.TABLE:
        raise UsageError(
            f"a lock is a blob, or a table that a blob stands for; not a {target.kind}",
            hint="NAME or blob:CONTAINER/NAME, or lease a container with azguard lease acquire",
        )
    return _locate_designated(env, target, container)


def choose_container(environ: Mapping[str, str], named: str | None) -> str:
    """Return the container of locks: the one that is named, else that of the environment, else the usual one.

    Raises:
        UsageError: it is no name of a container.
    """
    return lock_blobs.choose_container(values.not_empty(named, "--lock-container"), environ)


def _expand_name(env: Environment, text: str, container: str | None) -> str:
    """Return the address that a bare name stands for, and anything else as it is."""
    if not _is_bare(text):
        return text
    return f"{Kind.BLOB}:{choose_container(env.environ, container)}/{text}"


def _is_bare(text: str) -> bool:
    """Return whether a lock is named without its container."""
    # With a colon it is more likely a misspelt kind of resource than a name: it would be a lock of its own.
    return bool(text.strip()) and "/" not in text and ":" not in text


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
    blob = _locate_designated(env, table, asked.lock_container)
    wait = _wait(asked.wait)
    settings = _settings(env, lease_options.this_process(env, f"azguard {env.command}"), DEFAULT_SECONDS, create=True)
    ending.warn(blob, wait + DEFAULT_SECONDS, env.out.warn_once)
    with hold_lock(blob, settings, wait, env.environ) as held:
        yield lambda: None if held is None else held.check()


def _locate_designated(env: Environment, table: Target, container: str | None) -> Target:
    blob = lock_blobs.choose_lock_blob(table, choose_container(env.environ, container))
    env.out.info(f"{table.address} has no lease of its own; its lock is {blob.address}")
    return blob


def _wait(text: str | None) -> float:
    return _WAIT_SECONDS if text is None else values.duration(text, "--wait")


def _busy_status(text: str | None) -> int:
    """Return the exit status for a lock that others hold."""
    return GaveUp.exit_code if text is None else values.whole(text, "--conflict-exit-code", 0, 255)


def _settings(env: Environment, owner: Owner, seconds: int, *, create: bool) -> AcquireSettings:
    return AcquireSettings(
        owner=owner,
        seconds=seconds,
        create=create,
        patience=env.deadline.seconds,
        records=lease_options.CacheRecords(env),
        say=env.out.info,
        tell=trace.tell,
        uniform=random.SystemRandom().uniform,
    )


def _owner(env: Environment, command: Sequence[str], given: LockOptions) -> Owner:
    """Return the record of a run: the program's name, and its arguments only if that was asked for."""
    published = shlex.join(command) if given.publish_command else os.path.basename(command[0])
    return lease_options.this_process(env, published, given.reason)


def _term(text: str | None) -> int:
    return DEFAULT_SECONDS if text is None else values.seconds(text, "--lease-duration", SHORTEST, LONGEST)


def _file(text: str | None) -> Path | None:
    found = values.not_empty(text, "--heartbeat-file")
    return None if found is None else Path(found)
