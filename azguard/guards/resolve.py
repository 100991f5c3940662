"""What the user asked for → what this operation may send.

The rules: an empty value is refused, a condition the service does not enforce is refused, two
that it does not evaluate together are refused, and a write with none of them is guarded by what was last read.
"""

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from azguard.accounts.account import Target
from azguard.errors import Changed, UsageError
from azguard.frozen import frozen
from azguard.guards import requested, versions
from azguard.guards.requested import RequestedConditions
from azguard.guards.versions import Remembered
from azguard.wire.rows import Condition, Guard, Operation, Write

#: The guard of an append where nothing was read: the end of the blob, which the writer looks up.
POSITION = "position"
_OF_SOURCE = frozenset(condition.header for condition in Condition if condition.of_source)
# What nothing fulfils that is created only now.
_OF_EXISTING = frozenset(each.header for each in (Condition.IF_MATCH, Condition.IF_UNMODIFIED_SINCE, Condition.IF_TAGS))
# The rows of one service load without those of another.
_SET_TIER = "blob.set_tier"
_REPLACE_ENTITY = "table.entity_update"


@frozen
class Conditions:
    """What a request carries, and what guards it."""

    headers: Mapping[str, str] = field(default_factory=dict)
    #: The name that results show: if-match, if-none-match, position, lease, fence, compare,
    #: conditions or none.
    guard: str = "none"
    #: The one version that the write is for.
    expected_etag: str | None = None
    lease_id: str | None = None
    #: The lineage of that version, if it is known.
    lineage: str | None = None
    #: The bytes of that version, if they are known; not sent.
    length: int | None = field(default=None, compare=False)
    #: Whether this scope has read no version, so that the write can only create.
    never_read: bool = False
    #: What the write leaves in a tag: see ``fences``.
    fence: int | None = None
    #: The type of the version that the write is for, if that is known here; it is not sent.
    blob_type: str | None = field(default=None, compare=False)
    #: When this scope deleted that version; not sent.
    deleted: str | None = field(default=None, compare=False)

    @property
    def request_headers(self) -> dict[str, str]:
        """Return the request headers of the conditions and the lease."""
        lease = {"x-ms-lease-id": self.lease_id} if self.lease_id else {}
        return {**self.headers, **lease}

    def without_version(self) -> "Conditions":
        """Return the conditions of an append for no version: the end of the blob is its guard."""
        headers = {name: value for name, value in self.headers.items() if name != Condition.IF_MATCH.header}
        return Conditions(headers, POSITION, lease_id=self.lease_id)

    @property
    def source_headers(self) -> dict[str, str]:
        """Return the request headers of the conditions on the source of a copy."""
        return {name: value for name, value in self.headers.items() if name in _OF_SOURCE}

    def without_source(self) -> "Conditions":
        """Return the conditions on what is written alone."""
        return replace(self, headers={name: each for name, each in self.headers.items() if name not in _OF_SOURCE})

    @property
    def creates_only(self) -> bool:
        """Return whether the write is for a resource that does not exist yet."""
        return self.headers.get(Condition.IF_NONE_MATCH.header) == "*"

    @property
    def need_existing(self) -> bool:
        """Return whether they are of a resource that exists, so that one created for them would not fulfil them."""
        position = self.headers.get(Condition.APPEND_POSITION.header, "0")
        return self.lease_id is not None or not _OF_EXISTING.isdisjoint(self.headers) or int(position) > 0

    @property
    def is_creation(self) -> bool | None:
        """Return whether a write that they let pass created the resource; None if they do not tell."""
        if self.creates_only:
            return True
        return False if self.expected_etag else None


def resolve(
    operation: Operation, asked: RequestedConditions, target: Target, known: Remembered | None = None
) -> Conditions:
    """Return the conditions that ``operation`` sends, from those asked for and from this scope's memory of the target.

    Raises:
        UsageError: an empty or malformed value, or a condition or combination this operation does not honour.
        Changed: the write needs a version, and this scope has never read one.
    """
    known = known or Remembered()
    requested.check(operation, asked)
    values = asked.values
    own = [condition for condition in values if not condition.of_source]
    lease_id = requested.resolve_lease_id(asked.lease_id, known.lease)
    headers = {
        condition.header: requested.resolve_value(operation, condition, value, known, target)
        for condition, value in values.items()
    }
    if asked.fence is not None:
        return _with_fence(asked, headers, lease_id, target)
    if asked.etag is not None:
        etag = requested.resolve_etag(operation, asked.etag, "etag", known, target)
        _require_race(operation, asked)
        return _with_etag(operation, headers, etag, lease_id, known)
    if asked.last_writer_wins and target.kind.service == "table" and Condition.IF_MATCH in operation.honours:
        headers = {Condition.IF_MATCH.header: "*"}  # without If-Match the service would create what is missing
    # A condition on the source of a copy says nothing of what is overwritten.
    if not own and operation.guarded and not asked.last_writer_wins:
        found = _default_guard(operation, target, known, lease_id, allow_race=asked.allow_race)
        return replace(found, headers={**found.headers, **headers}) if headers else found
    expected = headers.get(Condition.IF_MATCH.header)
    expected = None if expected == "*" else expected
    return Conditions(
        headers=headers,
        guard=_guard_name({} if asked.last_writer_wins else [each.header for each in own], lease_id),
        expected_etag=expected,
        lease_id=lease_id,
        **known.describe(expected),
    )


