"""Each command of blobs, containers and queues as it performs one operation: one row of data for each.

``tests/azurite/conditions`` walks every row through every condition that the evidence lists for its operation, and
``tests/system/test_refused_conditions.py`` through every other one. A new command needs a row: its operation by its
name in the evidence, its words, and what has to be there before, as the names of methods of ``condition_stage.Stage``.
``{blob}``, ``{container}``, ``{source}``, ``{queue}``, ``{message}``, ``{lease}`` and the facts that a step leaves are
filled in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tests.support.command_tree import find_command
from tests.support.evidence import EXPECTED, Expected


@dataclass(frozen=True)
class Scenario:
    """One command as it performs one operation; its conditions are added by the walk."""

    operation: str
    line: str
    before: tuple[str, ...] = ()
    stdin: bytes = b""
    #: Whether its conditions may be those of another read, after which it names the version that was read.
    pins: bool = False
    #: What keeps the emulator from playing it; then tests/azurite/blob has its own, with a scripted service.
    elsewhere: str = ""
    #: The headers with which the live service says that it is done, where the emulator has no such operation.
    answer: Mapping[str, str] = field(default_factory=dict)
    #: And the status.
    done: int = 201

    @property
    def expected(self) -> Expected:
        """Return what the evidence says of its operation."""
        return EXPECTED[self.operation]

    @property
    def noun(self) -> str:
        """Return what the operation is about: a blob, a container or a queue."""
        return self.operation.partition(".")[0]

    @property
    def anyhow(self) -> tuple[str, ...]:
        """Return the option without which a write needs a version or a condition."""
        return ("--last-writer-wins",) if self.expected.overwrites else ()

    def words(self, facts: Mapping[str, str]) -> list[str]:
        """Return the command line without a condition."""
        return [word.format(**facts) for word in self.line.split()]

    @property
    def command(self) -> str:
        """Return the words of its command."""
        return find_command(self.line)

    def __str__(self) -> str:
        return f"{re.sub(' [^ ]*{[^ ]*', '', self.line)} ({self.operation})"


def _lease(verb: str, options: str = "", *before: str) -> tuple[Scenario, Scenario]:
    """Return the rows of an operation on a lease: of a blob and of a container."""
    blob = Scenario(f"blob.lease_{verb}", f"lease {verb} blob:{{blob}} {options}", before)
    steps = tuple(step.replace("leased", "leased_container") for step in before)
    return blob, Scenario(f"container.lease_{verb}", f"lease {verb} container:{{container}} {options}", steps)


_AT_ONCE = "the emulator ends each copy at once, so that none is pending"
_NO_POLICIES = "the emulator knows neither policies nor legal holds"
_NO_KEEPING = "the emulator keeps nothing that was deleted"
_NO_SOURCES = "the emulator does not take content from another blob"
_DONE = MappingProxyType(
    {
        "ETag": '"0x8D9"',
        "Last-Modified": "Sun, 21 Nov 2026 23:00:00 GMT",
        "x-ms-request-id": "1",
        "x-ms-blob-append-offset": "3",
        "x-ms-blob-committed-block-count": "2",
        "x-ms-blob-sequence-number": "5",
    }
)
_OWN = "--lease-id {lease}"

SCENARIOS = (
    Scenario("blob.get", "blob get {blob}"),
    Scenario("blob.put_block_blob", "blob put {blob}", stdin=b"new"),
    Scenario("blob.put_block_list", "blob put {blob}", ("small_blocks",), stdin=bytes(5000)),
    Scenario("blob.get_properties", "blob show {blob}"),
    Scenario("blob.get_properties", "blob exists {blob}"),
    Scenario("container.list_blobs", "blob list {container}"),
    Scenario("blob.delete", "blob delete {blob}"),
    Scenario("blob.get_properties", "blob metadata get {blob}"),
    Scenario("blob.set_metadata", "blob metadata set {blob} --metadata a=1"),
    Scenario("blob.set_properties", "blob set-properties {blob} --content-language en"),
    Scenario("blob.set_tier", "blob tier {blob} --tier Cool"),
    Scenario("blob.get_properties", "blob legal-hold show {blob}"),
    Scenario("blob.set_legal_hold", "blob legal-hold set {blob}", elsewhere=_NO_POLICIES),
    Scenario("blob.set_legal_hold", "blob legal-hold clear {blob}", elsewhere=_NO_POLICIES),
    Scenario("blob.get_properties", "blob immutability show {blob}"),
    Scenario("blob.set_immutability_policy", "blob immutability set {blob} 2099-01-01", elsewhere=_NO_POLICIES,
             answer=_DONE, done=200),
    Scenario("blob.delete_immutability_policy", "blob immutability clear {blob}", elsewhere=_NO_POLICIES),
    Scenario("blob.get_tags", "blob tags get {blob}"),
    Scenario("blob.set_tags", "blob tags set {blob} --tags a=1"),
    Scenario("blob.put_block", "blob block stage {blob}", stdin=b"new"),
    Scenario("blob.put_block_list", "blob block commit {blob} --block-id YmxvY2s=", ("staged_block",)),
    Scenario("blob.get_block_list", "blob block list {blob}"),
    Scenario("blob.append_block", "blob append {blob} --line new", ("append_blob",)),
    Scenario("blob.seal_append_blob", "blob append seal {blob}", ("append_blob",)),
    Scenario("blob.put_page", "blob page put {blob}", ("page_blob",), bytes(range(256)) * 2),
    Scenario("blob.clear_page", "blob page clear {blob} --length 512", ("page_blob",)),
    Scenario("blob.resize", "blob page resize {blob} 1KiB", ("page_blob",)),
    Scenario("blob.set_sequence_number", "blob page set-sequence-number {blob} --increment", ("page_blob",)),
    Scenario("blob.get_page_ranges", "blob page ranges {blob}", ("page_blob",), pins=True),
    Scenario("blob.append_block_from_url", "blob append {blob} --source {source}", ("append_blob",), pins=True,
             elsewhere=_NO_SOURCES, answer=_DONE),
    Scenario("blob.put_page_from_url", "blob page put {blob} --source {source}", ("page_blob",), pins=True,
             elsewhere=_NO_SOURCES, answer=_DONE),
    Scenario("blob.copy", "blob copy {blob} --source {source} --metadata owner=dev", pins=True),
    Scenario("blob.copy", "blob restore {blob} --from snapshot={snapshot} --no-lineage", ("snapshot",), pins=True),
    Scenario("blob.abort_copy", "blob abort-copy {blob}", elsewhere=_AT_ONCE),
    Scenario("blob.snapshot", "blob snapshot {blob}", pins=True),
    Scenario("blob.snapshot", "blob snapshot {blob} --no-lineage"),
    Scenario("blob.undelete", "blob undelete {blob}", elsewhere="not implemented (500 APINotImplemented)"),
    Scenario("container.create", "container create {container}-2"),
    Scenario("container.undelete", "container undelete {container}", elsewhere=_NO_KEEPING),
    Scenario("container.get_properties", "container show {container}"),
    Scenario("container.get_properties", "container exists {container}"),
    Scenario("container.get_properties", "container metadata get {container}"),
    Scenario("container.set_metadata", "container metadata set {container} --metadata a=1"),
    Scenario("container.get_acl", "container acl get {container}"),
    Scenario("container.set_acl", "container acl set {container} --public-access blob"),
    Scenario("container.delete", "container delete {container} --with-contents"),
    *_lease("acquire", "--infinite"),
    *_lease("renew", _OWN, "leased"),
    *_lease("change", _OWN, "leased"),
    *_lease("release", _OWN, "leased"),
    *_lease("break", "--yes", "leased"),
    Scenario("blob.get_properties", "lease show blob:{blob}"),
    Scenario("container.get_properties", "lease show container:{container}"),
    Scenario("container.list_blobs", "lease list {container}"),
    Scenario("blob.lease_break", "lock break blob:{blob} --yes", ("leased",)),
    Scenario("queue.create", "queue create {queue}-2"),
    Scenario("queue.get_metadata", "queue show {queue}"),
    Scenario("queue.get_metadata", "queue exists {queue}"),
    Scenario("queue.get_metadata", "queue metadata get {queue}"),
    Scenario("queue.set_metadata", "queue metadata set {queue} --metadata a=1"),
    Scenario("queue.get_acl", "queue acl get {queue}"),
    Scenario("queue.set_acl", "queue acl set {queue}", stdin=b"{}"),
    Scenario("queue.delete", "queue delete {queue} --with-contents"),
    Scenario("queue.put_message", "message put {queue} --content new"),
    Scenario("queue.get_messages", "message get {queue}"),
    Scenario("queue.peek_messages", "message peek {queue}"),
    Scenario("queue.peek_messages", "queue poison list {queue} --poison-queue {queue}"),
    Scenario("queue.update_message", "message update {message} --visible --pop-receipt {receipt}"),
    Scenario("queue.delete_message", "message delete {message} --pop-receipt {receipt}"),
    Scenario("queue.clear_messages", "message clear {queue} --with-contents"),
)  # fmt: skip

#: Those that the emulator can play.
PLAYED = [each for each in SCENARIOS if not each.elsewhere]

_EMPTY = "--create makes an empty one where none is, and takes no condition of its own for that"
# Operations that no command is made of.
NO_COMMAND: Mapping[str, str] = MappingProxyType(
    {
        "blob.put_append_blob": _EMPTY,
        "blob.put_page_blob": _EMPTY,
    }
)

_CREATES = "If-Match:* on a missing blob creates it"
# Conditions whose failure the emulator answers otherwise than the live service, in the words of the evidence: there the
# answer of the live service is scripted.
SCRIPTED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("blob.put_block_blob", "--if-match *"): _CREATES,
        ("blob.put_block_list", "--if-match *"): _CREATES,
        ("blob.set_tier", "--if-tags"): "x-ms-if-tags ignored",
        ("blob.set_tags", "--if-tags"): "x-ms-if-tags ignored",
        ("blob.snapshot", "--if-none-match"): "If-None-Match same / If-Modified-Since future -> 304",
        ("blob.snapshot", "--if-modified-since"): "If-None-Match same / If-Modified-Since future -> 304",
        ("blob.copy", "--if-none-match *"): "Azurite 409 BlobAlreadyExists",
        ("blob.seal_append_blob", "--append-position"): "x-ms-blob-condition-appendpos ignored",
    }
)
