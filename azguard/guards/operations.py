"""Which condition the storage service honours where: one row for each operation of all four services.

The evidence is tests/data/semantics.yaml; tests/unit/guards/test_operations.py holds the two together row by row.
Where the evidence is open, or at odds with what azguard promises, the reason stands beside the row.

No command stands for these: ``blob.put_append_blob``, ``blob.put_page_blob``, ``file.create``, ``file.copy``;
``container.get_metadata``, ``blob.get_metadata``, ``share.get_metadata``, ``directory.get_metadata``,
``file.get_metadata``. Some of them are steps of a command: ``metadata get`` reads the properties.

A row reads: what it does, its name in the evidence, its page in the REST reference, the conditions honoured,
what a lease means to it, and what keeps ``--etag``.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

_REFERENCE = "https://learn.microsoft.com/rest/api/storageservices/"


class Condition(StrEnum):
    """A condition the service evaluates; the value is its name, such as ``if-match``."""

    IF_MATCH = "if-match"
    IF_NONE_MATCH = "if-none-match"
    IF_MODIFIED_SINCE = "if-modified-since"
    IF_UNMODIFIED_SINCE = "if-unmodified-since"
    IF_TAGS = "if-tags"
    SOURCE_IF_MATCH = "source-if-match"
    SOURCE_IF_NONE_MATCH = "source-if-none-match"
    SOURCE_IF_MODIFIED_SINCE = "source-if-modified-since"
    SOURCE_IF_UNMODIFIED_SINCE = "source-if-unmodified-since"
    SOURCE_IF_TAGS = "source-if-tags"
    APPEND_POSITION = "append-position"
    MAX_SIZE = "max-size"
    SEQUENCE_NUMBER_LE = "if-sequence-number-le"
    SEQUENCE_NUMBER_LT = "if-sequence-number-lt"
    SEQUENCE_NUMBER_EQ = "if-sequence-number-eq"

    @property
    def argument(self) -> str:
        """Return the name of the argument that asks for it, such as ``if_match``."""
        return self.replace("-", "_")

    @property
    def header(self) -> str:
        """Return the HTTP header that carries it."""
        return _HEADERS.get(self, f"x-ms-{self}")

    @property
    def of_source(self) -> bool:
        """Return whether it is about the source of a copy, and so no guard of what is written."""
        return self.startswith("source-")


class Lease(StrEnum):
    """What a lease on the resource means to an operation."""

    NONE = "none"  # there is no lease header; leases are not checked
    OPTIONAL = "optional"  # succeeds without the id; an id that is sent must be that of the active lease
    REQUIRED = "required"  # refused without the id while the resource is leased
    SUBJECT = "subject"  # the operations on the lease itself


class Guard(StrEnum):
    """What keeps ``etag``, the portable guard, on an operation."""

    IF_MATCH = "if-match"  # the service compares
    LEASE = "lease"  # azguard holds a lease, compares, writes, releases: others cannot write in between
    COMPARE = "compare"  # azguard compares, then writes: others can, so only with ``allow_race``
    NONE = "none"  # there is no version to compare, or nothing that could be overwritten


class Write(StrEnum):
    """What an operation does to what is there, and so what it needs when no condition was named."""

    NO = "no"  # reads
    FREE = "free"  # overwrites nothing, or is tied down by an argument (pop receipt, copy id): needs no guard
    APPENDS = "appends"  # overwrites nothing; where it lands matters, which a version or the position ties down
    CREATES = "creates"  # fails by itself if the resource exists
    PUTS = "puts"  # creates or replaces; If-None-Match: * makes it create only
    CHANGES = "changes"  # overwrites or deletes what is there: refused for something never read


class Part(StrEnum):
    """What an operation reads or writes of a resource, where a scope remembers its version apart from the content's."""

    WHOLE = ""
    METADATA = "metadata"
    TAGS = "tags"
    ACL = "acl"


