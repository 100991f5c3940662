"""Who holds a lease, and who we are: the owner record that azguard leaves in a blob's metadata, and Terraform's.

Both are for people. A holder that crashed leaves its record behind, and no lock is ever granted or released because of
one. A record speaks for the lease under which it was written, and for no other.
"""

import base64
import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from azguard import columns
from azguard.cache import scope
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.times import find_moment, iso

# One key each: metadata is 8 KiB in all, and the names must be C# identifiers.
OWNER = "azguardowner"
FENCE = "azguardfence"
SLOTS = "azguardslots"
# The highest sequence number that has held a lock, and who that was.
SEQUENCE = "azguardsequence"
# A lock that readers hold beside each other; on a ticket, that its waiter is a reader.
SHARED = "azguardshared"
# What a lock keeps: without it the next holder would get a fence of the past, run after a newer run, or beside readers.
OF_LOCK = (OWNER, FENCE, SLOTS, SEQUENCE, SHARED)
# Who waits for a lock, on the blob that keeps the place in its queue.
TICKET = "azguardticket"
# Who reads under a lock, on the blob whose lease says so.
READER = "azguardreader"
# https://github.com/hashicorp/terraform/blob/main/internal/backend/remote-state/azure/client.go
TERRAFORM = "terraformlockid"
# In characters: metadata hold 8 KiB in all.
_LONGEST_COMMAND = 500
# In characters, each of which can take 12 bytes of the 8 KiB.
_LONGEST_REASON = 200

# 128 bits: no other lease has the same.
_DIGEST_CHARACTERS = 32
# The service's word for a lease without a term.
INFINITE = "infinite"
# The times of records are in whole seconds.
_SLACK = timedelta(seconds=1)

# A record whose time is by the service's clock, which ages are counted on.
SERVICE_CLOCK = "service"
# A record whose time is by the holder's clock, which may be wrong.
HOLDER_CLOCK = "holder"
#: The marks by which a CI runner knows a command in what a job prints: ``##vso[…]`` of Azure Pipelines and ``##[…]``
#: anywhere in a line, ``::…::`` of GitHub Actions where it begins, after a carriage return too.
RUNNER_COMMAND = re.compile(r"##(?=\[|vso\[)|(?:^|\r)\s*::", re.IGNORECASE | re.MULTILINE)


@frozen
class PresentLease:
    """What the service tells of the lease that is held now: never its id."""

    #: Infinite or fixed; None where that is not told, as of a lease that is free or being broken.
    duration: str | None
    #: The service's clock when it answered.
    answered_at: datetime | None = None
    #: Its id, where the service has confirmed the one that was asked about.
    lease_id: str | None = None


