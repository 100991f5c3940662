"""What a row finds when its command begins: written past the proxy, and known to the scope of the command.

The core writes most of it, in a fifth of the time that command lines take.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from azguard import address
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.blobs import snapshots, tags
from azguard.blobs.content import append_write, page_write, put_blob
from azguard.blobs.content.append_blob import Append
from azguard.blobs.content.page_blob import PageWrite
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.snapshots import Snapshot
from azguard.cache.etag_cache import EtagCache
from azguard.cache.reads import Reads
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import POSITION, Conditions, resolve
from azguard.guards.versions import SeenVersion
from azguard.queues import message_format, messages
from azguard.queues.message_format import MessageReceived, MessageWritten
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles
from azguard.resources.parts import get_metadata
from azguard.tables.updates import VersionedEntity
from azguard.updates import update
from azguard.updates.resource import UpdatePlan
from azguard.wire.operations.blobs import BLOB_PUT_BLOCK_BLOB
from azguard.wire.rows import Part
from tests.support import sdk_clients
from tests.support.no_records import NoRecords

_HIDDEN_SECONDS = 30
LEASE = "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"


@dataclass
class ScopeStage:
    """What a row may do before its command runs, in the scope of that command and without faults.

    The names are short addresses.
    """

    direct: Account
    #: The same account behind the proxy: what the scope knows is known by its endpoint.
    proxied: Account
    reads: Reads
    blob: str
    container: str
    entity: str
    queue: str
    #: Runs a command line as the row's own is run.
    call: Callable[[str, bytes], None]
    message_id: str = ""
    _receipt: str = field(default="", init=False)

    def put(self, content: bytes = b"old", fence: str | None = None) -> None:
        """Write the blob, so that its version is known here; under a fence or without one."""
        self._put(self.blob, content, fence)

    def put_source(self, content: bytes = b"new") -> None:
        """Write the blob that is copied."""
        self._put(f"{self.blob}/source", content, None)

    def append(self, content: bytes = b"old\n") -> None:
        """Append to the blob, which is created as an append blob, so that its version is known here."""
        given = Append(target=self._blob, conditions=Conditions(guard=POSITION), deadline=Deadline(), create=Settings())
        done = append_write.append(given, iter([content]), NoRecords())
        append_write.remember_append(replace(given, target=self._behind_proxy(given.target)), done, self.reads)

    def take_snapshot(self) -> None:
        """Keep the blob as it is now."""
        given = Snapshot(target=self._blob, conditions=Conditions(), deadline=Deadline(), op=fresh_op())
        snapshots.take_snapshot(given)

    def stage_block(self, content: bytes = b"new") -> None:
        """Stage a block, whose id is ``{block}``."""
        sdk_clients.blob(self.direct, self._blob.address).stage_block("part", content)

    def make_pages(self) -> None:
        """Create the blob as a page blob of two pages, so that its version is known here."""
        given = PageWrite(
            target=self._blob,
            conditions=Conditions(guard="if-none-match", never_read=True),
            deadline=Deadline(),
            offset=0,
            create_bytes=1024,
            settings=Settings(),
        )
        written = page_write.put(given, BytesIO(b"o" * 1024), NoRecords())
        self.reads.record(self._behind_proxy(self._blob), written)

    def lease_blob(self, seconds: int = -1) -> None:
        """Take a lease on the blob, infinite unless said otherwise; its id is ``{lease}``."""
        sdk_clients.blob(self.direct, self._blob.address).acquire_lease(seconds, LEASE)

    def read_tags(self) -> None:
        """Read the tags of the blob, so that their version is known here."""
        found = tags.get(self._blob, Conditions(), Deadline())
        self.reads.record_part(self._behind_proxy(self._blob), Part.TAGS, found)

    def make_container(self, *, leased: bool = False) -> None:
        """Create the container of the row, which ``{container}`` names."""
        target = self._locate(self.container, Kind.CONTAINER)
        made = lifecycles.create(target, {}, Deadline(), fresh_op())
        self.reads.record(self._behind_proxy(target), made)
        if leased:
            sdk_clients.container(self.direct, target.address).acquire_lease(-1, LEASE)

    def make_queue(self) -> None:
        """Create the queue of the row, which ``{queue}`` names; its metadata were read here."""
        target = self._make_queue(self.queue)
        found, _ = get_metadata(target, Conditions(), Deadline())
        self.reads.record_part(self._behind_proxy(target), Part.METADATA, found)

    def put_message(self) -> None:
        """Put ``old`` into the queue."""
        put = messages.put(self._locate(self.queue, Kind.QUEUE), "old", 0, None, Deadline())
        self.message_id = put.id
        self._record_receipt(put)

    def show_message(self) -> None:
        """Let others receive the message; the receipt of that is known here."""
        self._record_receipt(messages.update(self._message, self._receipt, None, 0, Deadline()))

    def receive_message(self) -> None:
        """Put ``old`` into the queue and receive it, so that its receipt is known here; ``{message}`` names it."""
        self.put_message()
        queue = self._locate(self.queue, Kind.QUEUE)
        for each in messages.receive(queue, 1, _HIDDEN_SECONDS, message_format.TEXT, Deadline()):
            self._record_receipt(each.shown)

    def make_poison(self) -> None:
        """Create the queue of the row and its poison queue with the message ``new``."""
        self._make_queue(self.queue)
        messages.put(self._make_queue(f"{self.queue}-poison"), "new", 0, None, Deadline())

    def insert(self) -> None:
        """Insert the entity, with an ``n`` of 1, so that its version is known here."""
        target = self._locate(self.entity, Kind.ENTITY)
        plan = UpdatePlan(lambda content: b'{"n": 1}', fresh_op(), create=b"{}")
        ended = update.update(VersionedEntity(target), plan, Deadline())
        assert ended.content is not None
        self.reads.record_content(self._behind_proxy(target), ended.committed, ended.content, ended.lineage)

    def run(self, command: str, stdin: bytes = b"") -> None:
        """Run a command line, with the names of the row filled in."""
        self.call(command, stdin)

    @property
    def _blob(self) -> Target:
        return self._locate(self.blob, Kind.BLOB)

    @property
    def _message(self) -> Target:
        return Target(self.direct, Address(Kind.MESSAGE, (self.queue, self.message_id)))

    def _locate(self, text: str, kind: Kind) -> Target:
        return Target(self.direct, address.parse(text, kind).address)

    def _behind_proxy(self, target: Target) -> Target:
        return Target(self.proxied, target.address)

    def _put(self, name: str, content: bytes, fence: str | None) -> None:
        target = self._locate(name, Kind.BLOB)
        asked = RequestedConditions(fence=fence, last_writer_wins=fence is None)
        conditions = resolve(BLOB_PUT_BLOCK_BLOB, asked, target)
        upload = Upload(target, Settings(), conditions, Deadline(), fresh_op(), any_type=True).add_lineage()
        written = put_blob.put(upload, BytesIO(content), lambda done: None)
        self.reads.record(self._behind_proxy(target), written, lineage=upload.stamp)

    def _make_queue(self, name: str) -> Target:
        target = self._locate(name, Kind.QUEUE)
        lifecycles.create(target, {}, Deadline(), fresh_op())
        return target

    def _record_receipt(self, found: MessageWritten | MessageReceived) -> None:
        self._receipt = found.pop_receipt
        seen = SeenVersion(found.pop_receipt, hidden_until=found.time_next_visible)
        self.reads.record(self._behind_proxy(self._message), seen)


@contextmanager
def open_reads(folder: Path, scope: str) -> Iterator[Reads]:
    """Open what a scope has read, in a folder of a cache; to the end of a ``with`` block."""

    def warn(text: str) -> None:
        raise AssertionError(text)

    cache = EtagCache.open(folder, scope, warn=warn, now=lambda: datetime.now(UTC))
    try:
        yield Reads(lambda: cache, "blob put", lambda target: None)
    finally:
        cache.close()
