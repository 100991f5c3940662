"""What the checks are done to: a container, a table, a queue and a share of the doctor's own, and what is made in them.

All names begin with ``azguard-doctor-`` and end at random. ``remove_all`` takes away what was made, and nothing else.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, NamedTuple

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.doctor.plays import LEASE_SECONDS, PLAYS, SEQUENCE_NUMBER, Tap
from azguard.errors import AzguardError, Unavailable
from azguard.files.guarding import Guarding
from azguard.queues import messages
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import service_code, status
from azguard.requests.service_errors import translate
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.client import Limits, find_client
from azguard.wire.failures import NoAnswer, NotConnected, Refusal, Unreadable
from azguard.wire.operations import blobs, tables
from azguard.wire.rows import Condition, Operation

# What sequence numbers are compared with.
_OF_PAGES = {"x-ms-blob-sequence-number": str(SEQUENCE_NUMBER)}
#: What holds what a service has: by the service.
ROOMS = {"blob": Kind.CONTAINER, "table": Kind.TABLE, "queue": Kind.QUEUE, "file": Kind.SHARE}
_PREFIX = "azguard-doctor-"
_CREATE_ONLY = {Condition.IF_NONE_MATCH.header: "*"}
_LIMITS = Limits(answer=20.0)
_DENIED = (401, 403)
# What the service says of an operation, or of a part of one, that this account or this emulator does not have.
_UNKNOWN_STATUSES = (405, 501)
_UNKNOWN_CODES = {
    "APINotImplemented", "FeatureNotSupportedByAccount", "BlobTypeNotSupported", "UnsupportedHeader",
    "FeatureNotYetSupportedForHierarchicalNamespaceAccounts", "BlobApiNotYetSupportedForHierarchicalNamespaceAccounts",
    "BlobTagsNotSupportedForAccountType", "BlobTierNotSupported", "AccessTierNotSupportedForBlobType",
}  # fmt: skip


class CheckVerdict(StrEnum):
    """What a check found."""

    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_POSSIBLE = "not possible here"


class CheckFinding(NamedTuple):
    """A verdict, with what came, or why it is not possible here."""

    verdict: CheckVerdict
    detail: str = ""


def holds(detail: str = "") -> CheckFinding:
    """Return the finding that the promise holds, with further facts."""
    return CheckFinding(CheckVerdict.HOLDS, detail)


def differs(detail: str) -> CheckFinding:
    """Return the finding that the promise does not hold, with the actual answer."""
    return CheckFinding(CheckVerdict.DIFFERS, detail)


def not_possible(why: str) -> CheckFinding:
    """Return the finding that the check is not possible here, with the reason."""
    return CheckFinding(CheckVerdict.NOT_POSSIBLE, why)


class Check(NamedTuple):
    """One check: a row of the table."""

    #: The part of the table: machine, login, account, promises, lost answers, rights, writers.
    part: str
    #: What is checked, in a few words.
    name: str
    #: Tries it.
    run: "Callable[[CheckStage], CheckFinding]"
    #: The service that it asks: blob, table, queue or file; None for the machine.
    service: str | None = None
    #: About how many requests it takes.
    requests: int = 0


class Reaction(NamedTuple):
    """How the service reacted to one request."""

    #: None where no answer of the service came.
    status: int | None
    code: str | None
    answer: Answer | None = None
    #: What it means where it is not done.
    error: AzguardError | None = None
    #: Whether the request left this machine.
    was_sent: bool = True

    @property
    def is_done(self) -> bool:
        return self.answer is not None

    @property
    def is_denied(self) -> bool:
        return self.status in _DENIED

    @property
    def is_failure(self) -> bool:
        """Return whether the outcome of the request is open."""
        return self.status is None or (self.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not self.is_unknown)

    @property
    def is_unknown(self) -> bool:
        """Return whether this account, or this emulator, has no such operation."""
        return self.status in _UNKNOWN_STATUSES or self.code in _UNKNOWN_CODES

    def __str__(self) -> str:
        if self.status is None:
            return "no answer" if self.error is None else self.error.message
        return " ".join(filter(None, (str(self.status), self.code)))


class SeenState(NamedTuple):
    """What is seen of a resource, by which a change shows."""

    etag: str | None
    last_modified: Any = None
    size: int | None = None
    lease: Any = None
    tags: bytes = b""


class CheckStage:
    """The account as the checks see it, and what they made in it."""

    def __init__(
        self,
        account: Account,
        services: Iterable[str],
        container: str | None,
        deadline: Deadline,
        guarding: Guarding,
    ) -> None:
        self.tap = Tap(find_client(account))
        #: Sends through the tap.
        self.account = replace(account, shared={**account.shared, "client": self.tap})
        self.deadline = deadline
        #: Where the leases of azguard's own writes are recorded.
        self.guarding = guarding
        #: The services that are checked.
        self.services = tuple(services)
        #: What was made or given for each service: the container, the table, the queue, the share.
        self.rooms: dict[str, Target] = {}
        #: Why a service has none, and the error that says so.
        self.obstacles: dict[str, AzguardError] = {}
        #: How the service reacted to the last request of each operation that was done, or denied.
        self.tried: dict[str, Reaction] = {}
        self.is_given = container is not None
        #: The names that a report may leave out, and what stands for each.
        self.names: dict[str, str] = {}
        self._container = container
        self._made: list[Target] = []
        self._sources: dict[tuple[Kind, str], Target] = {}

    def open_rooms(self) -> None:
        """Make a room for the checks of each service; note the services where that fails."""
        for service in self.services:
            try:
                self.rooms[service] = self._open_room(service)
            except AzguardError as error:
                self.obstacles[service] = error

    def _open_room(self, service: str) -> Target:
        if service == "blob" and self._container is not None:
            room = self.locate(Kind.CONTAINER, self._container)
            self.require(self.send(ALL["container.list_blobs"], room, maxresults=1), room)
            return room
        return self.make(ROOMS[service])

    def find_obstacle(self, service: str | None) -> str | None:
        """Return why nothing can be tried in a service now; None if something can."""
        if service is None:
            return None
        if service in self.obstacles:
            return self.obstacles[service].message
        return "the time is over" if self.deadline.passed else None

    def find_target(self, service: str | None) -> Target:
        """Return the target that messages about a service name."""
        return self.rooms.get(service or "") or Target(self.account, Address(ROOMS[service or "blob"], ("",)))

    def locate(self, kind: Kind, *parts: str) -> Target:
        return Target(self.account, Address(kind, parts))

    def through_tap(self, target: Target) -> Target:
        """Return a resource of the user's, as it is asked for through the tap."""
        return target._replace(account=self.account)

    def name(self, kind: Kind) -> Target:
        """Return a resource of this kind that is not there yet."""
        short = uuid.uuid4().hex[:12]
        if kind in ROOMS.values():
            name = f"{_PREFIX}{short}"
            return self.locate(kind, name.replace("-", "") if kind is Kind.TABLE else name)
        room = self.rooms[kind.service].address.container
        middle = ("doctor",) if kind is Kind.ENTITY else ()
        return self.locate(kind, room, *middle, f"{_PREFIX}{short}")

    def note_made(self, target: Target) -> None:
        """Have a resource removed at the end, before it is made."""
        self._made.append(target)

    def make(self, kind: Kind, how: str = "") -> Target:
        """Make a resource; ``how`` is ``append`` or ``page`` for a blob of that type.

        Raises:
            AzguardError: that is not possible.
        """
        target = self.name(kind)
        operation = _find_creation(kind, how)
        given = PLAYS[operation.name].arguments(self, target)
        self.note_made(target)
        headers = _OF_PAGES if how == "page" else {}
        if Condition.IF_NONE_MATCH in operation.honours:
            headers = {**headers, **_CREATE_ONLY}
        found = self.send(operation, target, headers=headers, **given)
        if found.is_failure and found.was_sent:
            found = self.send(operation, target, headers=headers, **given)
        if found.is_denied or not found.was_sent:
            self._made.remove(target)
        # The name is ours alone: an earlier copy of this request made it.
        if found.status != HTTPStatus.CONFLICT:
            self.require(found, target)
        return target

    def source(self, kind: Kind, how: str) -> Target:
        """Return the source of copies of this kind; the first call makes it."""
        # What is appended can come from any blob.
        key = kind, how if how == "page" else ""
        if key not in self._sources:
            self._sources[key] = self.make(*key)
        return self._sources[key]

    def new_id(self) -> str:
        """Return an id for a lease."""
        return str(uuid.uuid4())

    def put_message(self, hidden_seconds: int = 0) -> tuple[Target, str, datetime]:
        """Put a message, and return it with its receipt and the moment from which others can receive it."""
        queue = self.rooms["queue"]
        put = messages.put(queue, "doctor", hidden_seconds, None, self.deadline)
        return self.locate(Kind.MESSAGE, queue.address.container, put.id), put.pop_receipt, put.time_next_visible

    def lease(self, target: Target) -> tuple[str, str]:
        """Lease a resource; return an id that was changed since, and that which holds.

        Raises:
            AzguardError: that is not possible.
        """
        old, new = self.new_id(), self.new_id()
        noun = target.kind.noun
        seconds = -1 if target.kind is Kind.FILE else LEASE_SECONDS
        acquired = self.send(ALL[f"{noun}.lease_acquire"], target, proposed_lease_id=old, lease_duration=seconds)
        self.require(acquired, target)
        changed = self.send(ALL[f"{noun}.lease_change"], target, headers={"x-ms-lease-id": old}, proposed_lease_id=new)
        self.require(changed, target)
        return old, new

    def look(self, target: Target, *, with_tags: bool = False) -> SeenState | None:
        """Return the state of the target; None if there is nothing.

        Raises:
            AzguardError: it does not tell.
        """
        name = "table.entity_get" if target.kind is Kind.ENTITY else f"{target.kind.noun}.get_properties"
        found = self.send(ALL[name], target)
        if found.status == HTTPStatus.NOT_FOUND:
            return None
        answer = self.require(found, target)
        tags = b""
        if with_tags:
            tags = self.require(self.send(blobs.BLOB_GET_TAGS, target), target).content
        return SeenState(
            etag=answer.headers.get("ETag"),
            last_modified=answer.get("last_modified"),
            size=answer.get("size"),
            lease=answer.get("lease"),
            tags=tags,
        )

    def send(
        self,
        operation: Operation,
        target: Target,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        **given: Any,
    ) -> Reaction:
        """Send a request once, and return how the service reacted."""
        try:
            answer = call(operation, target, _LIMITS, headers=headers, body=body, **given)
            found = Reaction(answer.status, None, answer=answer)
        except (NoAnswer, Refusal, Unreadable) as error:
            was_sent = not isinstance(error, NotConnected)
            found = Reaction(status(error), service_code(error), None, translate(error, target), was_sent)
        if target.account is self.account and (found.is_done or found.is_denied):
            self.tried[operation.name] = found
        return found

    def require(self, found: Reaction, target: Target) -> Answer:
        """Return the answer to a request that was done.

        Raises:
            AzguardError: it was not done.
        """
        if found.is_unknown:
            raise Unavailable(f"{found}: there is no such operation", address=str(target.address))
        if found.answer is None:
            raise found.error or Unavailable(str(found), address=str(target.address))
        return found.answer

    def hide_names(self, text: str) -> str:
        """Return a text without the names of the account and of its user."""
        for name in sorted(filter(None, self.names), key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.names[name], text)
        return text

    def remove_all(self) -> None:
        """Delete all that was made, leased or not; the contents of a container or share go with it."""
        rooms = {target.address.container for target in self._made if target.kind in ROOMS.values()}
        for target in reversed(self._made):
            is_room = target.kind in ROOMS.values()
            if is_room or target.address.container not in rooms:
                with suppress(AzguardError):
                    self._remove(target)
        self._made.clear()

    def _remove(self, target: Target) -> None:
        noun = "entity" if target.kind is Kind.ENTITY else target.kind.noun
        operation = tables.TABLE_ENTITY_DELETE if noun == "entity" else ALL[f"{noun}.delete"]
        sends = operation.http.sends
        given: dict[str, Any] = {"delete_snapshots": "include"} if "delete_snapshots" in sends else {}
        given |= {"if_match": "*"} if "if_match" in sends else {}
        if self.send(operation, target, **given).code == "LeaseIdMissing":
            self.send(ALL[f"{noun}.lease_break"], target, lease_break_period=0)
            self.send(operation, target, **given)


def _find_creation(kind: Kind, how: str) -> Operation:
    if kind is Kind.ENTITY:
        return ALL["table.entity_insert"]
    return ALL[f"blob.put_{how or 'block'}_blob" if kind is Kind.BLOB else f"{kind.noun}.create"]