@frozen
class Owner:
    """Who took a lease or a lock."""

    who: str
    host: str
    #: The process that holds it; None if it is held beyond the process that took it.
    pid: int | None
    #: The name of the program that runs under it; its arguments only if the holder published them.
    command: str
    #: When it was taken, ISO 8601 UTC; None if that is not known.
    since: str | None
    #: The URL of a CI run.
    run: str | None = None
    reason: str | None = None
    #: By whose clock ``since`` is: the service's, or the holder's, as in records of earlier versions.
    clock: str = HOLDER_CLOCK
    #: When the next one may take a lock that is held without a process, by the service's clock; None if it may not.
    until: str | None = None
    #: The lease of a lock with such an end: a record that an earlier holder left ends no other lease.
    lease_id: str | None = field(default=None, metadata=columns.UNPRINTED, repr=False)
    #: The digest of the lease under which it was written: with the id itself, each reader could release that lease.
    #: Empty once that lease is over, None in the records of versions that wrote none.
    lease: str | None = field(default=None, metadata=columns.UNPRINTED, repr=False)
    #: The term of that lease in seconds; None is infinite.
    term: int | None = field(default=None, metadata=columns.UNPRINTED, repr=False)

    @property
    def name(self) -> str:
        """Return who that is in short: ``user@host``."""
        return f"{self.who}@{self.host}"

    def __str__(self) -> str:
        process = "" if self.pid is None else f", pid {self.pid}"
        since = "" if self.since is None else f", since {self.since}"
        since += "" if self.until is None else f", until {self.until}"
        reason = "" if self.reason is None else f" ({self.reason})"
        return f"{self.name}{process}{since}: {self.run or self.command}{reason}"

    def as_metadata(self) -> str:
        """Return the record as a metadata value, which is ASCII."""
        command = self.command if len(self.command) <= _LONGEST_COMMAND else self.command[: _LONGEST_COMMAND - 1] + "…"
        record = {**asdict(self), "command": command}
        for name in ("until", "lease_id", "lease", "term"):
            if record[name] is None:
                del record[name]
        return json.dumps(record, separators=(",", ":"))

    def is_named(self, name: str) -> bool:
        """Return whether a name is this owner's: the user, the host, ``user@host`` or the CI run's URL."""
        return name in (self.who, self.host, self.name, self.run)

    def tie_to_lease(self, lease_id: str, seconds: int | None) -> "Owner":
        """Return the record of the lease with this id and term; None is infinite."""
        return replace(self, lease=make_digest(lease_id), term=seconds)

    def end(self) -> "Owner":
        """Return the record of a lease that is over, which speaks for no lease any more.

        Its end and its id stay: if the release that follows is cut off, the next one may still end it then.
        """
        return replace(self, lease="", term=None)

    def find_doubt(self, held: PresentLease) -> str | None:
        """Return why the record is not believed to be of the lease that is held; None if it is believed.

        Not guaranteed: the service never tells whose a lease is. Where the lease of the record has ended without a
        word, another with a term of any length cannot be told from one that its process renews.
        """
        if self.lease is None:
            return "the record of an earlier version of azguard does not say of which lease it is"
        if not self.lease:
            return "that lease is over"
        if held.lease_id is not None and make_digest(held.lease_id) != self.lease:
            return "that was another lease"
        if held.duration is None:
            return None
        had = "had no term" if self.term is None else f"had a term of {self.term} s"
        if (held.duration == INFINITE) is not (self.term is None):
            return f"that lease {had}, and this one has {'none' if held.duration == INFINITE else 'one'}"
        # No process renews a lease that outlives the process that took it.
        if self.pid is None and self.term is not None and held.answered_at is not None:
            since = find_moment(self.since)
            if since is None or since + timedelta(seconds=self.term) + _SLACK < held.answered_at:
                return f"that lease {had}, and has ended unless it was renewed since"
        return None


@frozen
class TerraformLock:
    """What Terraform writes beside the infinite lease on its state, whose lease id is ``id``."""

    id: str
    operation: str
    who: str
    version: str
    created: str
    path: str
    info: str

    @property
    def name(self) -> str:
        return self.who

    @property
    def since(self) -> str | None:
        """Return when it was taken, by the holder's clock."""
        return self.created or None

    @property
    def clock(self) -> str:
        return HOLDER_CLOCK

    def __str__(self) -> str:
        return f"Terraform {self.version}, {self.operation} by {self.who}, since {self.created}"

    def is_named(self, name: str) -> bool:
        """Return whether a name is this holder's: ``user@host``, either part of it, or the lock's id."""
        return name in (self.who, *self.who.split("@"), self.id)

    def find_doubt(self, held: PresentLease) -> str | None:
        """Return why the lock info is not believed to be of the lease that is held; None if it is believed."""
        if held.lease_id is not None and held.lease_id.lower() != self.id.lower():
            return "that was another lease"
        return None if held.duration in (None, INFINITE) else "that lease had no term, and this one has one"


def describe_this_process(
    command: str,
    reason: str | None,
    environ: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    is_lasting: bool = False,
) -> Owner:
    """Return the record of this process; all who may read the resource can read it.

    The time is by this machine's clock until the record is written: then it is the service's.

    Args:
        command: what to publish of the command.
        reason: what the lease is for, if that is to be published.
        environ: where a CI system names its run.
        redact: removes what looks like a secret.
        is_lasting: whether the lease outlives this process.

    Raises:
        UsageError: the reason is empty, too long or not plain text.
    """
    run = scope.find_ci_run(environ)
    if reason is not None:
        _check_reason(reason)
    return Owner(
        who=_find_user(),
        host=socket.gethostname(),
        pid=None if is_lasting else os.getpid(),
        command=redact(command),
        since=iso(datetime.now(UTC).replace(microsecond=0)),
        run=None if run is None else redact(run),
        reason=None if reason is None else redact(reason),
    )


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise UsageError("the reason is empty", argument="reason", reason="lease_reason_empty")
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise UsageError(
            f"the reason takes one line of at most {_LONGEST_REASON} characters",
            argument="reason",
            values={"longest": _LONGEST_REASON},
            reason="lease_reason_malformed",
        )


