"""What tests/data/semantics.yaml says of each operation: the expectations of the tests of conditions.

Nothing here reads the table under test. What azguard itself decided, and no document says, stands here by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.support.places import REPOSITORY

EVIDENCE: dict[str, Any] = yaml.load(
    (REPOSITORY / "tests/data/semantics.yaml").read_text(encoding="utf-8"),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # the same answer, ten times faster where it is built
)
EVERY: dict[str, dict[str, Any]] = {
    name: row for name, row in EVIDENCE["operations"].items() if row.get("supported", True)
}
# Reading the properties tells the metadata, too; only queues have no other way.
_NEVER_SENT = {f"{noun}.get_metadata" for noun in ("container", "blob", "share", "directory", "file")}
ROWS = {name: row for name, row in EVERY.items() if name not in _NEVER_SENT}

# What the evidence lists as a condition and azguard leaves out: (operation, as it is spelt there) → why.
NOT_A_FLAG = "no flag of the contract asks for it"
UNPROVEN = "known from the specification only, and the emulator ignores it"
ELSEWHERE = "it is a condition of something else: an argument, or the operations inside"
LEFT_OUT = {
    **{
        (f"blob.{verb}_tags", f"x-ms-blob-{condition}"): UNPROVEN
        for verb in ("get", "set")
        for condition in ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
    },
    ("blob.delete", "x-ms-access-tier-if-modified-since"): NOT_A_FLAG,
    ("blob.delete", "x-ms-access-tier-if-unmodified-since"): NOT_A_FLAG,
    ("file.put_range", "x-ms-source-if-match-crc64 (Put Range From URL only)"): NOT_A_FLAG,
    ("file.put_range", "x-ms-source-if-none-match-crc64 (Put Range From URL only)"): NOT_A_FLAG,
    ("table.batch", "If-Match per inner operation"): ELSEWHERE,
    ("queue.update_message", "popreceipt query parameter (acts as the ETag)"): ELSEWHERE,
    ("queue.delete_message", "popreceipt query parameter (acts as the ETag)"): ELSEWHERE,
}

# Every flag of the contract and the header that carries it.
HEADERS = {
    "--if-match": "If-Match",
    "--if-none-match": "If-None-Match",
    "--if-modified-since": "If-Modified-Since",
    "--if-unmodified-since": "If-Unmodified-Since",
    "--if-tags": "x-ms-if-tags",
    "--source-if-match": "x-ms-source-if-match",
    "--source-if-none-match": "x-ms-source-if-none-match",
    "--source-if-modified-since": "x-ms-source-if-modified-since",
    "--source-if-unmodified-since": "x-ms-source-if-unmodified-since",
    "--source-if-tags": "x-ms-source-if-tags",
    "--append-position": "x-ms-blob-condition-appendpos",
    "--max-size": "x-ms-blob-condition-maxsize",
    "--if-sequence-number-le": "x-ms-if-sequence-number-le",
    "--if-sequence-number-lt": "x-ms-if-sequence-number-lt",
    "--if-sequence-number-eq": "x-ms-if-sequence-number-eq",
}
FLAGS = {header: flag for flag, header in HEADERS.items()}

# Writes that overwrite nothing, or name in their arguments what they may touch.
FREE = {
    *(name for name in ROWS if ".lease_" in name),
    "blob.snapshot",
    "share.snapshot",
    "share.create_permission",
    "blob.undelete",
    "blob.put_block",
    "blob.abort_copy",
    "file.abort_copy",
    "file.force_close_handles",
    "queue.put_message",
    "queue.get_messages",
    "queue.update_message",
    "queue.delete_message",
    "table.batch",
}

# Writes that overwrite nothing, and are tied to a place all the same.
APPENDS = {"blob.append_block", "blob.append_block_from_url"}

# Writes of what has a version, or content, to compare, where no lease holds the others off.
COMPARED = {
    "container.set_metadata",
    "container.set_acl",
    "table.set_acl",
    "queue.set_metadata",
    "queue.set_acl",
    "directory.delete",
    "directory.set_properties",
    "directory.set_metadata",
    "directory.rename",
}

# Writes that name the version in their address, since neither an ETag nor a lease guards them.
VERSIONED = {"blob.set_legal_hold", "blob.set_immutability_policy", "blob.delete_immutability_policy"}

# Writes whose tags can carry a fence, and the delete that compares it.
FENCED = {"blob.put_block_blob", "blob.put_block_list", "blob.set_tags", "blob.delete", "blob.copy"}

# Told to replace, they overwrite their destination.
RENAMES = {"directory.rename", "file.rename"}

_LEASES = (
    ("see lease_state_machine", "subject"),
    ("optional", "optional"),
    ("accepted by swagger/SDK; whether live requires it", "optional"),  # the tier of a blob
    ("required", "required"),
    ("each required", "required"),
    ("needed when the destination", "required"),
    ("destination: required", "required"),
    ("no lease header", "none"),
    ("the Table service has no leases", "none"),
    ("the Queue service has no leases", "none"),
)
_STANDARD = {"--if-match", "--if-none-match", "--if-modified-since", "--if-unmodified-since", "--if-tags"}


@dataclass(frozen=True)
class Expected:
    """What one operation does and honours, by the evidence; the words are those of the enumerations under test."""

    name: str
    honours: frozenset[str]
    lease: str
    write: str
    guard: str

    @property
    def writes(self) -> bool:
        """Return whether it changes the state of the service."""
        return self.write != "no"

    @property
    def guarded(self) -> bool:
        """Return whether it could undo another's write."""
        return self.write in ("appends", "creates", "puts", "changes")

    @property
    def overwrites(self) -> bool:
        """Return whether it can overwrite what others wrote."""
        return self.write in ("appends", "puts", "changes") or self.name in RENAMES

    @property
    def names_lease(self) -> bool:
        """Return whether a lease id means something: acquiring proposes one, and a break ignores it."""
        return self.lease != "none" and not self.name.endswith((".lease_acquire", ".lease_break"))

    @property
    def wildcards(self) -> frozenset[str]:
        """Return the conditions whose value may be ``*``: must exist, and on a write that puts, must not."""
        return self.honours & ({"--if-match", "--if-none-match"} if self.write == "puts" else {"--if-match"})

    @property
    def fences(self) -> bool:
        """Return whether a fence is kept."""
        return self.name in FENCED

    def together(self, first: str, second: str) -> bool:
        """Return whether two conditions may stand together: never two of one family, but on the two reads."""
        same = {first, second} <= _STANDARD or (first.startswith("--source-") and second.startswith("--source-"))
        return not same or self.name in ("blob.get", "blob.get_properties")


