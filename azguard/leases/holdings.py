"""Who holds what in an account, or in one container of it: leases, and what other programs lock without a lease.

Containers are listed a few at a time. What is found comes in order of container and name, in constant memory; then the
shares. A listing of files does not tell their leases. Two listings are compared for what changed meanwhile.

Not guaranteed: a listing is no snapshot. What is taken and released while it runs may be missed.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from http import HTTPStatus
from queue import Full, Queue
from typing import TYPE_CHECKING, ClassVar, Self

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.columns import Column
from azguard.errors import AzguardError, BadRequest, Forbidden, NotFound, Partial
from azguard.frozen import frozen
from azguard.leases import conventions, owners
from azguard.leases.conventions import UNKNOWN, Claim, Holding, Read, build_holding
from azguard.leases.owners import INFINITE, Owner
from azguard.leases.state import LeaseState, list_states, parse_state
from azguard.requests import calls
from azguard.requests.calls import read, walk_pages
from azguard.requests.deadline import Deadline
from azguard.times import say_count
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_GET
from azguard.wire.operations.containers import CONTAINER_LIST
from azguard.wire.operations.shares import SHARE_LIST
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from datetime import datetime


# So many containers are listed at the same time; a page of each is in memory.
_PARALLEL = 8
# So many findings of a container wait for those of the containers before it.
_AHEAD = 500
# How long a thread that waits for room goes on after the reader has gone.
_POLL_SECONDS = 0.2
# The record of a lock is short; what is longer is none.
_RECORD_BYTES = 4096
_NEVER_LEASED = "available"
_NO_CLAIM = Claim(UNKNOWN, None, conventions.UNKNOWN_AGE)
TAKEN = "taken"
FREED = "freed"
CHANGED = "changed"
# What moves by itself while nothing changes hands.
_MOVING = ("age", "alive", "etag", "last_modified")
# An account without the service has an endpoint all the same, at which nothing answers.
_REACH_SECONDS = 2.0


@frozen(kw_only=True)
class Selection:
    """Which of all that is held is meant."""

    #: The beginning of ``CONTAINER/NAME``, or of a name where one container is listed.
    prefix: str = ""
    #: List leases in one of these states only, and no lock without a lease; None lists every lock.
    states: AbstractSet[str] | None = None
    #: Only what is held now.
    held_only: bool = False
    #: The digests of the leases of which one must hold it, as its record says; None is any.
    digests: AbstractSet[str] | None = None
    #: Only what is certainly held for longer than this.
    stale_seconds: float | None = None

    def includes(self, state: LeaseState, claim: Claim) -> bool:
        """Return whether a finding is selected, at any age."""
        if self.states is not None:
            return state.state in self.states
        if self.digests is not None:
            owner = state.holder
            return not state.free and isinstance(owner, Owner) and owner.lease in self.digests
        if not state.free or claim.is_leaseless:
            return True
        return owners.is_lock(state.metadata) and not self.held_only and self.stale_seconds is None


@dataclass
class ListingTally:
    """What a listing could not tell."""

    #: The containers that could not be listed, and why.
    failed: list[AzguardError] = field(default_factory=list)
    #: How many are held since an unknown time, so that they were left out of a list of stale ones.
    undated: int = 0
    #: How many blobs were looked at.
    looked: int = 0
    #: How many containers were asked.
    containers: int = 0
    #: Whether there are shares: the service does not list the leases on the files in them.
    has_shares: bool = False

    def check(self, address: str) -> None:
        """Refuse to call a listing complete that lacks a container.

        Raises:
            Partial: it does.
        """
        if self.failed:
            raise Partial(
                f"{len(self.failed)} of {say_count(self.containers, 'container')} could not be listed",
                address=address,
                reason="some_containers_not_listed",
            )


# What a thread has found; then the error that ended its listing, or None.
_Found = Holding | BaseException | None


class HoldingsList:
    """One listing of all that is held."""

    def __init__(
        self,
        selection: Selection,
        deadline: Deadline,
        report: Callable[[AzguardError], None],
        progress: Callable[[int], object] = lambda looked: None,
    ) -> None:
        self._selection = selection
        self._deadline = deadline
        self._report = report
        #: Is told how many blobs were looked at, by any thread.
        self._progress = progress
        self._gone = threading.Event()
        #: The service's time before what is listed now, by which stale ones are chosen; None if it is not known.
        self._began_at: datetime | None = None
        #: Complete when the listing is over.
        self.tally = ListingTally()

    def of_account(self, account: Account) -> Iterator[Holding]:
        """Yield the holdings in all containers, and the leases of the containers themselves; then those of the shares.

        A container that may not be listed is reported, and the others go on. So are the shares: an account or a
        credential may be without them.

        Raises:
            AzguardError: the containers themselves cannot be listed, or the service does not answer.
        """
        if "blob" not in account.endpoints and "file" in account.endpoints:
            yield from self._list_shares(account)
            return
        yield from self._of_containers(account)
        try:
            yield from self._list_shares(account)
        except AzguardError as error:
            self._report(error)

    def _list_shares(self, account: Account) -> Iterator[Holding]:
        for number, listed in enumerate(_list_share_states(account, self._deadline, self._selection.prefix)):
            if number == 0:  # Now it is known that there are shares to ask for it.
                self._note_time(account, Kind.SHARE)
            self.tally.has_shares = True
            if listed.state != _NEVER_LEASED:
                yield from self._choose(listed)

    def _of_containers(self, account: Account) -> Iterator[Holding]:
        self._note_time(account, Kind.BLOB)
        waiting = deque[tuple[LeaseState, Queue[_Found]]]()
        name, slash, _ = self._selection.prefix.partition("/")
        everything = Target(account, Address(Kind.CONTAINER, ("",)))
        found = _list_all(CONTAINER_LIST, everything, self._deadline, ("Containers", "Container"), name)
        containers = (each for each in found if not slash or each.address.partition(":")[2] == name)
        with ThreadPoolExecutor(_PARALLEL, "containers") as pool:
            try:
                for each in containers:
                    self.tally.containers += 1
                    ahead = Queue[_Found](_AHEAD)
                    pool.submit(self._work, account, each, ahead)
                    waiting.append((each, ahead))
                    if len(waiting) == _PARALLEL:
                        yield from self._finish(*waiting.popleft())
                while waiting:
                    yield from self._finish(*waiting.popleft())
            finally:
                self._gone.set()

    def of_container(self, container: Target) -> Iterator[Holding]:
        """Yield the holdings in one container.

        Raises:
            AzguardError: it cannot be listed.
        """
        self._note_time(container.account, Kind.BLOB)
        for state in self._list_blobs(container, self._deadline, self._selection.prefix):
            yield from self._choose_blob(container.account, state)

    def _list_blobs(self, container: Target, deadline: Deadline, prefix: str) -> Iterator[LeaseState]:
        """Yield the leases on blobs. The listing ends early when its reader has ended, such as after Ctrl-C."""
        for state in list_states(container, deadline, prefix or None):
            if self._gone.is_set():
                return
            self.tally.looked += 1
            self._progress(self.tally.looked)
            yield state

    def _finish(self, container: LeaseState, found: "Queue[_Found]") -> Iterator[Holding]:
        if "/" not in self._selection.prefix and container.state != _NEVER_LEASED:
            yield from self._choose(container)
        while isinstance(each := found.get(), Holding):
            yield each
        if isinstance(each, Forbidden):
            self.tally.failed.append(each)
            self._report(each)
        elif each is not None and not isinstance(each, NotFound):  # One that is gone holds nothing.
            raise each

    def _work(self, account: Account, container: LeaseState, found: "Queue[_Found]") -> None:
        end: BaseException | None = None
        name = container.address.partition(":")[2]
        target = Target(account, Address(Kind.CONTAINER, (name,)))
        try:
            begins = self._selection.prefix.partition("/")[2]
            for state in self._list_blobs(target, self._deadline.fresh(), begins):
                for each in self._choose_blob(account, state):
                    if not self._put(found, each):
                        return
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that reads
            end = error
        self._put(found, end)

    def _put(self, found: "Queue[_Found]", each: _Found) -> bool:
        """Hand a finding over, and return whether it is still wanted."""
        while not self._gone.is_set():
            try:
                found.put(each, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def _note_time(self, account: Account, kind: Kind) -> None:
        if self._selection.stale_seconds is not None:
            self._began_at = calls.ask_service_time(account, kind, self._deadline.fresh())

    def _choose_blob(self, account: Account, listed: LeaseState) -> Iterator[Holding]:
        def read_record() -> bytes:
            target = Target(account, Address(Kind.BLOB, conventions.split_address(listed.address)))
            return _read_record(target, self._deadline.fresh())

        # A ticket keeps a place in the queue of a lock, and holds nothing.
        return iter(()) if owners.is_ticket(listed.metadata) else self._choose(listed, read_record)

    def _choose(self, listed: LeaseState, read_record: Read = bytes) -> Iterator[Holding]:
        """Yield the holding of a resource, by its lease or as a lock without one, if it is selected."""
        state = listed
        if self._selection.stale_seconds is not None:
            state = replace(listed, answered_at=self._began_at)
        claim = self._find_claim(state, read_record)
        if claim is None or not self._selection.includes(state, claim):
            return
        least = self._selection.stale_seconds
        if least is not None:
            if claim.age.at_least is None:
                self.tally.undated += 1
                return
            if claim.age.at_least < least:
                return
        yield build_holding(state, claim)

    def _find_claim(self, state: LeaseState, read_record: Read) -> Claim | None:
        states = self._selection.states
        if states is None:
            return conventions.find_claim(state, read_record)
        return conventions.find_claim(state, read_record) or _NO_CLAIM if state.state in states else None


def _read_record(target: Target, deadline: Deadline) -> bytes:
    """Return the beginning of a blob's content; empty if it is gone, or may not be read."""
    asked = f"bytes=0-{_RECORD_BYTES - 1}"
    try:
        return read(lambda timeouts: call(BLOB_GET, target, timeouts, range=asked).take_content(), target, deadline)
    except (NotFound, Forbidden):
        return b""
    except BadRequest as error:
        if error.http_status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # An empty blob has no range.
        return b""


