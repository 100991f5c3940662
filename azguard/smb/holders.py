"""Who has files open through SMB, as an operator sees it over REST, and how that is ended by force.

The service tells neither what a holder lets others do with the file nor which bytes it has locked: a holder is whatever
program has the file open.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import BadRequest, Changed, NotFound, UsageError
from azguard.files import directories, handles
from azguard.files.handles import Handle
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.times import iso


@dataclass(frozen=True)
class FileHolder:
    """A program that has a file open."""

    COLUMNS: ClassVar = (
        columns.ADDRESS, columns.CLIENT._replace(title="holder"), columns.SINCE, columns.ACCESS, columns.CLIENT_NAME,
        columns.HANDLE_ID,
    )  # fmt: skip

    address: str
    #: The IP address and port of its machine.
    client: str
    #: The name of its machine; None from a service that does not tell it.
    client_name: str | None
    #: ``Read``, ``Write``, ``Delete``; empty from a service that does not tell it.
    access: tuple[str, ...]
    #: When it opened the file, by the clock of the service, ISO 8601; None if that is not told.
    since: str | None
    handle_id: str

    def is_on(self, machine: str) -> bool:
        """Return whether it is on a machine with this name or IP address."""
        names = {self.client, self.client.rpartition(":")[0].strip("[]"), self.client_name or ""}
        return machine.lower() in {each.lower() for each in names if each}

    def __str__(self) -> str:
        name = "" if self.client_name is None else f" ({self.client_name})"
        access = f" for {', '.join(self.access)}" if self.access else ""
        since = "" if self.since is None else f" since {self.since}"
        return f"{self.client}{name} has it open{access}{since}"


@dataclass(frozen=True)
class FileLockBroken:
    """What breaking the lock of a file did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CLOSED, columns.FAILED, columns.OUTCOME)

    address: str
    #: Those who had it open, and have lost it.
    broken: tuple[FileHolder, ...]
    closed: int
    #: How many the service did not close.
    failed: int
    #: ``broken``; ``unchanged`` if no program had it open any more when it was closed.
    outcome: str


@dataclass(frozen=True)
class BreakFileLock:
    """A lock to break."""

    target: Target
    #: The machine on which all holders must be; None is any.
    machine: str | None = None
    #: Whether the caller confirms it, so that no person is asked.
    assume_yes: bool = False

    @property
    def has_consent(self) -> bool:
        """Whether no person need be asked."""
        return self.assume_yes or self.machine is not None


def list_holders(target: Target, deadline: Deadline, limit: int | None = None) -> Iterator[FileHolder]:
    """Yield who has a file open; or the files of a directory or a share, and of all directories in it.

    Raises:
        NotFound: there is nothing at that path.
    """
    is_recursive = target.kind is not Kind.FILE or _is_directory(target, deadline)
    yield from map(_describe, handles.list_handles(target, deadline, recursive=is_recursive, limit=limit))


def _is_directory(target: Target, deadline: Deadline) -> bool:
    """Return whether a path that was written as that of a file is that of a directory."""
    try:
        directories.show(Target(target.account, replace(target.address, kind=Kind.DIR)), Conditions(), deadline)
    except (BadRequest, NotFound):
        return False
    return True


def break_after_showing(
    request: BreakFileLock, deadline: Deadline, show: Callable[[str], None], confirm: Callable[[], None] | None
) -> FileLockBroken:
    """Show who has a file open, ask for confirmation if need be, and close those very handles.

    A program that opens it after that is left alone. ``confirm`` asks a person, and raises if the answer is no; None
    where no person can be asked.

    Raises:
        UsageError: it was not confirmed, and no person can be asked.
        Changed: another machine has it open, too.
        NotFound: there is no such file, or no program has it open.
    """
    if not request.has_consent and confirm is None:
        raise UsageError(
            "closing a file takes it from those who have it open, so it needs your confirmation",
            reason="file_break_not_confirmed",
        )
    holders = look_before_breaking(request, deadline, show)
    if not request.has_consent and confirm is not None:
        confirm()
    return _close(request.target, holders, deadline)


def look_before_breaking(
    request: BreakFileLock, deadline: Deadline, show: Callable[[str], None]
) -> tuple[FileHolder, ...]:
    """Return who has a file open, after showing them.

    Raises:
        Changed: another machine has it open, too.
        NotFound: there is no such file, or no program has it open.
    """
    holders = tuple(map(_describe, handles.list_handles(request.target, deadline, limit=None)))
    if not holders:
        where = request.target.address
        raise NotFound(
            f"no program has {request.target} open",
            str(where),
            reason="file_not_open",
            values={"share": where.container},
        )
    for each in holders:
        show(f"{request.target}: {each}")
    _check_machine(request, holders)
    return holders


def _check_machine(request: BreakFileLock, holders: tuple[FileHolder, ...]) -> None:
    others = [each for each in holders if request.machine is not None and not each.is_on(request.machine)]
    if others:
        raise Changed(
            f"{request.target} is not open on {request.machine} alone",
            str(request.target.address),
            detail=tuple(map(str, others)),
            reason="file_held_elsewhere",
        )


def _close(target: Target, holders: tuple[FileHolder, ...], deadline: Deadline) -> FileLockBroken:
    broken: list[FileHolder] = []
    failed = 0
    for each in holders:
        done = handles.close(target, each.handle_id, deadline.fresh())
        failed += done.failed
        if done.outcome != "unchanged" and not done.failed:
            broken.append(each)
    return FileLockBroken(
        address=str(target.address),
        broken=tuple(broken),
        closed=len(broken),
        failed=failed,
        outcome="broken" if broken or failed else "unchanged",
    )


def _describe(handle: Handle) -> FileHolder:
    return FileHolder(
        address=str(Address(Kind.FILE, tuple(handle.path.split("/", 1)))),
        client=handle.client,
        client_name=handle.client_name,
        access=handle.access,
        since=iso(handle.opened),
        handle_id=handle.handle_id,
    )