class Operation(NamedTuple):
    """One operation of the REST interface."""

    write: Write
    name: str
    page: str
    honours: frozenset[Condition] = frozenset()
    lease: Lease = Lease.NONE
    guard: Guard = Guard.NONE
    #: Whether several conditions may stand together.
    combines: bool = False
    #: What ``--lease-id`` goes into.
    lease_header: str = "x-ms-lease-id"
    #: Whether a lease id of the source is honoured too.
    source_lease: bool = False
    #: Whether ``--fence`` is kept on it, which takes a condition on tags and, unless it deletes, tags to set.
    fences: bool = False
    #: What to know if a condition is not honoured.
    remark: str = ""
    #: What it reads or writes.
    part: Part = Part.WHOLE

    @property
    def writes(self) -> bool:
        """Return whether it changes the state of the service, so that it must never be repeated blindly."""
        return self.write is not Write.NO

    @property
    def guarded(self) -> bool:
        """Return whether the write can undo another writer's work, so that it never goes out without a guard."""
        return self.write not in (Write.NO, Write.FREE)

    @property
    def overwrites(self) -> bool:
        """Return whether it can follow or overwrite what others wrote, so that ``last_writer_wins`` changes something.

        A rename creates only, unless it is told to replace what is at its destination.
        """
        return self.write in (Write.PUTS, Write.CHANGES, Write.APPENDS) or (
            self.write is Write.CREATES and self.guard is not Guard.NONE
        )

    @property
    def creates(self) -> bool:
        """Return whether it can be told to create only: by If-None-Match: *, or by itself."""
        return self.write in (Write.CREATES, Write.PUTS)

    @property
    def names_lease(self) -> bool:
        """Return whether ``lease_id`` means something: acquiring and breaking a lease go without its id."""
        return self.lease is not Lease.NONE and not self.name.endswith(("lease_acquire", "lease_break"))

    @property
    def wildcards(self) -> frozenset[Condition]:
        """Return the conditions whose value may be ``*``.

        If-Match: * is "must exist" wherever If-Match is honoured. If-None-Match: * is "must not exist", which
        only a write that creates can fulfil; elsewhere the live service's answer is unknown, and the emulator
        ignores it or answers 400. For sources ``*`` is not documented.
        """
        meant = {Condition.IF_MATCH, Condition.IF_NONE_MATCH} if self.write is Write.PUTS else {Condition.IF_MATCH}
        return self.honours & meant

    @property
    def rest(self) -> str:
        """Return the address of its page in the REST reference."""
        return _REFERENCE + self.page

    @property
    def title(self) -> str:
        """Return its name in the REST reference, for messages."""
        words = self.page.removeprefix("performing-").rstrip("0123456789").split("-")
        return " ".join(word.upper() if word in ("acl", "url") else word.capitalize() for word in words)


_HEADERS = {
    Condition.IF_MATCH: "If-Match",
    Condition.IF_NONE_MATCH: "If-None-Match",
    Condition.IF_MODIFIED_SINCE: "If-Modified-Since",
    Condition.IF_UNMODIFIED_SINCE: "If-Unmodified-Since",
    Condition.APPEND_POSITION: "x-ms-blob-condition-appendpos",
    Condition.MAX_SIZE: "x-ms-blob-condition-maxsize",
}

ETAG = frozenset({Condition.IF_MATCH})
TAGS = frozenset({Condition.IF_TAGS})
CHANGED_SINCE = frozenset({Condition.IF_MODIFIED_SINCE})
DATES = CHANGED_SINCE | {Condition.IF_UNMODIFIED_SINCE}
STANDARD = frozenset({Condition.IF_MATCH, Condition.IF_NONE_MATCH}) | DATES
FULL = STANDARD | TAGS
SOURCE_FULL = frozenset(each for each in Condition if each.of_source)
SOURCE = SOURCE_FULL - {Condition.SOURCE_IF_TAGS}
POSITION = frozenset({Condition.APPEND_POSITION})
APPEND = POSITION | {Condition.MAX_SIZE}
SEQUENCE = frozenset(each for each in Condition if each.startswith("if-sequence-number-"))

