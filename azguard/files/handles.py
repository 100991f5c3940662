"""Handles that programs hold over SMB: who has a file or directory open, and how an operator closes it.

No request goes before these, because a path in delete pending answers no other.

A file that is open is locked: the service tells neither what a holder lets others do with it nor which bytes it has
locked. So each program that has the file open counts as a holder, and its lock is broken by closing its handles.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, NamedTuple, TypeVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, BadRequest, Changed, Locked, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import walk_pages, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.times import iso
from azguard.wire.call import call
from azguard.wire.operations.shares import FILE_FORCE_CLOSE_HANDLES, FILE_LIST_HANDLES
from azguard.wire.xml import Listed

E = TypeVar("E", bound=AzguardError)
_REASONS = ("file_is_open", "file_delete_pending")
# In the values of a refusal: that the handles could not be listed, so that they are not asked for again.
_ASKED = "handles_not_listed"
# Bounded: the refusal is known already.
_ASK_SECONDS = 3.0
_SHOWN = 5
# The id that names all handles.
_EVERY = "*"


@frozen
class Handle:
    """One handle that a program holds."""

    COLUMNS: ClassVar = (
        columns.HANDLE_PATH, columns.HANDLE_ID, columns.CLIENT, columns.CLIENT_NAME, columns.ACCESS,
        columns.OPENED,
    )  # fmt: skip

    handle_id: str
    #: The share and the path in it. The service does not tell whether that is a file or a directory.
    path: str
    #: The IP address and port of the client.
    client: str
    #: The name of the client's machine; None from a service that does not tell it.
    client_name: str | None
    #: ``Read``, ``Write``, ``Delete``; empty from a service that does not tell it.
    access: tuple[str, ...]
    opened: datetime | None
    #: When the client connected again the last time; None if it never did.
    reconnected: datetime | None
    session_id: str | None
    file_id: str | None
    parent_id: str | None


@frozen
class HandlesClosed:
    """What closing handles did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CLOSED, columns.FAILED, columns.OUTCOME)

    address: str
    #: The one that was to be closed; None if all were.
    handle_id: str | None
    #: None if an answer was lost, which may have told of some.
    closed: int | None
    failed: int
    attempts: int
    #: ``committed``; ``unchanged`` if none was open.
    outcome: str
    #: The service compares nothing here.
    guard: str = "none"
    conflicts: int = 0


class _Closed(NamedTuple):
    """How many handles were closed, and how many could not be."""

    closed: int
    failed: int


def list_handles(target: Target, deadline: Deadline, *, recursive: bool = False, limit: int | None) -> Iterator[Handle]:
    """Yield the handles on a file, a directory or the root of a share; ``recursive`` those on all below it, too.

    Raises:
        NotFound: there is nothing at that path.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-handles
    """
    asked = {"recursive": "true" if recursive else None, "maxresults": limit}
    pages = walk_pages(FILE_LIST_HANDLES, target, deadline, "Entries", "Handle", **asked)
    for item in islice((item for page in pages for item in page.items), limit):
        yield _describe(target.address.container, item)


def close(target: Target, handle_id: str | None, deadline: Deadline, *, recursive: bool = False) -> HandlesClosed:
    """Close one handle on a path, or all of them; ``recursive`` closes those on all below it, too.

    The program that held it gets an error at its next use of the file; what it had not written yet is lost.

    After a lost answer it is asked for again, and a handle that was opened since is closed with the others.

    Raises:
        NotFound: there is nothing at that path.
        OutcomeUnknown: no answer came until the deadline.
    Source: https://learn.microsoft.com/rest/api/storageservices/force-close-handles
    """
    asked = {"handle_id": handle_id or _EVERY, "recursive": "true" if recursive and handle_id is None else None}
    request = WriteRequest[_Closed](
        operation=FILE_FORCE_CLOSE_HANDLES,
        target=target,
        send=lambda: _send_close(target, asked, deadline),
        judge_refusal=_judge_refusal,
    )
    settled = send_until_settled(request, deadline)
    closed, failed = settled.answer
    is_known = not settled.doubts
    return HandlesClosed(
        address=str(target.address),
        handle_id=handle_id,
        closed=closed if is_known else None,
        failed=failed,
        attempts=settled.attempts,
        outcome="unchanged" if is_known and not closed and not failed else "committed",
    )


def _send_close(target: Target, asked: dict[str, Any], deadline: Deadline) -> _Closed:
    """Close handles, by as many requests as the service takes for them: its answer says where the next one begins."""
    closed, failed, marker = 0, 0, None
    while True:
        answer = call(FILE_FORCE_CLOSE_HANDLES, target, write_timeouts(deadline), **asked, marker=marker)
        closed += answer.handles_closed or 0
        failed += answer.handles_failed or 0
        marker = answer.next_marker
        if not marker:
            return _Closed(closed, failed)


