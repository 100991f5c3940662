"""The record on this machine of each lock that is held beyond one command: which process renews which lease.

Each is a file of its own, named by the lease, without credentials. A process that is killed leaves its record behind,
which is how the loss is known before the lease has ended.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, fields, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from azguard import times
from azguard.atomic_files import write_atomically
from azguard.cache import scope
from azguard.errors import ConfigError
from azguard.folders import HOLD, explain_unwritable, make_private
from azguard.frozen import frozen
from azguard.guards.requested import is_guid
from azguard.processes import identity, locked_file
from azguard.processes.identity import KnownProcess

# What has ended is remembered so long, so that a second release knows of the first.
_REMEMBERED_SECONDS = timedelta(days=HOLD.days or 0).total_seconds()
_LARGEST_BYTES = 1 << 16


class HoldState(StrEnum):
    """What is known of a lock that was held beyond one command."""

    HELD = "held"
    RELEASED = "released"
    LOST = "lost"
    #: The lock was not lost, and its release failed: the lease ends by itself.
    LEFT = "left"


@frozen
class HoldRecord:
    """A lock that is held beyond one command."""

    lease_id: str
    #: The lock as it was asked for; ``address`` is the slot of it that is held.
    lock: str
    address: str
    #: The endpoint of its account.
    endpoint: str
    scope: str
    fence: int
    #: The term of the lease in seconds; None is infinite.
    seconds: int | None
    since: str | None
    #: When it ends at the latest, ISO 8601; None if that was not said.
    until: str | None
    #: The process that renews the lease, and its birth; None if none does.
    pid: int | None
    birth: str | None
    #: The machine and its numbering of processes, of which ``pid`` and ``ends`` are.
    place: str
    #: When the lease ends unless it is renewed, on ``times.read_boot_clock``; None if it is infinite.
    ends: float | None
    #: What the process has to say.
    log: str | None
    #: Whether the holder is added to the history of the lock.
    keeps_history: bool = True
    state: HoldState = HoldState.HELD
    #: Why it was lost or left, or released before it was told to be.
    why: str | None = None
    #: The CI job that took it: see ``scope``; None if that was none.
    job: str | None = None
    #: The version of the lock with the record of this holder; None if that is not known.
    version: str | None = None
    #: Whether ``lock release`` has told that it was lost.
    is_settled: bool = False
    #: The file of a shell where the variables for later steps were written; None if none was named.
    env_file: str | None = None

    @property
    def is_here(self) -> bool:
        """Return whether its process and its clock are those of this machine."""
        return self.place == find_place()

    @property
    def process(self) -> KnownProcess | None:
        """Return the process that renews it, if that is known here."""
        if self.pid is None or self.birth is None or not self.is_here:
            return None
        return KnownProcess(self.pid, self.birth)

    @property
    def is_kept(self) -> bool:
        """Return whether the lock is held, as far as this machine knows: by a process that lives, or without one."""
        process = self.process
        return self.state is HoldState.HELD and (self.pid is None or (process is not None and process.lives))

    @property
    def may_be_held(self) -> bool:
        """Return whether the lock may be held: as far as this machine knows, or by a process of another machine."""
        return self.is_kept or (self.state is HoldState.HELD and not self.is_here)

    @property
    def is_over(self) -> bool:
        """Return whether a release has nothing more to do: it was released, or that it was lost was told."""
        return self.state is HoldState.RELEASED or self.is_settled

    @property
    def seconds_left(self) -> float | None:
        """Return how many seconds the lease lasts unless it is renewed; None if it is infinite, or not known here.

        The lease ends later if the record could not be written since the last renewal.
        """
        left = None if self.ends is None or not self.is_here else self.ends - times.read_boot_clock()
        return left if left is None or left > 0 else None


@frozen
class JobScope:
    """Whose holds are meant: those of a scope, and in CI those of one job with it."""

    scope: str
    #: The CI job: see ``scope``; None outside of CI, where the scope alone says whose a hold is.
    job: str | None

    def owns(self, hold: HoldRecord) -> bool:
        return hold.scope == self.scope and scope.is_own_job(hold.job, self.job)


@frozen
class HoldRecords:
    """The records of this machine, in one folder."""

    folder: Path

    def file(self, lease_id: str, suffix: str) -> Path:
        """Return the path of a record, ``json``, or of the log of its process, ``log``."""
        return self.folder / f"{lease_id}.{suffix}"

    def save(self, hold: HoldRecord) -> None:
        """Write a record, in place of an earlier one of the same lease.

        Raises:
            ConfigError: it cannot be written, or another user could have written there.
        """
        text = json.dumps(asdict(hold), indent=2) + "\n"
        with self.explain_unwritable():
            make_private(self.folder)
            # Not durable: a slow disk must not hold up a renewal, and no lock outlives the machine.
            write_atomically(self.file(hold.lease_id, "json"), text.encode(), 0o600, durable=False)

    def explain_unwritable(self) -> AbstractContextManager[None]:
        """Raise a ConfigError for what keeps a record, or the log of its process, from being written."""
        return explain_unwritable(self.folder, reason="hold_not_recorded")

    def find(self, lease_id: str) -> HoldRecord | None:
        if not is_guid(lease_id):
            return None
        return _read(self.file(lease_id, "json"))

    def close(
        self, hold: HoldRecord, state: HoldState, why: str | None = None, *, is_settled: bool = False
    ) -> HoldRecord:
        """Write down how it ended; that this cannot be written is no error, since the service knows it too."""
        ended = replace(hold, state=state, why=why, is_settled=is_settled)
        with suppress(ConfigError):
            self.save(ended)
        return ended

    @contextmanager
    def lock(self, lease_id: str, at_most_seconds: float) -> Iterator[None]:
        """Keep other releases of a lease on this machine out; where that cannot be done in time, go on without."""
        path = self.file(lease_id, "lock")
        with ExitStack() as stack:
            with suppress(OSError):
                stack.enter_context(locked_file.hold(path, at_most_seconds))
            try:
                yield
            finally:
                # A release that waits for it finds the record, and so does a later one.
                with suppress(OSError):
                    path.unlink()

    def list_own(self, own: JobScope) -> list[HoldRecord]:
        """Return the records of a job, newest first."""
        found = filter(own.owns, self._list())
        return sorted(found, key=lambda hold: (hold.since or "", hold.fence), reverse=True)

    def list_unreleased(self) -> list[HoldRecord]:
        """Return the records of what is held, or was lost and nothing has told it, the oldest first."""
        return sorted((each for each in self._list() if not each.is_over), key=lambda hold: hold.since or "")

    def list_of_others(self, own: JobScope) -> list[HoldRecord]:
        """Return the records of what other jobs and scopes hold, as far as is known here, the newest first."""
        held = (each for each in self._list() if each.may_be_held)
        return sorted((each for each in held if not own.owns(each)), key=lambda hold: hold.since or "", reverse=True)

    def prune(self) -> None:
        """Delete records that ended long ago, with their logs."""
        before = time.time() - _REMEMBERED_SECONDS
        for path in self._files():
            hold = _read(path)
            is_over = hold is None or hold.state is not HoldState.HELD or (hold.process and not hold.process.lives)
            try:
                if is_over and path.stat().st_mtime < before:
                    path.with_suffix(".log").unlink(missing_ok=True)
                    path.with_suffix(".lock").unlink(missing_ok=True)
                    path.unlink()
            except OSError:
                continue  # Another run deletes it, or it is another user's.

    @staticmethod
    def may_be_held(path: Path) -> bool:
        """Return whether the lock of a record may be held: its process lives, or its term may not be over yet.

        Each renewal writes the record, and a lease without a term is held until it is released by its id.
        """
        hold = _read(path)
        if hold is None or hold.state is not HoldState.HELD:
            return False
        if hold.seconds is None or (hold.process is not None and hold.process.lives):
            return True
        with suppress(OSError):
            return time.time() - path.stat().st_mtime <= hold.seconds
        return False

    def _list(self) -> Iterator[HoldRecord]:
        return (hold for path in self._files() if (hold := _read(path)) is not None)

    def _files(self) -> list[Path]:
        return list(self.folder.glob("*.json"))


def find_place() -> str:
    """Return the text that tells this machine and its numbering of processes from others: containers number anew."""
    try:
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbering = ""
    return " ".join(filter(None, (socket.gethostname(), identity.find_boot() or "", numbering)))


def _read(path: Path) -> HoldRecord | None:
    """Return the record of a file; None if there is none that can be read."""
    try:
        with open(path, "rb") as file:
            found: dict[str, Any] = json.loads(file.read(_LARGEST_BYTES))
        known = {each.name for each in fields(HoldRecord)}
        values = {name: value for name, value in found.items() if name in known}
        return HoldRecord(**{**values, "state": HoldState(found["state"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