def _default_guard(
    operation: Operation, target: Target, known: Remembered, lease_id: str | None, *, allow_race: bool
) -> Conditions:
    """Return the guard of a write that names no condition. A lease id goes along; it replaces no version."""
    if (operation.name == _SET_TIER or operation.guard is Guard.VERSION) and (
        target.address.snapshot or target.address.version
    ):
        # Its content never changes, so that its address names the version.
        return Conditions(lease_id=lease_id)
    if known.guard is not None and operation.guard is not Guard.NONE:
        if known.other is not None:
            raise versions.two_versions(target, known)
        if known.guard.partial and operation.name == _REPLACE_ENTITY:
            raise Changed(
                f"only a part of {target} was read here, and replacing it would lose the rest",
                address=str(target.address),
                reason="read_in_part",
            )
        if operation.guard is Guard.COMPARE and not allow_race:
            raise UsageError(
                f"azguard can only compare the version of {target} and then write; another writer may come between",
                address=str(target.address),
                reason="read_version_needs_race",
            )
        return _with_etag(operation, {}, versions.version_of(known.guard, target), lease_id, known)
    if operation.write is Write.APPENDS:
        return Conditions({}, POSITION, lease_id=lease_id)
    if operation.creates:
        only = {Condition.IF_NONE_MATCH.header: "*"} if Condition.IF_NONE_MATCH in operation.honours else {}
        return Conditions(only, "if-none-match", lease_id=lease_id, never_read=True)
    if operation.guard is Guard.NONE:
        raise UsageError(
            f"nothing in the service can guard {operation.title}, so it is never done by default",
            address=str(target.address),
            reason="cannot_be_guarded",
        )
    return _guard_unread(operation, target, known, lease_id)


def _guard_unread(operation: Operation, target: Target, known: Remembered, lease_id: str | None) -> Conditions:
    """Return the guard of a write that creates nothing, where no version was read: the one that was deleted here."""
    if known.deleted is not None:
        # No version has this ETag again. So the service tells whether the resource is still gone. A comparison with it
        # needs no ``allow_race``: it never lets a write through.
        etag = versions.version_of(known.deleted, target)
        return _with_etag(operation, {}, etag, lease_id, known)
    if lease_id is not None:
        raise versions.never_read(target, operation.part, reason="never_read_but_leased")
    raise versions.never_read(target, operation.part, reason="never_read_before_write")


def _require_race(operation: Operation, asked: RequestedConditions) -> None:
    if operation.guard is Guard.COMPARE and not asked.allow_race:
        raise UsageError(
            "with an etag azguard can only compare and then write here; another writer may come between",
            argument="etag",
            reason="etag_needs_race",
        )


def _with_etag(
    operation: Operation, headers: Mapping[str, str], etag: str, lease_id: str | None, known: Remembered
) -> Conditions:
    sent = {**headers, Condition.IF_MATCH.header: etag} if operation.guard is Guard.IF_MATCH else dict(headers)
    return Conditions(
        headers=sent,
        guard=operation.guard.value,
        expected_etag=etag,
        lease_id=lease_id,
        deleted=known.find_deletion(etag),
        **known.describe(etag),
    )


def _with_fence(
    asked: RequestedConditions,
    headers: Mapping[str, str],
    lease_id: str | None,
    target: Target,
) -> Conditions:
    if target.address.snapshot or target.address.version:
        raise UsageError(
            f"fence is not for {target}: a snapshot or version keeps the fence it was made with",
            address=str(target.address),
            argument="fence",
            reason="fence_on_snapshot",
        )
    from azguard.guards import fences

    fence = fences.parse(asked.fence or "")
    return Conditions({**fences.condition(fence), **headers}, "fence", lease_id=lease_id, fence=fence)


def _guard_name(headers: Collection[str], lease_id: str | None) -> str:
    if Condition.IF_MATCH.header in headers:
        return "if-match"
    if Condition.IF_NONE_MATCH.header in headers:
        return "if-none-match"
    if headers:
        return "conditions"
    return "lease" if lease_id is not None else "none"