def failures(name: str) -> dict[str, str]:
    """Return what the evidence says a failed condition, or a resource in the way, is answered with."""
    found: dict[str, str] = ROWS[name]["errors_on_failed_condition"]["value"]
    return found


# Where the evidence leaves an answer out: (operation, whether the condition is on a source) → where it has it.
_SAME_ANSWERS = {
    ("blob.append_block_from_url", False): "blob.append_block",
    ("blob.put_page_from_url", False): "blob.put_page",
    ("blob.put_page_from_url", True): "blob.append_block_from_url",
}


def answer_to(name: str, flag: str, value: str) -> str:
    """Return how the live service refuses a condition that fails, such as ``412 ConditionNotMet``.

    Where the evidence has two answers, it is the documented one, which is not the emulator's.
    """
    header, answers = HEADERS[flag], failures(name)
    if value == "*" and flag == "--if-none-match":
        found = next(said for case, said in answers.items() if case.startswith("If-None-Match: *"))
    else:
        cases = [case for case in answers if header in re.split(r"[/ ]", case) and ": *" not in case]
        family = [case for case in answers if "*" in case and case.split()[-1].startswith(header.rpartition("-")[0])]
        source = [case for case in answers if case.startswith("source") and header.startswith("x-ms-source")]
        likely = [*cases, *family, *source]
        if not likely:
            # Said once, of the operation with the same condition.
            return answer_to(_SAME_ANSWERS[name, flag.startswith("--source-")], flag, value)
        found = answers[likely[0]]
    return found.removeprefix("docs ")


