"""What a row of the table of operations says, and the words for it.

The evidence for the conditions is tests/data/semantics.yaml; tests/unit/wire/test_operations.py holds the two together
row by row. Where the evidence is open, or at odds with what azguard promises, the reason stands beside the row.

A row reads: what it does, its name in the evidence, the conditions honoured, what a lease means to it,
what keeps ``--etag``, and what settles a lost answer.
"""

from collections.abc import Collection
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

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
    VERSION = "version"  # azguard compares, and names the version that it saw in the request: a version never changes
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


class Settlement(StrEnum):
    """What tells, after a lost answer, that a write was applied."""

    NO = "no"  # it does not write, and is asked again
    LINEAGE = "lineage"  # its op among the last writes that the resource keeps
    HELD = "held"  # that it is done, under a lease that keeps others from doing the same; without a lease, nothing
    FOUND = "found"  # that it is done; where others may have done the same, nothing
    BEFORE = (
        "before"  # that it was there, or missing, before: others may have come between, unless a lease excludes them
    )
    POSITION = "position"  # the bytes at the place to which they were appended
    LEASE = "lease"  # the id and the state of the lease; asked for twice it is as good as once
    IDENTITY = "identity"  # the id that a file or a directory keeps under its new name
    RECEIPT = "receipt"  # nothing, but its receipt lets one of two copies through, so that it is sent again
    REPEATED = "repeated"  # nothing, but twice is as good as once, so that it is sent again
    NOTHING = "nothing"

    @property
    def is_found_by_look(self) -> bool:
        """Return whether a look at the resource can tell it."""
        return self not in (Settlement.NO, Settlement.RECEIPT, Settlement.REPEATED, Settlement.NOTHING)


class Part(StrEnum):
    """What an operation reads or writes of a resource, where a scope remembers its version apart from the content's."""

    WHOLE = ""
    METADATA = "metadata"
    TAGS = "tags"
    ACL = "acl"


class Http(NamedTuple):
    """How an operation is spoken over HTTP."""

    method: str
    #: The parts of the query that never change; ``restype`` of a container, a share or a directory goes without saying.
    query: tuple[tuple[str, str], ...] = ()
    #: The headers that never change.
    headers: tuple[tuple[str, str], ...] = ()
    #: The arguments that it sends; see ``answers.ARGUMENTS``.
    sends: frozenset[str] = frozenset()
    #: The fields that its answer tells; see ``answers.FIELDS``.
    returns: frozenset[str] = frozenset()
    #: The statuses of success.
    ok: frozenset[int] = frozenset({200})
    #: The path of an operation that is not on the resource itself; ``{name}`` is its container, table, queue or share.
    path: str | None = None


class Operation(NamedTuple):
    """One operation of the REST interface."""

    write: Write
    name: str
    #: Its page in the REST reference, where that is not called by the verb, the noun and the rest of its name.
    own_page: str = ""
    honours: frozenset[Condition] = frozenset()
    lease: Lease = Lease.NONE
    guard: Guard = Guard.NONE
    #: What tells after a lost answer that it was applied.
    settle: Settlement = Settlement.NO
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
    #: How it is sent.
    http: Http = Http("")
    #: The first version of the service that has it; empty of what all have.
    since: str = ""

    @property
    def noun(self) -> str:
        """Return the kind of resource that it is on."""
        return self.name.partition(".")[0]

    @property
    def writes(self) -> bool:
        """Return whether it changes the state of the service, so that it must never be repeated blindly."""
        return self.write is not Write.NO

    @property
    def deletes(self) -> bool:
        """Return whether the resource is gone afterwards, so that nothing there tells who did it."""
        return self.http.method == "DELETE"

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
    def repeats(self) -> bool:
        """Return whether doing it twice is as good as once."""
        return self.settle in (Settlement.LEASE, Settlement.REPEATED)

    @property
    def drops_encryption(self) -> bool:
        """Return whether it makes a blob, and does not let its caller say how that is encrypted."""
        return self.noun == "blob" and self.creates and "encryption_key" not in self.http.sends

    @property
    def names_lease(self) -> bool:
        """Return whether ``lease_id`` means something: acquiring and breaking a lease go without its id."""
        return self.lease is not Lease.NONE and not self.name.endswith(("lease_acquire", "lease_break"))

    @property
    def asks(self) -> frozenset[str]:
        """Return the arguments of conditions and guards that mean something to it."""
        meant = {
            "etag": self.writes and self.guard is not Guard.NONE,
            "lease_id": self.names_lease,
            "fence": self.fences,
            "last_writer_wins": self.overwrites,
            "allow_race": self.guard is Guard.COMPARE,
        }
        return frozenset(
            {condition.argument for condition in self.honours} | {name for name, is_meant in meant.items() if is_meant}
        )

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
    def _page(self) -> str:
        verb, _, rest = self.name.partition(".")[2].partition("_")
        return self.own_page or "-".join(filter(None, (verb, self.noun, rest.replace("_", "-"))))

    @property
    def rest(self) -> str:
        """Return the address of its page in the REST reference."""
        return _REFERENCE + self._page

    @property
    def title(self) -> str:
        """Return its name in the REST reference, for messages."""
        words = self._page.removeprefix("performing-").rstrip("0123456789").split("-")
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