@frozen
class HoldingChange(Holding):
    """One change; of what was freed, all else is as it was before."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (columns.ADDRESS, columns.CHANGE, *Holding.COLUMNS[1:])

    #: ``taken``, ``freed`` or ``changed``.
    change: str

    @classmethod
    def of(cls, change: str, holding: Holding) -> Self:
        return cls(**vars(holding), change=change)


def index(found: Sequence[Holding]) -> Mapping[str, Holding]:
    """Return the current holdings by address."""
    return {each.address: each for each in found if each.is_held}


def carry_over(before: Mapping[str, Holding], now: Mapping[str, Holding], tally: ListingTally) -> Mapping[str, Holding]:
    """Return the current holdings, and the earlier holdings in containers that could not be listed this time."""
    unseen = {(each.address or "").partition(":")[2] for each in tally.failed}
    kept = {address: each for address, each in before.items() if conventions.split_address(address)[0] in unseen}
    return {**kept, **now}


def compare(before: Mapping[str, Holding], now: Mapping[str, Holding]) -> list[HoldingChange]:
    """Return the holdings that were taken, freed or changed between two listings, in order of address."""
    changes = []
    for address in sorted({*before, *now}):
        then, held = before.get(address), now.get(address)
        if held is None and then is not None:
            changes.append(HoldingChange.of(FREED, then))
        elif held is not None and then is None:
            changes.append(HoldingChange.of(TAKEN, held))
        elif held is not None and then is not None and _identify(held) != _identify(then):
            changes.append(HoldingChange.of(CHANGED, held))
    return changes


def _identify(holding: Holding) -> tuple[object, ...]:
    # The end of a lease with a term is told until it is renewed past it; that of one without moves by a write alone.
    moving = _MOVING if holding.lease_duration == INFINITE else (*_MOVING, "ends")
    return tuple(getattr(holding, each.name) for each in fields(Holding) if each.name not in moving)


def _list_share_states(account: Account, deadline: Deadline, prefix: str) -> Iterator[LeaseState]:
    """Return the state of the lease of every share, in order of name.

    ``prefix`` is as for blobs: of the share, or of something in it. An account that was given without the service has
    no shares.
    """
    name, slash, _ = prefix.partition("/")
    if "file" not in account.endpoints or slash:
        return iter(())
    reach = deadline.briefly(_REACH_SECONDS)
    return _list_all(SHARE_LIST, Target(account, Address(Kind.SHARE, ("",))), reach, ("Shares", "Share"), name)


def _list_all(
    operation: Operation, everything: Target, deadline: Deadline, tags: tuple[str, str], prefix: str
) -> Iterator[LeaseState]:
    """Yield the state of the lease of every container, or of every share, page by page.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-containers2 and /list-shares
    """
    for page in walk_pages(operation, everything, deadline, *tags, prefix=prefix or None, include="metadata"):
        for item in page.items:
            yield parse_state(item, Address(everything.kind, (item.name,)), page.answer.date)
