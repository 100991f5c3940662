"""Which of the resources read here changed since, asked of the service in parallel."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from azguard import address, columns
from azguard.accounts.account import Account, Target
from azguard.address import Kind
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Entry, Key
from azguard.errors import AzguardError, BadRequest, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.resources import properties
from azguard.resources.lifecycles import is_nowhere
from azguard.wire.rows import Part

# The service answers each in a few milliseconds; more threads than this only wait for each other.
_PARALLEL = 8
UNCHANGED = "unchanged"
PROPERTIES_UNCHANGED = "properties_unchanged"
UNANSWERED = "unanswered"
_OF_A_RECEIPT = "the service does not tell whether the receipt of a message is stale"


@frozen
class Read:
    """What was read here of one resource."""

    target: Target
    etag: str
    time: str
    #: The file that it was read into; None if it went elsewhere.
    path: str | None = None
    #: Whether this scope holds a lease on it.
    held: bool = False


@frozen
class ResourceStatus:
    """The state of one resource since it was read."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.STATE,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
        columns.FILE,
    )

    address: str
    #: ``unchanged``, ``changed``, ``leased``, ``vanished`` or ``unanswered``. Of a container, a table, a share or
    #: a directory it is ``properties_unchanged``, because its ETag says nothing of what is in it.
    state: str
    etag: str
    current_etag: str | None
    last_modified: datetime | None
    lease_state: str | None
    read: str
    file: str | None
    reason: str | None = None


def reads_of(cache: EtagCache, targets: Sequence[Target]) -> list[Read]:
    """Return the reads of these resources that the scope of a cache remembers.

    Raises:
        NotFound: the scope has never read one of the resources.
    """
    found = [(target, _find_read(cache, target)) for target in targets]
    unread = next((str(target.address) for target, entry in found if entry is None), None)
    if unread is not None:
        raise NotFound(f"{unread} was never read here", address=unread, reason="address_not_in_account")
    return [_read(cache, target, entry) for target, entry in found if entry is not None]


def _find_read(cache: EtagCache, target: Target) -> Entry | None:
    """Return the entry of a resource, else of its metadata or policies alone, whose version is the resource's ETag."""
    key = Key.of(target)
    # The service gives a queue no ETag; the versions of its parts are azguard's own.
    parts = () if target.kind is Kind.QUEUE else (Part.METADATA, Part.ACL)
    return cache.find_last(key) or next(filter(None, (cache.find_part(key, part) for part in parts)), None)


def all_reads(cache: EtagCache, scope: str, account: Account, tell_others: Callable[[int], None]) -> list[Read]:
    """Return all that a scope has read in one account; ``tell_others`` is given the number of reads in others."""
    endpoints = set(account.endpoints.values())
    entries = list(cache.list_entries(scope))
    # The service tells no one the receipt of a message.
    entries = [entry for entry in entries if not entry.address.startswith(f"{Kind.MESSAGE}:")]
    here = [entry for entry in entries if entry.account in endpoints]
    if len(here) < len(entries):
        tell_others(len(entries) - len(here))
    return [_read(cache, Target(account, address.parse(entry.address).address), entry) for entry in here]


def check_each(reads: Sequence[Read], deadline: Callable[[], Deadline]) -> Iterator[ResourceStatus]:
    """Yield the state of each resource, in the order given."""
    pool = ThreadPoolExecutor(min(_PARALLEL, max(1, len(reads))))
    try:
        yield from pool.map(lambda each: _look(each, deadline()), reads)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for the answers to reads.


def _read(cache: EtagCache, target: Target, entry: Entry) -> Read:
    return Read(
        target=target,
        etag=entry.etag,
        time=entry.time,
        path=entry.path,
        held=cache.find_held(Key.of(target)) is not None,
    )


def _look(read: Read, deadline: Deadline) -> ResourceStatus:
    found = ResourceStatus(
        address=str(read.target.address),
        state=UNANSWERED,
        etag=read.etag,
        current_etag=None,
        last_modified=None,
        lease_state=None,
        read=read.time,
        file=read.path,
    )
    if read.target.kind is Kind.MESSAGE:
        return replace(found, reason=_OF_A_RECEIPT)
    try:
        etag, modified, lease_state = _current(read.target, deadline)
    except NotFound as error:
        return replace(found, state="vanished", reason=error.message if is_nowhere(read.target, error) else None)
    except AzguardError as error:
        return replace(found, reason=error.message)
    state, reason = _as_it_was(read.target.kind)
    if etag != read.etag:
        state = "changed"
    elif lease_state in ("leased", "breaking") and not read.held:
        state = "leased"
    return replace(
        found, state=state, current_etag=etag, last_modified=modified, lease_state=lease_state, reason=reason
    )


def _as_it_was(kind: Kind) -> tuple[str, str | None]:
    """Return the word for the same ETag, and what that does not tell."""
    if kind is Kind.CONTAINER:
        return PROPERTIES_UNCHANGED, "a container's ETag says nothing of the blobs in it"
    if kind in (Kind.SHARE, Kind.DIR):
        return PROPERTIES_UNCHANGED, "the ETag says nothing of the files in it"
    if kind is Kind.TABLE:
        return PROPERTIES_UNCHANGED, "the ETag is of the access policies, and says nothing of the entities"
    return UNCHANGED, None


def _current(target: Target, deadline: Deadline) -> tuple[str | None, datetime | None, str | None]:
    """Return the ETag, the time of the last change and the state of the lease, as far as there are such."""
    if target.kind is Kind.ENTITY:
        from azguard.tables import edm
        from azguard.tables import entities as table_reads

        stored = table_reads.get(target, deadline, edm.KEYS)
        return stored.etag, table_reads.read_timestamp(stored), None
    if target.kind is Kind.TABLE:
        from azguard.resources import parts

        return parts.get_policies(target, Conditions(), deadline).etag, None, None
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except BadRequest as error:
        # The key is for other blobs of those that were read.
        if error.reason != "not_encrypted_with_a_key":
            raise
        plain = target._replace(account=replace(target.account, encryption={}))
        found = properties.fetch(plain, Conditions(), deadline)
    version = properties.describe_version(target.address, found)
    return version["etag"], version["last_modified"], None if target.kind is Kind.DIR else found.lease.state