class Contradiction(NamedTuple):
    """Arguments of one operation that do not go together."""

    arguments: tuple[str, ...]
    #: What goes with none of the arguments; empty where no two of the arguments go together.
    others: tuple[str, ...]
    #: The reason, in a sentence without its full stop.
    why: str

    def find(self, given: Collection[str]) -> tuple[str, str] | None:
        """Return two of the arguments that were given and do not go together; None if they all do."""
        one = [name for name in self.arguments if name in given]
        other = [name for name in self.others if name in given] if self.others else one[1:]
        return (one[0], other[0]) if one and other else None


def list_contradictions(operation: Operation) -> tuple[Contradiction, ...]:
    """Return which arguments of conditions and guards must not stand together on an operation.

    Of two standard conditions the service refuses both (400 MultipleConditionHeadersNotSupported) or evaluates
    one. What it makes of a tags condition beside another is unknown on writes, and the emulator then ignores
    the tags. Conditions on a source follow the same rule among themselves. Append position, size and sequence
    number are evaluated beside the others.

    https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
    """
    own = [condition.argument for condition in Condition if not condition.of_source]
    known = (
        ("last_writer_wins", [*own, "etag", "allow_race"], "one asks for a guard, the other for none"),
        ("fence", [*own, "etag", "last_writer_wins"], "beside another condition the fence could be ignored"),
        ("etag", own, "each of the two is a guard of its own"),
    )
    asks = operation.asks
    found = [
        Contradiction((one,), tuple(each for each in others if each in asks), why)
        for one, others, why in known
        if one in asks
    ]
    if not operation.combines:
        for family in (FULL, SOURCE_FULL):
            arguments = tuple(each.argument for each in Condition if each in family & operation.honours)
            found.append(Contradiction(arguments, (), "the service rejects the pair, or evaluates only one of them"))
    return tuple(each for each in found if each.others or len(each.arguments) > 1)


reads = partial(Operation, Write.NO)
free = partial(Operation, Write.FREE)
creates = partial(Operation, Write.CREATES, settle=Settlement.LINEAGE)
puts = partial(Operation, Write.PUTS)
changes = partial(Operation, Write.CHANGES)
appends = partial(Operation, Write.APPENDS)
# Writes of a part of a resource.
sets_metadata = partial(changes, part=Part.METADATA, settle=Settlement.LINEAGE)
sets_acl = partial(changes, part=Part.ACL, settle=Settlement.FOUND)


def speaks(
    method: str,
    comp: str = "",
    *,
    sends: str = "",
    returns: str = "",
    ok: tuple[int, ...] = (200,),
    path: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    query: tuple[tuple[str, str], ...] = (),
) -> Http:
    """Return how an operation is spoken; the names of what it sends and returns are separated by spaces."""
    asked = (("comp", comp), *query) if comp else query
    return Http(method, asked, headers, frozenset(sends.split()), frozenset(returns.split()), frozenset(ok), path)


def undeletes(noun: str) -> Operation:
    """Return the row that brings back a container or share; the service refuses it where something has the name."""
    spoken = speaks("PUT", "undelete", sends=f"deleted_{noun}_name deleted_{noun}_version", ok=(201,))
    return creates(f"{noun}.undelete", f"restore-{noun}", settle=Settlement.FOUND, http=spoken, since="2019-12-12")


#: The fields that name the version of a resource.
VERSION = "etag last_modified version_id"
#: The headers of a request whose body is XML.
XML = (("Content-Type", "application/xml"),)
#: What several services speak alike: the list of what an account has of a kind, and the end of a copy.
LIST = speaks("GET", "list", path="", sends="prefix include marker maxresults")
ABORT_COPY = speaks("PUT", "copy", headers=(("x-ms-copy-action", "abort"),), sends="copyid", ok=(204,))


def _speak_lease(action: str, sends: str = "", returns: str = "", status: int = 200) -> Http:
    return speaks(
        "PUT",
        "lease",
        headers=(("x-ms-lease-action", action),),
        sends=sends,
        returns=f"etag last_modified {returns}",
        ok=(status,),
    )


_LEASES = {
    "acquire": _speak_lease("acquire", sends="proposed_lease_id lease_duration", status=201),
    "renew": _speak_lease("renew"),
    "change": _speak_lease("change", sends="proposed_lease_id"),
    "release": _speak_lease("release"),
    "break": _speak_lease("break", sends="lease_break_period", returns="lease_time", status=202),
}


def leases(noun: str, *, renews: bool = True, **columns: Any) -> list[Operation]:
    """Return the rows of the operations on a lease, which all kinds of resources speak alike, in the order above."""
    row = partial(free, own_page=f"lease-{noun}", lease=Lease.SUBJECT, **columns)
    return [
        row(f"{noun}.lease_{verb}", settle=Settlement.REPEATED if verb == "renew" else Settlement.LEASE, http=http)
        for verb, http in _LEASES.items()
        if renews or verb != "renew"
    ]
