"""The options of ``file lock run`` and ``file lock break``, and the plan of a run."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from azguard.accounts import transport
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams, values
from azguard.cli.options import guarded_runs
from azguard.cli.options.guarded_runs import GuardedRunOptions
from azguard.cli.options.types import DURATION, ValueType, choice, whole
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import checked, excludes
from azguard.errors import UsageError
from azguard.locks.environment import is_under_lock
from azguard.locks.guarded_run import GuardedCommand
from azguard.processes import child
from azguard.smb import file_lock
from azguard.smb.file_lock import ByteRange, FileLock, FileLockSettings, Share
from azguard.smb.file_lock_run import FileLockPlan
from azguard.smb.holders import BreakFileLock
from azguard.times import parse_size

# Long enough for a slow network, and three times the grace.
_LOST_AFTER_SECONDS = 15.0
# Some questions, a second apart, fit into the least.
_LEAST_LOST_AFTER_SECONDS = 6.0
# The protocol counts bytes in 63 bits.
_MOST_BYTES = 2**63 - 1
_EXAMPLE = "team/nightly.lock"


def _read_range(text: str, name: str) -> ByteRange:
    """Return the bytes that OFFSET:LENGTH names."""
    offset, length = (parse_size(each) for each in text.partition(":")[::2])
    if offset is None or length is None:
        raise UsageError(f"{name} {text!r} is not OFFSET:LENGTH", hint="two numbers of bytes, as in --range 0:1")
    if length == 0:
        raise UsageError(f"{name} locks no byte", hint="a length of 1 or more, as in --range 0:1")
    if offset + length > _MOST_BYTES:
        raise UsageError(f"{name} {text} ends beyond the last byte that SMB can count", hint="as in --range 0:1")
    return ByteRange(offset, length)


RANGE = ValueType("range", _read_range)
SmbPort = Annotated[
    int | None,
    option("--smb-port", "PORT", "The port of SMB; by default, AZGUARD_SMB_PORT, else 445.", whole(1, 65_535)),
]


@dataclass(frozen=True)
class FileLockOptions:
    """The options of file lock run as typed."""

    run: GuardedRunOptions = field(default_factory=GuardedRunOptions)
    share: Annotated[str, option("--share", "none|read", "What others may do with the file.", choice)] = "none"
    shared: Annotated[
        bool, flag("--shared", "Hold it as a reader, beside others; a run without --shared is alone.")
    ] = False
    byte_range: Annotated[
        ByteRange | None, option("--range", "OFFSET:LENGTH", "Lock only these bytes; they need not exist.", RANGE)
    ] = None
    lost_after: Annotated[
        float,
        option("--lost-after", "DURATION", "Count the lock as lost after this long without an answer.", DURATION),
    ] = _LOST_AFTER_SECONDS
    no_create: Annotated[bool, flag("--no-create", "Do not create a file that is missing.")] = False
    smb_port: SmbPort = None

    RULES: ClassVar = (
        excludes("--share", "--range", "others may read and write what is outside the range"),
        excludes("--share", "--shared", "readers let others read, and none write"),
        checked("--lost-after", "at least 6s", "file_locks.check"),
        checked("SHARE/PATH --", "one file", "file_locks.plan_file_lock"),
    )

    def check(self) -> None:
        """Refuse times that leave none for an answer that is late.

        Raises:
            UsageError: names the option, and how long it may be.
        """
        if self.lost_after < _LEAST_LOST_AFTER_SECONDS:
            raise UsageError(
                f"--lost-after {self.lost_after:g}s is too short: one lost packet would end the command",
                hint=f"at least --lost-after {_LEAST_LOST_AFTER_SECONDS:g}s",
            )
        self.run.check_grace(self.lost_after, "--lost-after", "and the rest is for answers that are late")


def plan_file_lock(env: Environment, words: Sequence[str], given: FileLockOptions) -> FileLockPlan:
    """Return the plan that the options describe.

    Raises:
        UsageError: the options contradict each other, or one is malformed.
        ConfigError: there is no account key.
        CommandNotFound, NotExecutable: there is no such command.
    """
    addresses, command = guarded_runs.split(words, env.argv, example=_EXAMPLE)
    if len(addresses) > 1:
        raise UsageError(
            f"one run locks one file, and {len(addresses)} are named",
            hint="nest them: azguard file lock run A -- azguard file lock run B -- CMD",
        )
    given.check()
    run = given.run
    target = env.locate(addresses[0], Kind.FILE, writable=True)
    server = file_lock.find_place(target.account, given.smb_port, env.environ)
    child.check(command, env.environ)
    return FileLockPlan(
        lock=FileLock(target, server, Share(given.share), given.byte_range, given.shared),
        command=GuardedCommand(
            words=command,
            environ=env.environ,
            grace=run.grace,
            on_lost=run.on_lost,
            say=env.out.say,
            address=str(target.address),
            heartbeat=run.heartbeat,
            is_nested=is_under_lock(env.environ),
            is_fenced=False,
            busy_status=run.conflict_exit_code,
            lost_status=run.lost_exit_code,
        ),
        settings=_settings(env, given),
        on_held=lambda: env.out.note(f"holding {target}"),
    )


def to_break(env: Environment, file: str, machine: str | None, *, yes: bool) -> BreakFileLock:
    """Return which lock to break, and what says that it is meant."""
    target = env.locate(file, Kind.FILE, writable=True)
    return BreakFileLock(target, values.not_empty(machine, "--if-owner"), assume_yes=yes)


def choose_confirmation() -> Callable[[], None] | None:
    """Return the function that asks the person at the terminal; None if there is no terminal."""
    return (lambda: streams.confirm("close it?", "nothing was closed")) if streams.on_terminal() else None


def _settings(env: Environment, given: FileLockOptions) -> FileLockSettings:
    return FileLockSettings(
        wait=given.run.wait_seconds,
        patience=env.deadline.seconds,
        lost_after=given.lost_after,
        create=not given.no_create,
        say=env.out.say,
        tell=transport.tell_listeners,
        uniform=random.SystemRandom().uniform,
    )