_reads = partial(Operation, Write.NO)
_free = partial(Operation, Write.FREE)
_creates = partial(Operation, Write.CREATES)
_puts = partial(Operation, Write.PUTS)
_changes = partial(Operation, Write.CHANGES)
_appends = partial(Operation, Write.APPENDS)

_OPTIONAL, _REQUIRED, _SUBJECT = Lease.OPTIONAL, Lease.REQUIRED, Lease.SUBJECT
_IF_MATCH, _LEASE, _COMPARE = Guard.IF_MATCH, Guard.LEASE, Guard.COMPARE
_DESTINATION = "x-ms-destination-lease-id"
_RECEIPT = "the pop receipt takes their place"
_IN_EACH_LINE = 'each line has its own: "etag", "if_match" or "last_writer_wins"'
_UPSERT = "Update and Merge Entity keep a version, Insert Entity creates only"

# Blobs. Only Get Blob and Get Blob Properties are documented to combine conditions; the rule of writes is
# kept for other reads.
BLOB_PUT_BLOCK_BLOB = _puts("blob.put_block_blob", "put-blob", FULL, _REQUIRED, _IF_MATCH, fences=True)
BLOB_PUT_APPEND_BLOB = _puts("blob.put_append_blob", "put-blob", FULL, _REQUIRED, _IF_MATCH)
BLOB_PUT_PAGE_BLOB = _puts("blob.put_page_blob", "put-blob", FULL, _REQUIRED, _IF_MATCH)
BLOB_GET = _reads("blob.get", "get-blob", FULL, _OPTIONAL, combines=True)
BLOB_GET_PROPERTIES = _reads("blob.get_properties", "get-blob-properties", FULL, _OPTIONAL, combines=True)
BLOB_SET_PROPERTIES = _changes("blob.set_properties", "set-blob-properties", FULL, _REQUIRED, _IF_MATCH)
BLOB_GET_METADATA = _reads("blob.get_metadata", "get-blob-metadata", FULL, _OPTIONAL)
BLOB_SET_METADATA = _changes("blob.set_metadata", "set-blob-metadata", FULL, _REQUIRED, _IF_MATCH, part=Part.METADATA)
# Whether a leased blob refuses a tier without the id is unverified; a wrong id is refused. A lease held over
# compare and write keeps --etag all the same: everything that changes the ETag requires its id.
BLOB_SET_TIER = _changes("blob.set_tier", "set-blob-tier", TAGS, _OPTIONAL, _LEASE)
# The x-ms-blob-if-* headers (service version 2026-02-06) are known from the specification only, the emulator
# ignores them, and tags move no ETag: they could not stop a second writer of tags. The lease does.
BLOB_GET_TAGS = _reads("blob.get_tags", "get-blob-tags", TAGS, _OPTIONAL)
BLOB_SET_TAGS = _changes("blob.set_tags", "set-blob-tags", TAGS, _REQUIRED, _LEASE, fences=True, part=Part.TAGS)
BLOB_LEASE_ACQUIRE = _free("blob.lease_acquire", "lease-blob", FULL, _SUBJECT, _IF_MATCH)
BLOB_LEASE_RENEW = _free("blob.lease_renew", "lease-blob", FULL, _SUBJECT, _IF_MATCH)
BLOB_LEASE_CHANGE = _free("blob.lease_change", "lease-blob", FULL, _SUBJECT, _IF_MATCH)
BLOB_LEASE_RELEASE = _free("blob.lease_release", "lease-blob", FULL, _SUBJECT, _IF_MATCH)
BLOB_LEASE_BREAK = _free("blob.lease_break", "lease-blob", FULL, _SUBJECT, _IF_MATCH)
# The documentation calls it a read; recordings of the service answer 412, not 304: a write.
BLOB_SNAPSHOT = _free("blob.snapshot", "snapshot-blob", FULL, _OPTIONAL, _IF_MATCH)
# x-ms-source-lease-id has not been supported since 2012, whatever the SDK sends.
BLOB_COPY = _puts("blob.copy", "copy-blob", FULL | SOURCE_FULL, _REQUIRED, _IF_MATCH, fences=True)
BLOB_ABORT_COPY = _free(
    "blob.abort_copy", "abort-copy-blob", lease=_REQUIRED, remark="the copy id names the one copy it may stop"
)
# Its x-ms-access-tier-if-* conditions have no flag: they watch the tier, not the content.
BLOB_DELETE = _changes("blob.delete", "delete-blob", FULL, _REQUIRED, _IF_MATCH, fences=True)
BLOB_UNDELETE = _free("blob.undelete", "undelete-blob")
BLOB_PUT_BLOCK = _free("blob.put_block", "put-block", lease=_REQUIRED, remark="Put Block List evaluates them")
BLOB_PUT_BLOCK_LIST = _puts("blob.put_block_list", "put-block-list", FULL, _REQUIRED, _IF_MATCH, fences=True)
BLOB_GET_BLOCK_LIST = _reads("blob.get_block_list", "get-block-list", TAGS, _OPTIONAL)
# An append overwrites nothing, but where it lands matters to a writer who has read: guarded by that version. Where
# nothing was read, the end at which it begins is its guard.
BLOB_APPEND_BLOCK = _appends("blob.append_block", "append-block", FULL | APPEND, _REQUIRED, _IF_MATCH)
BLOB_APPEND_BLOCK_FROM_URL = _appends(
    "blob.append_block_from_url", "append-block-from-url", FULL | APPEND | SOURCE, _REQUIRED, _IF_MATCH
)
BLOB_SEAL_APPEND_BLOB = _changes("blob.seal_append_blob", "append-blob-seal", STANDARD | POSITION, _REQUIRED, _IF_MATCH)
BLOB_PUT_PAGE = _changes("blob.put_page", "put-page", FULL | SEQUENCE, _REQUIRED, _IF_MATCH)
BLOB_CLEAR_PAGE = _changes("blob.clear_page", "put-page", FULL | SEQUENCE, _REQUIRED, _IF_MATCH)
BLOB_PUT_PAGE_FROM_URL = _changes(
    "blob.put_page_from_url", "put-page-from-url", FULL | SEQUENCE | SOURCE, _REQUIRED, _IF_MATCH
)
BLOB_GET_PAGE_RANGES = _reads("blob.get_page_ranges", "get-page-ranges", FULL, _OPTIONAL)