def _find_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def read_owner(metadata: Mapping[str, str]) -> Owner | None:
    """Return the owner record, or None where there is none that can be read."""
    found = parse_object(find_value(metadata, OWNER))
    try:
        return Owner(
            who=escape(found["who"]),
            host=escape(found["host"]),
            pid=None if found["pid"] is None else int(found["pid"]),
            command=escape(found["command"]),
            since=_escape_optional(found["since"]),
            run=_escape_optional(found.get("run")),
            reason=_escape_optional(found.get("reason")),
            clock=SERVICE_CLOCK if found.get("clock") == SERVICE_CLOCK else HOLDER_CLOCK,
            until=_escape_optional(found.get("until")),
            lease_id=_escape_optional(found.get("lease_id")),
            lease=_escape_optional(found.get("lease")),
            term=None if found.get("term") is None else int(found["term"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_terraform(metadata: Mapping[str, str]) -> TerraformLock | None:
    """Return Terraform's lock info, or None where there is none that can be read."""
    try:
        found = parse_object(base64.b64decode(find_value(metadata, TERRAFORM), validate=True).decode())
    except ValueError:
        return None
    if not isinstance(found.get("ID"), str):
        return None
    names = ("ID", "Operation", "Who", "Version", "Created", "Path", "Info")
    return TerraformLock(*(escape(found.get(name) or "") for name in names))


def make_digest(lease_id: str) -> str:
    """Return by what a record names a lease: its holder can tell, and a reader cannot release it."""
    return hashlib.sha256(lease_id.lower().encode()).hexdigest()[:_DIGEST_CHARACTERS]


def read_number(metadata: Mapping[str, str], key: str) -> int | None:
    """Return a number in the metadata, such as the fence, or None where there is none."""
    text = find_value(metadata, key)
    return int(text) if text.isascii() and text.isdecimal() else None


@frozen
class HeldSequence:
    """The highest sequence number that has held a lock."""

    number: int
    #: Who that was.
    who: str
    run: str | None

    def __str__(self) -> str:
        return f"{self.number} of {self.run or self.who}"

    def as_metadata(self) -> str:
        """Return the record as a metadata value, which is ASCII."""
        return json.dumps(asdict(self), separators=(",", ":"))


def read_sequence(metadata: Mapping[str, str]) -> HeldSequence | None:
    """Return the highest sequence number that has held a lock, or None where there is none that can be read."""
    found = parse_object(find_value(metadata, SEQUENCE))
    try:
        return HeldSequence(int(found["number"]), escape(found["who"]), _escape_optional(found.get("run")))
    except (KeyError, TypeError, ValueError):
        return None


def is_lock(metadata: Mapping[str, str]) -> bool:
    """Return whether a blob is a lock of azguard's, also while it is free: one that was ever locked."""
    return bool({FENCE, SLOTS} & {key.lower() for key in metadata})


def is_ticket(metadata: Mapping[str, str]) -> bool:
    """Return whether a blob keeps a waiter's place in the queue of a lock."""
    return bool(find_value(metadata, TICKET))


def is_reader(metadata: Mapping[str, str]) -> bool:
    """Return whether the lease on a blob is that of a reader under a lock."""
    return bool(find_value(metadata, READER))


def find_value(metadata: Mapping[str, str], key: str) -> str:
    """Return a value by its key, whose case a service or a tool may have changed."""
    return next((value for name, value in metadata.items() if name.lower() == key), "")


def _escape_optional(value: object) -> str | None:
    return None if value is None else escape(value)


def parse_object(text: str) -> dict[str, Any]:
    """Return the object that a text is as JSON; empty if it is none."""
    if not text:
        # Most blobs have no record, and an error for each takes long.
        return {}
    try:
        found = json.loads(text)
    # The parser fails on a hundred thousand nested brackets with RecursionError.
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def escape(value: object) -> str:
    """Return text that drives neither a terminal nor a CI runner: others wrote it.

    Control characters are spelled out. What a runner takes for a command of the job, in any line that is printed,
    gets a blank in it.
    """
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(value))
    return RUNNER_COMMAND.sub(lambda found: found[0].strip().replace("##", "# #").replace("::", ": :"), text)