@dataclass(frozen=True)
class Form:
    """What the request of an operation looks like, by its first line in the evidence."""

    name: str
    methods: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    #: What follows the name of the queue in its path, such as ``/messages/{id}``; None for blobs and containers.
    place: str | None = None

    def fits(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request may be of this operation; the names of its headers are in lower case."""
        return (
            method in self.methods
            and self.place in (None, _place(path))
            and _what(path) == dict(self.query)
            and all(value in ("", headers.get(name)) and name in headers for name, value in self.headers.items())
        )

    @property
    def path(self) -> str:
        """Return a path of such a request, with its query."""
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        return f"/acc/c{'/b' if self.place is None else self.place}?{query}"

    @property
    def rank(self) -> tuple[bool, int]:
        """Return how much it says, so that of two that fit the one that says more is chosen."""
        return "x-ms-copy-source" in self.headers, len(self.headers)


def find_operation(method: str, path: str, headers: Mapping[str, str], service: str = "blob") -> str:
    """Return the name of the operation of a service that a request performs, or nothing."""
    fitting = [form for form in forms(service) if form.fits(method, path, headers)]
    return max(fitting, key=lambda form: form.rank).name if fitting else ""


def find_form(name: str) -> Form:
    """Return what the request of an operation looks like."""
    return next(form for form in forms(find_service(name)) if form.name == name)


def find_service(name: str) -> str:
    """Return the service of an operation of blobs, containers or queues."""
    return "queue" if name.startswith("queue.") else "blob"


@cache
def forms(service: str) -> tuple[Form, ...]:
    """Return the requests of all operations of a service."""
    nouns = ("queue.",) if service == "queue" else ("blob.", "container.")
    return tuple(_form(name, row["rest"]) for name, row in ROWS.items() if name.startswith(nouns))


def _form(name: str, rest: str) -> Form:
    method, _, line = re.split(r" \(| ->", rest)[0].partition(" ")
    query = re.search(r"\?\S+", line)
    headers = dict(re.findall(r"(x-ms-[\w-]+)(?:: (\w+))?", line))
    place = line.partition("?")[0].removeprefix("/{queue}") if find_service(name) == "queue" else None
    return Form(name, tuple(method.split("|")), _what(query[0] if query else ""), headers, place)


def _place(path: str) -> str:
    """Return what follows the name of the queue in a path, or in a URL with the name of the account in its path."""
    _, _, _, *rest = urlsplit(path).path.split("/")
    return "".join(["/", *rest[:1], "/{id}" if rest[1:] else ""]) if rest else ""


def _what(path: str) -> dict[str, str]:
    """Return the part of a query that says what is done."""
    query = parse_qs(urlsplit(path).query)
    return {name: query[name][0] for name in ("comp", "restype", "peekonly") if name in query}


def _lease(use: str) -> str:
    """Return what a sentence of the evidence says, by how it begins."""
    for beginning, lease in _LEASES:
        if use.startswith(beginning):
            return lease
    raise AssertionError(f"the evidence says something new about leases: {use}")


def _write(name: str) -> str:
    method = ROWS[name]["rest"].split()[0].split("|")[0]
    if name in FREE:
        return "free"
    if name in APPENDS:
        return "appends"
    if method in ("GET", "HEAD"):
        return "no"
    answers = failures(name)
    if any(each.startswith("If-None-Match: *") for each in answers):
        return "puts"
    in_the_way = ("exists", "exists, different metadata", "destination exists and replace-if-exists false")
    if any(answers.get(case, "").startswith("409") for case in in_the_way):
        return "creates"
    return "changes"


def _guard(name: str, honours: frozenset[str], lease: str, write: str) -> str:
    if write != "no" and "--if-match" in honours:
        return "if-match"
    if name in COMPARED:
        return "compare"
    if name in VERSIONED:
        return "version"
    return "lease" if name not in FREE and write != "no" and lease in ("required", "optional") else "none"


def _expected(name: str, row: Mapping[str, Any]) -> Expected:
    listed = {each for each in row["service_conditions"]["value"] if (name, each) not in LEFT_OUT}
    honours, lease, write = frozenset(FLAGS[each] for each in listed), _lease(row["lease"]["use"]), _write(name)
    return Expected(name, honours, lease, write, _guard(name, honours, lease, write))


EXPECTED = {name: _expected(name, row) for name, row in ROWS.items()}