# Containers have ETags and honour them nowhere.
CONTAINER_CREATE = _creates("container.create", "create-container")
CONTAINER_GET_PROPERTIES = _reads("container.get_properties", "get-container-properties", lease=_OPTIONAL)
CONTAINER_GET_METADATA = _reads("container.get_metadata", "get-container-metadata", lease=_OPTIONAL)
# A leased container takes metadata and ACLs from anyone, so a lease cannot keep --etag for these two; and
# --if-unmodified-since on the ACL sees whole seconds only.
CONTAINER_SET_METADATA = _changes(
    "container.set_metadata", "set-container-metadata", CHANGED_SINCE, _OPTIONAL, _COMPARE, part=Part.METADATA
)
CONTAINER_GET_ACL = _reads("container.get_acl", "get-container-acl", lease=_OPTIONAL)
CONTAINER_SET_ACL = _changes("container.set_acl", "set-container-acl", DATES, _OPTIONAL, _COMPARE, part=Part.ACL)
# The lease keeps other deleters out, and a container made anew does not have it. Writers of metadata and ACL
# need no lease: against them If-Unmodified-Since has to go along, once the second of the last change is over.
CONTAINER_DELETE = _changes("container.delete", "delete-container", DATES, _REQUIRED, _LEASE)
CONTAINER_LEASE_ACQUIRE = _free("container.lease_acquire", "lease-container", DATES, _SUBJECT)
CONTAINER_LEASE_RENEW = _free("container.lease_renew", "lease-container", DATES, _SUBJECT)
CONTAINER_LEASE_CHANGE = _free("container.lease_change", "lease-container", DATES, _SUBJECT)
CONTAINER_LEASE_RELEASE = _free("container.lease_release", "lease-container", DATES, _SUBJECT)
CONTAINER_LEASE_BREAK = _free("container.lease_break", "lease-container", DATES, _SUBJECT)
CONTAINER_LIST_BLOBS = _reads("container.list_blobs", "list-blobs")