def _judge_refusal(refusal: AzguardError, found: Finding[_Closed]) -> Finding[_Closed]:
    """Return that it is done if the path is gone after a lost answer: a file in delete pending goes with its handle."""
    if isinstance(refusal, NotFound):
        return Finding(Verdict.COMMITTED, _Closed(0, 0))
    return found


def _describe(share: str, found: Listed) -> Handle:
    return Handle(
        handle_id=found.handle_id,
        path=f"{share}/{found.name}" if found.name else share,
        client=found.client,
        client_name=found.client_name,
        access=found.access,
        opened=found.opened,
        reconnected=found.reconnected,
        session_id=found.session_id,
        file_id=found.file_id,
        parent_id=found.parent_id,
    )


@contextmanager
def tell_holders(target: Target, deadline: Deadline) -> Iterator[None]:
    """Add to a refusal who has the file or directory open."""
    try:
        yield
    except Locked as error:
        raise add_holders(error, target, deadline) from error


@contextmanager
def tell_holders_at_rename(source: Target, target: Target, deadline: Deadline, *, creates_only: bool) -> Iterator[None]:
    """Add to the refusal of a rename which end is open, which the service does not say, and who has it open."""
    try:
        yield
    except Locked as error:
        if error.reason not in _REASONS:
            raise
        told = add_holders(translate(error.__cause__ or error, source), source, deadline)
        is_of_source = creates_only and error.reason == "file_is_open"
        if isinstance(told, Locked) and (is_of_source or told.facts.get("handles")):
            raise told from error
        raise add_holders(error, target, deadline) from error


def add_holders(error: E, target: Target, deadline: Deadline) -> E:
    """Return a refusal with who has the file or directory open, if it is because of that, and if that can be learnt."""
    is_asked = "handles" in error.facts or _ASKED in error.values
    if error.reason not in _REASONS or is_asked or target.kind is Kind.SHARE:
        return error
    try:
        found = list(list_handles(target, deadline.restart(seconds=_ASK_SECONDS), limit=_SHOWN))
    except AzguardError:
        return error.but(values={**error.values, _ASKED: True})
    told = [
        {
            "handle_id": each.handle_id,
            "client": each.client,
            "client_name": each.client_name,
            "access": list(each.access),
            "opened": iso(each.opened),
        }
        for each in found
    ]
    return error.but(detail=(*error.detail, *map(_word_handle, found)), facts={**error.facts, "handles": told})


def _word_handle(handle: Handle) -> str:
    who = f"{handle.client_name} ({handle.client})" if handle.client_name else handle.client
    access = f" for {', '.join(handle.access)}" if handle.access else ""
    since = f" since {iso(handle.opened)}" if handle.opened else ""
    return f"open by {who}{access}{since}: handle {handle.handle_id}"


@frozen
class FileHolder:
    """A program that has a file open."""

    COLUMNS: ClassVar = (
        columns.ADDRESS, replace(columns.CLIENT, title="holder"), columns.SINCE, columns.ACCESS, columns.CLIENT_NAME,
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


@frozen
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


@frozen
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
    yield from map(_to_holder, list_handles(target, deadline, recursive=is_recursive, limit=limit))


def _is_directory(target: Target, deadline: Deadline) -> bool:
    try:
        properties.fetch(Target(target.account, replace(target.address, kind=Kind.DIR)), Conditions(), deadline)
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
    return _close_each(request.target, holders, deadline)


def look_before_breaking(
    request: BreakFileLock, deadline: Deadline, show: Callable[[str], None]
) -> tuple[FileHolder, ...]:
    """Return who has a file open, after showing them.

    Raises:
        Changed: another machine has it open, too.
        NotFound: there is no such file, or no program has it open.
    """
    holders = tuple(map(_to_holder, list_handles(request.target, deadline, limit=None)))
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


def _close_each(target: Target, holders: tuple[FileHolder, ...], deadline: Deadline) -> FileLockBroken:
    broken: list[FileHolder] = []
    failed = 0
    for each in holders:
        done = close(target, each.handle_id, deadline.fresh())
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


def _to_holder(handle: Handle) -> FileHolder:
    return FileHolder(
        address=str(Address(Kind.FILE, tuple(handle.path.split("/", 1)))),
        client=handle.client,
        client_name=handle.client_name,
        access=handle.access,
        since=iso(handle.opened),
        handle_id=handle.handle_id,
    )
