"""What the ETag cache keeps: its values, their rows, and their form in an export.

What it keeps of a version beside its columns stands behind the command that read or wrote it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

from azguard import address as addresses
from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.versions import BLOCK_BLOB
from azguard.requests.lineage import Lineage
from azguard.times import iso

Row = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# How the action ends of a lease that was given up, although a request for it may come late; and of one with which an
# owner record was left on the resource.
GIVEN_UP = ", given up"
WITH_REASON = " --reason"
# An endpoint has neither a query nor a user; a SAS has its signature behind one of these.
_SECRET_ACCOUNT = ("sig=", "?", "@")
_SECRET_TEXT = ("?sig=", "&sig=", "accountkey=", "sharedaccesssignature=")
# The largest length SQLite can hold; the largest blob is far below.
_LONGEST = 2**63 - 1
# A command that delivered only a part is recorded with these options, as a user would type it.
SELECTING = " --select "
_OF_TYPE = " --blob-type "
_HIDDEN_UNTIL = ", hidden until "


class Key(NamedTuple):
    """One resource: its account's endpoint without secrets, and the address with its prefix."""

    account: str
    address: str

    @classmethod
    def of(cls, target: Target) -> Self:
        return cls(target.endpoint, str(target.address))


@frozen
class Entry:
    """The version that was last delivered to the user, or written by us."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.LAST_MODIFIED, columns.ETAG)

    scope: str
    account: str
    address: str
    etag: str
    last_modified: str | None
    #: In bytes.
    length: int | None
    content_hash: str | None
    #: The azguard lineage that the version carried.
    lineage: str | None
    #: The real path, if it went to a file.
    path: str | None
    #: When it was recorded.
    time: str
    command: str

    @property
    def key(self) -> Key:
        return Key(self.account, self.address)

    def repeats(self, version: "Entry", command: str) -> bool:
        """Return whether this command has recorded this version before."""
        wanted = (version.etag, version.content_hash, command)
        return (self.etag, self.content_hash, find_command(self.command)) == wanted


class Bound(NamedTuple):
    """The versions that a file is tied to."""

    #: By its path.
    path: Entry | None
    #: By its inode.
    inode: Entry | None


@frozen
class HeldLease:
    """A lease this scope asked for and has not released."""

    scope: str
    account: str
    address: str
    lease_id: str
    #: In seconds; None is infinite.
    duration: int | None
    action: str
    #: Whether the service's answer was seen. If not, the request may or may not have arrived.
    confirmed: bool
    #: The moment before the request, from which a term counts.
    time: str
    #: The CI job that asked for it: see ``scope``; None if that was none, or is not known.
    job: str | None = None

    @property
    def key(self) -> Key:
        return Key(self.account, self.address)

    @property
    def is_given_up(self) -> bool:
        """Return whether it was given up, so that only a request that comes late can acquire it."""
        return self.action.endswith(GIVEN_UP)

    @property
    def has_reason(self) -> bool:
        """Return whether an owner record was left on the resource."""
        return self.action.endswith(WITH_REASON)


def require_no_secrets(key: Key, command: str = "") -> Key:
    """Return the key if nothing in it, or in the command, looks like a credential."""
    if _is_secret_account(key.account) or _is_secret(key.address):
        raise UsageError("an address with a credential in it is never written to the ETag cache")
    if _is_secret(command):
        raise UsageError("a command with a credential in it is never written to the ETag cache")
    if not _is_text(key.account) or not _is_text(key.address):
        raise UsageError("an address that is not Unicode text cannot be a resource")
    return key


@lru_cache(maxsize=8)
def _is_secret_account(account: str) -> bool:
    return any(each in account for each in _SECRET_ACCOUNT)


def _is_secret(text: str) -> bool:
    return "=" in text and any(each in text.lower() for each in _SECRET_TEXT)


def count_microseconds(moment: datetime) -> int:
    """Return microseconds since 1970: as text, times with and without a fraction would not sort."""
    return (moment - _EPOCH) // _MICROSECOND


#: The columns of a row, in the order of the fields.
ENTRY_COLUMNS = tuple(each.name for each in fields(Entry))
LEASE_COLUMNS = tuple(each.name for each in fields(HeldLease))


# The rows of a version that is in a file are alike.
@lru_cache(maxsize=8)
def parse_entry(row: Row) -> Entry:
    """Return the entry of a row."""
    *values, path, time, command = row
    values += (None if path is None else os.fsdecode(path), _format_time(time), command)
    return Entry(*values)


def parse_lease(row: Row) -> HeldLease:
    """Return the held lease of a row."""
    found = dict(zip(LEASE_COLUMNS, row, strict=True))
    return HeldLease(**{**found, "confirmed": bool(found["confirmed"]), "time": _format_time(found["time"])})


def export_entry(found: Entry, *, copy: bool) -> dict[str, object]:
    """Return an entry as it is exported; ``copy`` says that it is tied to its file."""
    return {**asdict(found), "copy": copy}


def parse_records(records: Iterable[Mapping[str, object]]) -> Iterator[Row]:
    """Return the rows of exported records."""
    for line, each in enumerate(records, 1):
        yield _parse_record(each, line)


def _parse_record(found: Mapping[str, object], line: int) -> Row:
    if not isinstance(found, Mapping):
        raise UsageError(f"line {line} is not a record", reason="cache_record_not_object")
    for field in found:
        if field not in _FIELDS:
            raise UsageError(f"line {line}: there is no field {field!r}")
    for field, (valid, meaning) in _FIELDS.items():
        if not valid(found.get(field)):
            raise UsageError(f"line {line}: {field} is not {meaning}", reason="cache_record_malformed")
    values: dict[str, Any] = dict(found)
    kind = addresses.parse(values["address"]).address.kind
    if not versions.is_version(kind, values["etag"]):
        raise UsageError(f"line {line}: etag is not an ETag of {kind.one}", reason="cache_record_malformed")
    path = None if values.get("path") is None else os.fsencode(values["path"])
    if values.get("copy") and path is None:
        raise UsageError(f"line {line}: path is missing, and the record is of a copy in a file")
    copy = path if values.get("copy") else b""
    values |= {"path": path, "time": count_microseconds(datetime.fromisoformat(values["time"]))}
    scope, account, address, *rest = (values.get(name) for name in ENTRY_COLUMNS)
    return (scope, account, address, copy, *rest)


def _format_time(time: int) -> str:
    return iso(_EPOCH + time * _MICROSECOND) or ""


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.strip()) and bool(value.encode())
    except UnicodeEncodeError:
        return False


def _is_shown(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_account(value: object) -> bool:
    return _is_shown(value) and re.fullmatch(r"https?://[^\s?#@]+", str(value)) is not None and "sig=" not in str(value)


def _is_address(value: object) -> bool:
    if not _is_text(value) or _is_secret(str(value)):
        return False
    try:
        return str(addresses.parse(str(value)).address) == value
    except UsageError:
        return False


def _is_time(value: object) -> bool:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment is not None and moment.tzinfo is not None and bool(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return False


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LONGEST


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", value) is not None


def _is_lineage(value: object) -> bool:
    return isinstance(value, str) and bool(value) and str(Lineage.parse(value)) == value


def _is_path(value: object) -> bool:
    try:
        return isinstance(value, str) and "\0" not in value and os.path.isabs(os.fsencode(value))
    except UnicodeEncodeError:
        return False


def _is_command(value: object) -> bool:
    return isinstance(value, str) and (not value or _is_shown(value)) and not _is_secret(value)


_FIELDS = {
    "scope": (_is_shown, "a scope"),
    "account": (_is_account, "an account's endpoint without credentials"),
    "address": (_is_address, "an address without credentials"),
    "etag": (_is_shown, "an ETag"),
    "last_modified": (lambda value: value is None or _is_time(value), "an ISO 8601 time with its zone"),
    "length": (lambda value: value is None or _is_length(value), "a number of bytes"),
    "content_hash": (lambda value: value is None or _is_hash(value), "sha256: and 64 hexadecimal digits"),
    "lineage": (lambda value: value is None or _is_lineage(value), "a lineage"),
    "path": (lambda value: value is None or _is_path(value), "an absolute path"),
    "time": (_is_time, "an ISO 8601 time with its zone"),
    "command": (_is_command, "a command without credentials"),
    "copy": (lambda value: value is None or isinstance(value, bool), "true or false"),
}


def add_selection(command: str, names: str | None) -> str:
    """Return how a command is recorded that delivered only these properties; None is all."""
    return command if names is None else f"{command}{SELECTING}{names}"


def find_selection(command: str) -> str | None:
    """Return the names of the properties that a recorded command delivered, None if it was all."""
    _, found, names = f"{command} ".partition(SELECTING)
    return names.strip() if found else None


def add_blob_type(command: str, blob_type: str | None) -> str:
    """Return how a command is recorded that delivered a blob of this type; a block blob's is left out."""
    return command if blob_type in (None, BLOCK_BLOB) else f"{command}{_OF_TYPE}{blob_type}"


def find_command(command: str) -> str:
    """Return a recorded command alone, of one that delivered a whole blob or file."""
    return command.partition(_OF_TYPE)[0]


def find_blob_type(command: str) -> str:
    """Return the type of the blob that a recorded command delivered."""
    return command.partition(_OF_TYPE)[2] or BLOCK_BLOB


def add_hidden_until(command: str, moment: datetime | None) -> str:
    """Return how a command is recorded that got a receipt of a message, which is hidden until this moment."""
    return command if moment is None else f"{command}{_HIDDEN_UNTIL}{iso(moment)}"


def find_hidden_until(command: str) -> datetime | None:
    """Return until when a message is hidden of which a recorded command got a receipt; None if that is not known."""
    try:
        found = datetime.fromisoformat(command.partition(_HIDDEN_UNTIL)[2])
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