# Tables have no ETag, entities do.
TABLE_CREATE = _creates("table.create", "create-table")
TABLE_DELETE = _changes("table.delete", "delete-table", remark="a table has no ETag")
TABLE_QUERY_TABLES = _reads("table.query_tables", "query-tables")
TABLE_GET_ACL = _reads("table.get_acl", "get-table-acl")
# An ACL without an ETag: its content can be compared, and nothing holds the others off.
TABLE_SET_ACL = _changes("table.set_acl", "set-table-acl", guard=_COMPARE)
TABLE_ENTITY_QUERY = _reads("table.entity_query", "query-entities")
TABLE_ENTITY_GET = _reads("table.entity_get", "query-entities")
TABLE_ENTITY_INSERT = _creates(
    "table.entity_insert", "insert-entity", remark="Insert Or Replace Entity, an upsert, writes whatever is there"
)
TABLE_ENTITY_UPDATE = _changes("table.entity_update", "update-entity2", ETAG, guard=_IF_MATCH)
TABLE_ENTITY_MERGE = _changes("table.entity_merge", "merge-entity", ETAG, guard=_IF_MATCH)
TABLE_ENTITY_DELETE = _changes("table.entity_delete", "delete-entity1", ETAG, guard=_IF_MATCH)
# The same requests as update and merge without If-Match: unconditional. If-None-Match: * does not make them
# create only (the emulator overwrites, the documentation does not list it).
TABLE_ENTITY_INSERT_OR_REPLACE = _changes("table.entity_insert_or_replace", "insert-or-replace-entity", remark=_UPSERT)
TABLE_ENTITY_INSERT_OR_MERGE = _changes("table.entity_insert_or_merge", "insert-or-merge-entity", remark=_UPSERT)
# Each operation inside is one of the rows above and is guarded as that row says.
TABLE_BATCH = _free("table.batch", "performing-entity-group-transactions", remark=_IN_EACH_LINE)

# Queues have neither ETags nor leases; the pop receipt of a message is its version.
QUEUE_CREATE = _creates("queue.create", "create-queue4")
QUEUE_DELETE = _changes("queue.delete", "delete-queue3")
QUEUE_GET_METADATA = _reads("queue.get_metadata", "get-queue-metadata")
QUEUE_SET_METADATA = _changes("queue.set_metadata", "set-queue-metadata", guard=_COMPARE, part=Part.METADATA)
QUEUE_GET_ACL = _reads("queue.get_acl", "get-queue-acl")
QUEUE_SET_ACL = _changes("queue.set_acl", "set-queue-acl", guard=_COMPARE, part=Part.ACL)
QUEUE_PUT_MESSAGE = _free("queue.put_message", "put-message")
# A GET that writes: it hides the messages and gives them new receipts.
QUEUE_GET_MESSAGES = _free("queue.get_messages", "get-messages")
QUEUE_PEEK_MESSAGES = _reads("queue.peek_messages", "peek-messages")
QUEUE_UPDATE_MESSAGE = _free("queue.update_message", "update-message", remark=_RECEIPT)
QUEUE_DELETE_MESSAGE = _free("queue.delete_message", "delete-message2", remark=_RECEIPT)
QUEUE_CLEAR_MESSAGES = _changes("queue.clear_messages", "clear-messages")

