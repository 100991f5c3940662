"""The options of ``file lock run`` and ``file lock break``, and the plan of a run."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from azguard.accounts import transport
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams, values
from azguard.cli.options import guarded_runs
from azguard.cli.parsing.rows import flag, option
from azguard.errors import UsageError
from azguard.locks.environment import is_under_lock
from azguard.locks.guarded_run import GuardedCommand
from azguard.processes import child
from azguard.smb import file_lock
from azguard.smb.file_lock import ByteRange, FileLock, FileLockSettings, Share
from azguard.smb.file_lock_run import FileLockPlan
from azguard.smb.holders import BreakFileLock

# Long enough for a slow network, and three times the grace.
_LOST_AFTER_SECONDS = 15.0
# Some questions, a second apart, fit into the least.
_LEAST_LOST_AFTER_SECONDS = 6.0
# The protocol counts bytes in 63 bits.
_MOST_BYTES = 2**63 - 1
_EXAMPLE = "team/nightly.lock"
SmbPort = Annotated[
    str | None,
    option("--smb-port", "PORT", "The port of SMB; by default, AZGUARD_SMB_PORT, else 445."),
]


@dataclass(frozen=True)
class FileLockOptions:
    """The options of file lock run as typed."""

    wait: guarded_runs.Wait = None
    no_wait: guarded_runs.NoWait = False
    conflict_exit_code: guarded_runs.ConflictExitCode = None
    lost_exit_code: guarded_runs.LostExitCode = None
    share: Annotated[
        str,
        option("--share", "none|read", "What others may do with the file."),
    ] = "none"
    byte_range: Annotated[
        str | None,
        option("--range", "OFFSET:LEN", "Lock only these bytes; they need not exist."),
    ] = None
    lost_after: Annotated[
        str | None,
        option(
            "--lost-after", "DURATION", "Count the lock as lost after this long without an answer; by default, 15s."
        ),
    ] = None
    grace: guarded_runs.Grace = None
    on_lost: guarded_runs.OnLost = "term"
    heartbeat_file: guarded_runs.HeartbeatFile = None
    no_create: Annotated[bool, flag("--no-create", "Do not create a file that is missing.")] = False
    smb_port: SmbPort = None

    def check(self) -> "CheckedFileLockOptions":
        """Return the checked options.

        Raises:
            UsageError: the options contradict each other, or one is malformed.
        """
        share = Share(str(values.choice(self.share, "--share", tuple(Share))))
        byte_range = None if self.byte_range is None else _read_range(self.byte_range)
        if byte_range is not None and share is not Share.NONE:
            raise UsageError(
                "--share and --range contradict each other: others may read and write what is outside the range",
                hint="leave one of them out",
            )
        lost_after = _LOST_AFTER_SECONDS
        if self.lost_after is not None:
            lost_after = values.duration(self.lost_after, "--lost-after")
        if lost_after < _LEAST_LOST_AFTER_SECONDS:
            raise UsageError(
                f"--lost-after {lost_after:g}s is too short: one lost packet would end the command",
                hint=f"at least --lost-after {_LEAST_LOST_AFTER_SECONDS:g}s",
            )
        return CheckedFileLockOptions(
            wait=guarded_runs.read_wait(self.wait, no_wait=self.no_wait),
            busy_status=guarded_runs.read_busy_status(self.conflict_exit_code),
            lost_status=guarded_runs.read_lost_status(self.lost_exit_code),
            share=share,
            byte_range=byte_range,
            lost_after=lost_after,
            grace=guarded_runs.read_grace(
                self.grace, lost_after, "--lost-after", "and the rest is for answers that are late"
            ),
            on_lost=str(values.choice(self.on_lost, "--on-lost", guarded_runs.ON_LOST)),
            port=None if self.smb_port is None else values.whole(self.smb_port, "--smb-port", 1, 65535),
        )


@dataclass(frozen=True)
class CheckedFileLockOptions:
    """What the options of file lock run say, without a contradiction."""

    #: In seconds.
    wait: float
    #: The exit status for a file that others have open.
    busy_status: int
    #: The exit status for a lock that is lost.
    lost_status: int
    share: Share
    byte_range: ByteRange | None
    #: In seconds.
    lost_after: float
    #: In seconds.
    grace: float
    on_lost: str
    #: None is the port of the environment, or the usual one.
    port: int | None


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
    checked = given.check()
    heartbeat = guarded_runs.read_heartbeat(given.heartbeat_file)
    target = env.locate(addresses[0], Kind.FILE, writable=True)
    server = file_lock.find_place(target.account, checked.port, env.environ)
    child.check(command, env.environ)
    return FileLockPlan(
        lock=FileLock(target, server, checked.share, checked.byte_range),
        command=GuardedCommand(
            words=command,
            environ=env.environ,
            grace=checked.grace,
            on_lost=checked.on_lost,
            say=env.out.say,
            address=str(target.address),
            heartbeat=heartbeat,
            is_nested=is_under_lock(env.environ),
            is_fenced=False,
            busy_status=checked.busy_status,
            lost_status=checked.lost_status,
        ),
        settings=_settings(env, checked, create=not given.no_create),
        on_held=lambda: env.out.note(f"holding {target}"),
    )


def to_break(env: Environment, file: str, machine: str | None, *, yes: bool) -> BreakFileLock:
    """Return which lock to break, and what says that it is meant."""
    target = env.locate(file, Kind.FILE, writable=True)
    return BreakFileLock(target, values.not_empty(machine, "--if-owner"), assume_yes=yes)


def choose_confirmation() -> Callable[[], None] | None:
    """Return the function that asks the person at the terminal; None if there is no terminal."""
    return (lambda: streams.confirm("close it?", "nothing was closed")) if streams.on_terminal() else None


def _settings(env: Environment, checked: CheckedFileLockOptions, *, create: bool) -> FileLockSettings:
    return FileLockSettings(
        wait=checked.wait,
        patience=env.deadline.seconds,
        lost_after=checked.lost_after,
        create=create,
        say=env.out.say,
        tell=transport.tell_listeners,
        uniform=random.SystemRandom().uniform,
    )


def _read_range(text: str) -> ByteRange:
    """Return the bytes that OFFSET:LEN names."""
    found = re.fullmatch(r"(\d{1,19}):(\d{1,19})", text, re.ASCII)
    if found is None:
        raise UsageError(f"--range {text!r} is not OFFSET:LEN", hint="two numbers of bytes, as in --range 0:1")
    offset, length = int(found[1]), int(found[2])
    if length == 0:
        raise UsageError("--range locks no byte", hint="a length of 1 or more, as in --range 0:1")
    if offset + length > _MOST_BYTES:
        raise UsageError(f"--range {text} ends beyond the last byte that SMB can count", hint="as in --range 0:1")
    return ByteRange(offset, length)