# Shares. Unlike a container's, the lease of a share is required by everything that changes the share itself.
SHARE_CREATE = _creates("share.create", "create-share")
SHARE_DELETE = _changes("share.delete", "delete-share", lease=_REQUIRED, guard=_LEASE)
SHARE_GET_PROPERTIES = _reads("share.get_properties", "get-share-properties", lease=_OPTIONAL)
SHARE_SET_PROPERTIES = _changes("share.set_properties", "set-share-properties", lease=_REQUIRED, guard=_LEASE)
SHARE_GET_METADATA = _reads("share.get_metadata", "get-share-metadata", lease=_OPTIONAL)
SHARE_SET_METADATA = _changes(
    "share.set_metadata", "set-share-metadata", lease=_REQUIRED, guard=_LEASE, part=Part.METADATA
)
SHARE_GET_ACL = _reads("share.get_acl", "get-share-acl", lease=_OPTIONAL)
SHARE_SET_ACL = _changes("share.set_acl", "set-share-acl", lease=_REQUIRED, guard=_LEASE, part=Part.ACL)
SHARE_GET_STATS = _reads("share.get_stats", "get-share-stats", lease=_OPTIONAL)
SHARE_SNAPSHOT = _free("share.snapshot", "snapshot-share")
SHARE_LEASE_ACQUIRE = _free("share.lease_acquire", "lease-share", lease=_SUBJECT)
SHARE_LEASE_RENEW = _free("share.lease_renew", "lease-share", lease=_SUBJECT)
SHARE_LEASE_CHANGE = _free("share.lease_change", "lease-share", lease=_SUBJECT)
SHARE_LEASE_RELEASE = _free("share.lease_release", "lease-share", lease=_SUBJECT)
SHARE_LEASE_BREAK = _free("share.lease_break", "lease-share", lease=_SUBJECT)

# Directories have neither conditions nor leases.
DIRECTORY_CREATE = _creates("directory.create", "create-directory")
DIRECTORY_DELETE = _changes("directory.delete", "delete-directory", guard=_COMPARE)
DIRECTORY_GET_PROPERTIES = _reads("directory.get_properties", "get-directory-properties")
DIRECTORY_SET_PROPERTIES = _changes("directory.set_properties", "set-directory-properties", guard=_COMPARE)
DIRECTORY_GET_METADATA = _reads("directory.get_metadata", "get-directory-metadata")
DIRECTORY_SET_METADATA = _changes(
    "directory.set_metadata", "set-directory-metadata", guard=_COMPARE, part=Part.METADATA
)
# The lease is that of a file which stands where the directory is to go. A rename creates only as long as it
# goes without "replace if exists": documented, not recorded.
DIRECTORY_RENAME = _creates(
    "directory.rename", "rename-directory", lease=_REQUIRED, guard=_COMPARE, lease_header=_DESTINATION
)

# Files. Create File and Copy File overwrite and cannot be told to create only; Rename File can.
FILE_CREATE = _changes("file.create", "create-file", lease=_REQUIRED, guard=_LEASE)
FILE_GET = _reads("file.get", "get-file", lease=_OPTIONAL)
FILE_DELETE = _changes("file.delete", "delete-file2", lease=_REQUIRED, guard=_LEASE)
FILE_GET_PROPERTIES = _reads("file.get_properties", "get-file-properties", lease=_OPTIONAL)
FILE_SET_PROPERTIES = _changes("file.set_properties", "set-file-properties", lease=_REQUIRED, guard=_LEASE)
FILE_GET_METADATA = _reads("file.get_metadata", "get-file-metadata", lease=_OPTIONAL)
FILE_SET_METADATA = _changes(
    "file.set_metadata", "set-file-metadata", lease=_REQUIRED, guard=_LEASE, part=Part.METADATA
)
# The CRC-64 conditions of Put Range From URL compare the source's range, not a version, and have no flag.
FILE_PUT_RANGE = _changes("file.put_range", "put-range", lease=_REQUIRED, guard=_LEASE)
FILE_LIST_RANGES = _reads("file.list_ranges", "list-ranges", lease=_OPTIONAL)
FILE_COPY = _changes("file.copy", "copy-file", lease=_REQUIRED, guard=_LEASE)
FILE_ABORT_COPY = _free("file.abort_copy", "abort-copy-file", lease=_REQUIRED)
FILE_LEASE_ACQUIRE = _free("file.lease_acquire", "lease-file", lease=_SUBJECT)
FILE_LEASE_CHANGE = _free("file.lease_change", "lease-file", lease=_SUBJECT)
FILE_LEASE_RELEASE = _free("file.lease_release", "lease-file", lease=_SUBJECT)
FILE_LEASE_BREAK = _free("file.lease_break", "lease-file", lease=_SUBJECT)
FILE_RENAME = _creates(
    "file.rename", "rename-file", lease=_REQUIRED, guard=_LEASE, lease_header=_DESTINATION, source_lease=True
)
FILE_LIST_HANDLES = _reads("file.list_handles", "list-handles")
# An operator's act, like breaking a lease: there is no version it could be tied to.
FILE_FORCE_CLOSE_HANDLES = _free("file.force_close_handles", "force-close-handles")

ALL: Mapping[str, Operation] = MappingProxyType(
    {row.name: row for row in list(globals().values()) if isinstance(row, Operation)}
)


def find_rejected_pair(operation: Operation, conditions: AbstractSet[Condition]) -> tuple[Condition, Condition] | None:
    """Return the first two conditions that must not stand together on this operation, or None.

    Of two standard ones the service refuses both (400 MultipleConditionHeadersNotSupported) or evaluates
    one. What it makes of a tags condition beside another is unknown on writes, and the emulator then ignores
    the tags. Conditions on a source follow the same rule among themselves. Append position, size and sequence
    number are evaluated beside the others.

    https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
    """
    if operation.combines:
        return None
    for family in (FULL, SOURCE_FULL):
        together = [condition for condition in Condition if condition in family and condition in conditions]
        if len(together) > 1:
            return together[0], together[1]
    return None


def why_not(operation: Operation, condition: Condition) -> str:
    """Return, in one sentence without its full stop, why the operation does not honour the condition."""
    service = operation.name.partition(".")[0]
    if service in ("share", "directory", "file"):
        return "Azure Files evaluates no conditions, neither on reads nor on writes"
    if service == "queue":
        return _with_remark(operation, "the Queue service has no ETags and evaluates no conditions")
    if operation.write is Write.CREATES and condition is Condition.IF_NONE_MATCH:
        return f"{operation.title} never replaces anything, so it needs no create-only condition"
    if condition not in FULL:
        honouring = {row.title for row in ALL.values() if condition in row.honours}
        return f"only {_list(sorted(honouring))} {'honours' if len(honouring) == 1 else 'honour'} it"
    names = [str(each) for each in Condition if each in operation.honours]
    honours = f"only {_list(names)}" if names else "no conditions"
    return _with_remark(operation, f"{operation.title} honours {honours}")


def why_not_overwriting(operation: Operation) -> str:
    """Return, in one sentence without its full stop, why ``last_writer_wins`` changes nothing here."""
    if not operation.writes:
        return f"{operation.title} writes nothing"
    return _with_remark(operation, f"{operation.title} overwrites nothing")


def why_no_race(operation: Operation) -> str:
    """Return, in one sentence without its full stop, why ``allow_race`` changes nothing here."""
    if operation.guard is Guard.IF_MATCH:
        return "the service itself compares, so there is no race to allow"
    if operation.guard is Guard.LEASE:
        return "a lease keeps others out meanwhile, so there is no race to allow"
    return f"with {operation.title} no version is compared"


def _with_remark(operation: Operation, sentence: str) -> str:
    return f"{sentence}; {operation.remark}" if operation.remark else sentence


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
