"""What azguard must say when the network fails: one table, *operation × fault*.

Each row is a command that writes (or reads), the request of it that is spoilt, and what it must then say; each column
is one fault, which hits one such request only. A cell without an entry of its own must be ``DONE``: exit 0, and
the proxy's log says that the write was committed exactly once. Whatever a cell says, ``tests/faults/test_matrix.py``
checks it against that log: nothing is ever committed twice, an error other than 74 is never told of a write that was
committed or still can be, and no one is told "it was another" (42, 44, 45, 49) when it was us.

To add a row for a new command: append a ``Row`` to ``ROWS``. Name the command line (``{blob}``, ``{container}``,
``{lease}``, ``{queue}`` and ``{entity}`` are filled in, the last also in ``stdin``), what has to be there before
(``before``), the operation that is spoilt, as ``tests.faults.rules.operation`` names it, the one whose commits count if
that is another, and what is there afterwards (``leaves``). Where the first such request is not the one that is meant,
``nth`` says which is. Run it: ``pytest tests/faults -k put-if-match``. A cell that fails shows what azguard said and
what the log says; give it an entry with its reason only if the truth really cannot be known, else mend azguard.
``CONTESTS`` adds a rival who writes in between, ``OUTAGES`` a fault that hits every such request until azguard gives
up: a few of each for a new row. Faults that only the transport can tell apart (``TWINS``), and a slow answer, are
played in the first row of each group of commands, and where a row says something else of them. An answer that belongs
to an earlier request (``Column.stored``) is no answer, and so a twin, too; it is played once for each request of each
group, a refusal once for each group. A wrong Date is played where a time decides. A new kind of resource also needs its
names in ``rules.operation``, and how to look at it in ``Scene.look``.

The operations on a lease are ``repeatable``: done a second time they change nothing that the first time did not. There
a second commit, by a zombie or because azguard sent it again, is no fault; what counts instead is the state in which
they leave the lease (``lease``), in every cell that says 0, once everything has landed. The other rules hold for them
too: an error other than 74 is never told of what was done, nor is 0 told of what was not.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import methodcaller
from typing import TYPE_CHECKING

from tests.support.faultproxy.faults import Fault

if TYPE_CHECKING:
    from tests.faults.stage import ScopeStage


class Column(Enum):
    """A fault, and for a zombie when it lands: it is a request that is held and delivered later."""

    DROP = "drop"
    FAIL_AFTER = "503-after"
    LATE = "late"
    ZOMBIE_FIRST = "zombie-first"  # after the client gave up, before anything else it asks is passed on
    ZOMBIE_THEN = "zombie-then"  # after the client's next question was answered, before the one after that
    ZOMBIE_LAST = "zombie-last"  # after the command has ended
    RESET = "reset"
    HALF = "half"
    FAIL_BEFORE = "503-before"
    SLOW = "slow"
    REPLAYED = "replayed"
    STORED_AFTER = "stored-after"  # done, and answered with the stored answer of an earlier one, which was done
    STORED_BEFORE = "stored-before"  # not passed on, and answered likewise
    STORED_REFUSAL = "stored-refusal"  # done, and answered with the stored refusal of an earlier one
    # as DROP, and the Date of every other answer is wrong by two hours
    DATE_AHEAD = "date-ahead"
    DATE_BEHIND = "date-behind"

    @property
    def fault(self) -> Fault:
        """Return what the proxy does."""
        if self is Column.STORED_REFUSAL:
            return Fault.STORED_AFTER
        if self.ahead_seconds:
            return Fault.DROP
        return Fault.ZOMBIE if self in _ZOMBIES else Fault(self.value)

    @property
    def silent(self) -> bool:
        """Return whether it is about how long the client waits for an answer."""
        return self.fault in (Fault.ZOMBIE, Fault.LATE, Fault.SLOW)

    @property
    def stored(self) -> bool:
        """Return whether the client receives the answer to an earlier request."""
        return self in (Column.STORED_AFTER, Column.STORED_BEFORE, Column.STORED_REFUSAL)

    @property
    def ahead_seconds(self) -> int:
        """Return how far the clock is ahead that the Date of answers tells."""
        return {Column.DATE_AHEAD: 7200, Column.DATE_BEHIND: -7200}.get(self, 0)


_ZOMBIES = (Column.ZOMBIE_FIRST, Column.ZOMBIE_THEN, Column.ZOMBIE_LAST)
#: A fault → another one that leaves the same behind: only the transport, one for all commands, tells them apart.
TWINS = {
    Column.FAIL_AFTER: Column.DROP,
    Column.LATE: Column.DROP,
    Column.HALF: Column.DROP,
    Column.RESET: Column.FAIL_BEFORE,
    Column.STORED_AFTER: Column.DROP,
    Column.STORED_BEFORE: Column.FAIL_BEFORE,
    Column.STORED_REFUSAL: Column.DROP,
    Column.DATE_AHEAD: Column.DROP,
    Column.DATE_BEHIND: Column.DROP,
}
# The request was executed, and the answer lost, or not there in time.
ANSWER_LOST = (Column.DROP, Column.FAIL_AFTER, Column.LATE, Column.HALF, Column.SLOW)
# It was not executed when the client looks, and may still be.
NOT_THERE_YET = (Column.ZOMBIE_THEN, Column.ZOMBIE_LAST, Column.RESET, Column.FAIL_BEFORE)


@dataclass(frozen=True)
class Says:
    """An exit status, and for 74 why it cannot be known.

    ``twice`` says that nothing in the service can keep the network from doing it twice, to the same end. ``gone`` says
    no more than that it is gone, which is true, and not by whom. ``leased`` says that a request for a lease that comes
    late takes it for its term, since the write under it made no version.
    """

    code: int
    why: str = ""
    twice: bool = False
    gone: bool = False
    leased: bool = False


DONE = Says(0)
TWICE = Says(0, twice=True)
GONE_BY_WHOM = Says(74, "it is gone, and another writer could have deleted it")
UNKNOWN_MAKER = Says(74, "it is there, and another could have created it")
LAPSED = Says(74, "it is gone, and a finite lease may have lapsed, so that another writer could delete it")
NO_TRACE = Says(74, "without the lineage nothing tells who replaced the version it was for")
MAY_STILL_ARRIVE = Says(74, "a write without a condition cannot be called back, and sending it again could do it twice")
ON_ITS_FENCE = Says(74, "its only condition is the fence, so it may land once a holder with a lower one has written")
FOREIGN_COVERED = Says(74, "a writer that keeps no lineage replaced the version it was for, or our write on it")
EQUAL_BYTES = Says(74, "equal bytes stand where ours belong, and another writer could have appended them")
SECOND_SNAPSHOT = Says(74, "a snapshot has no condition that a first one would break, so a second could be made")
PUT_UNTRACED = Says(74, "nothing in the service tells whether a message is there, and sent again there could be two")
RECEIPT_LOST = Says(74, "the receipt is stale by our own update or by another reader, and the new one is lost")
STALE = Says(42, gone=True)
NONE_LEFT = Says(44, twice=True, gone=True)
TAKEN = Says(74, "it is not found for its receipt, and another reader could have received it")
RECEIVED_UNTRACED = Says(74, "nothing in the service tells what was received, and received again it would be others")
CLEARED = Says(74, "a clear that comes late deletes what was put until then")
RECREATED = Says(74, "it was created meanwhile, and ours may have been there before that, and deleted")


Before = Callable[["ScopeStage"], object]
Cells = Mapping[Column, Says]


@dataclass(frozen=True)
class Row:
    """One command line and one of its requests: the ``nth`` such. ``commit`` is the operation whose commits count.

    ``lease`` is the state of the blob's lease afterwards, if it is another than before. ``repeatable`` says that only
    this state counts, and not how often it was brought about. ``partial``: it writes a part of the resource, so that
    what is there afterwards does not tell whether another changed the rest; then no ETag is told.
    """

    name: str
    command: str
    spoilt: str
    before: tuple[Before, ...] = ()
    commit: str | None = None
    stdin: bytes = b""
    leaves: bytes | None = b"new"
    lease: str | None = None
    repeatable: bool = False
    cells: Cells = field(default_factory=dict)
    nth: int = 1
    partial: bool = False

    @property
    def service(self) -> str:
        """Return the service whose requests are spoilt."""
        if self.command.startswith(("queue", "message")) or "queue:" in self.command:
            return "queue"
        if "{share}" in self.command:
            return "file"
        named = self.command + self.stdin.decode("latin-1")
        return "table" if "{entity}" in named or "{table}" in named else "blob"

    @property
    def lease_after(self) -> str:
        """Return the state in which the blob's lease must be afterwards."""
        return self.lease or ("leased" if "{lease}" in self.command else "available")

    def says(self, column: Column) -> Says:
        """Return what azguard must say. An answer to another request is none: it is as if it had been lost."""
        return self.cells.get(TWINS[column] if column.stored or column.ahead_seconds else column, DONE)


def _in(columns: tuple[Column, ...], says: Says) -> dict[Column, Says]:
    return dict.fromkeys(columns, says)


# What a row finds: each is a call of the cell's ``ScopeStage``.
_old = methodcaller("put")
_one = methodcaller("put", b'{"n": 1}')
_log = methodcaller("append")
_staged = methodcaller("stage_block")
_disk = methodcaller("make_pages")
_fenced = methodcaller("put", fence="3")
_fenced_one = methodcaller("put", b'{"n": 1}', fence="3")
_source = methodcaller("put_source")
_new = methodcaller("put", b"new")
_snapshot = methodcaller("take_snapshot")
_leased = methodcaller("lease_blob")
_leased_shortly = methodcaller("lease_blob", 60)
_tags = methodcaller("read_tags")
_container = methodcaller("make_container")
_leased_container = methodcaller("make_container", leased=True)
_queue = methodcaller("make_queue")
_sent = methodcaller("put_message")
_shown = methodcaller("show_message")
_message = methodcaller("receive_message")
_poison = methodcaller("make_poison")
_entity = methodcaller("insert")
_table = methodcaller("run", "table create {table}")
_share = methodcaller("run", "share create {share}")
_dir = methodcaller("run", "dir create {share}/d")
_file = methodcaller("run", "file put {share}/f", b"old")

LARGE = bytes(range(256)) * 20  # three blocks, as the scene makes them
_LOG = b"old\nnew\n"
_UPDATE_LOG = "safe-update blob:{blob} --append-line new"
_LINE = "blob append {blob} --line new"
_COMMIT = "blob block commit {blob} --block-id cGFydA=="
_PAGE = "blob page put {blob} --offset 512"
_PAGES = b"o" * 512 + b"n" * 512
_TWO = b'{"n": 2}'
_INCREMENT = "safe-update blob:{blob} --increment n"
_ENTITY = "safe-update entity:{entity} --increment n"
_TRANSACTION = "entity transaction -"
_BY_LEDGER = _ENTITY + " --guard ledger"
_LOST = {
    Column.REPLAYED: NO_TRACE,
    **_in(ANSWER_LOST, NO_TRACE),
    **_in((Column.ZOMBIE_FIRST, Column.ZOMBIE_THEN), NO_TRACE),
}
_LOST_APPEND = dict.fromkeys(_LOST, EQUAL_BYTES)
# The refusal of a second copy tells no more than a lost answer does.
_DONE_EARLIER = (*ANSWER_LOST, Column.ZOMBIE_FIRST, Column.ZOMBIE_THEN, Column.REPLAYED)
_DELETED = _in(_DONE_EARLIER, GONE_BY_WHOM)
_DELETED_ANYHOW = {**_DELETED, **_in(NOT_THERE_YET, MAY_STILL_ARRIVE)}
# A table says nothing of who made it.
_MADE_BY_WHOM = _in(_DONE_EARLIER, UNKNOWN_MAKER)
_UNCONDITIONAL = {Column.REPLAYED: TWICE, **_in(NOT_THERE_YET, MAY_STILL_ARRIVE)}
# Each copy leads to the same state, and the lease that they name is given back at the end.
_UNDER_LEASE = {Column.REPLAYED: TWICE, Column.ZOMBIE_THEN: TWICE}
_UNTRACED = {column: Says(74, "nothing in tags or a tier tells whose they are") for column in Column}
_UNTRACED[Column.REPLAYED] = TWICE
# A zombie under a fence is stopped by a higher one only; sent again, it could undo what its own holder wrote since.
_BY_FENCE = {Column.REPLAYED: TWICE, **_in(NOT_THERE_YET, ON_ITS_FENCE)}
_REFUSED_BY_FENCE: Cells = {column: ON_ITS_FENCE for column in Column if column is not Column.REPLAYED}
_FENCE = " --fence 7"
_COPY = "blob copy {blob} --source {blob}/source"
_OTHER = "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02"


def _items(other: str, verb: str) -> bytes:
    """Return the lines of a transaction that writes the entity, and does ``other`` to one beside it."""
    more = {"delete": {}, "upsert": {"entity": {"n": 2}, "last_writer_wins": True}}.get(verb, {"entity": {"n": 2}})
    lines = [{"op": verb, "address": "{entity}", **more}]
    if other:
        lines.insert(0, {"op": other, "address": "{entity}-beside", "entity": {"n": 1}})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _lease(verb: str, options: str, lease: str, *before: Before) -> Row:
    """Return the row of an operation on a blob's lease."""
    return Row(f"lease-{verb}", f"lease {verb} blob:{{blob}} {options}", f"PUT lease:{verb}", (_old, *before),
               leaves=b"old", lease=lease, repeatable=True)  # fmt: skip


ROWS = (
    Row("put-create", "blob put {blob}", "PUT blob", stdin=b"new"),
    Row("put-skip", "blob put {blob} --if-exists skip", "PUT blob", stdin=b"new"),
    Row("put-if-match", "blob put {blob}", "PUT blob", (_old,), stdin=b"new"),
    Row("put-last-writer-wins", "blob put {blob} --last-writer-wins", "PUT blob", (_old,), stdin=b"new",
        cells=_UNCONDITIONAL),
    Row("put-lease", "blob put {blob} --lease-id {lease} --last-writer-wins", "PUT blob", (_old, _leased),
        stdin=b"new", cells=_UNCONDITIONAL),
    Row("put-lease-if-match", "blob put {blob} --lease-id {lease}", "PUT blob", (_old, _leased),
        stdin=b"new"),
    Row("put-no-lineage", "blob put {blob} --no-lineage", "PUT blob", (_old,), stdin=b"new", cells=_LOST),
    Row("put-blocks-block", "blob put {blob}", "PUT block", (_old,), "PUT blocklist", LARGE, LARGE),
    Row("put-blocks-create", "blob put {blob}", "PUT blocklist", stdin=LARGE, leaves=LARGE),
    Row("put-blocks-if-match", "blob put {blob}", "PUT blocklist", (_old,), stdin=LARGE, leaves=LARGE),
    Row("put-blocks-last-writer-wins", "blob put {blob} --last-writer-wins", "PUT blocklist", (_old,), stdin=LARGE,
        leaves=LARGE, cells={**_UNCONDITIONAL, Column.ZOMBIE_THEN: DONE}),
    Row("put-blocks-no-lineage", "blob put {blob} --no-lineage", "PUT blocklist", (_old,), stdin=LARGE, leaves=LARGE),
    Row("put-fence", "blob put {blob}" + _FENCE, "PUT blob", (_fenced,), stdin=b"new", cells=_BY_FENCE),
    Row("put-fence-lease", "blob put {blob} --lease-id {lease}" + _FENCE, "PUT blob", (_fenced, _leased), stdin=b"new",
        cells=_BY_FENCE),
    Row("put-fence-refused", "blob put {blob}" + _FENCE, "PUT blob", (_old,), stdin=b"new", cells=_REFUSED_BY_FENCE),
    Row("put-fence-adopt", "blob put {blob}" + _FENCE, "PUT blob", (_old,), stdin=b"new", nth=2),
    Row("put-blocks-fence", "blob put {blob}" + _FENCE, "PUT blocklist", (_fenced,), stdin=LARGE, leaves=LARGE,
        cells={**_BY_FENCE, Column.ZOMBIE_THEN: DONE}),
    Row("copy-create", _COPY, "PUT copy", (_source,)),
    Row("copy-skip", _COPY + " --if-exists skip", "PUT copy", (_source,)),
    Row("copy-if-match", _COPY, "PUT copy", (_old, _source)),
    Row("copy-wait", _COPY + " --wait", "PUT copy", (_old, _source)),
    Row("copy-lease", _COPY + " --lease-id {lease}", "PUT copy", (_old, _source, _leased)),
    Row("copy-last-writer-wins", _COPY + " --last-writer-wins", "PUT copy", (_old, _source), cells=_UNCONDITIONAL),
    Row("copy-no-lineage", _COPY + " --no-lineage", "PUT copy", (_old, _source), cells=_LOST),
    Row("copy-fence", _COPY + _FENCE, "PUT copy", (_fenced, _source), cells=_BY_FENCE),
    Row("restore", "blob restore {blob} --from snapshot", "PUT copy", (_new, _snapshot, _old)),
    Row("put-snapshot-first", "blob put {blob} --snapshot-first", "PUT snapshot", (_old,), "PUT blob", b"new"),
    Row("update-snapshot-first", _INCREMENT + " --snapshot-first", "PUT snapshot", (_one,), "PUT blob", leaves=_TWO),
    Row("snapshot", "blob snapshot {blob}", "PUT snapshot", (_old,), leaves=b"old",
        cells={Column.REPLAYED: TWICE, **_in(NOT_THERE_YET, SECOND_SNAPSHOT)}),
    Row("delete-if-match", "blob delete {blob}", "DELETE blob", (_old,), leaves=None,
        cells=_DELETED),
    Row("delete-last-writer-wins", "blob delete {blob} --last-writer-wins", "DELETE blob", (_old,), leaves=None,
        cells=_DELETED_ANYHOW),
    Row("delete-lease", "blob delete {blob} --lease-id {lease} --last-writer-wins", "DELETE blob", (_old, _leased),
        leaves=None),
    Row("delete-lease-if-match", "blob delete {blob} --lease-id {lease}", "DELETE blob", (_old, _leased), leaves=None),
    Row("delete-short-lease", "blob delete {blob} --lease-id {lease} --last-writer-wins", "DELETE blob",
        (_old, _leased_shortly), leaves=None,
        cells=_in(_DONE_EARLIER, LAPSED)),
    Row("delete-fence", "blob delete {blob}" + _FENCE, "DELETE blob", (_fenced,), leaves=None,
        cells={**_BY_FENCE, **_DELETED, **_in(NOT_THERE_YET, ON_ITS_FENCE)}),
    Row("delete-fence-adopt", "blob delete {blob}" + _FENCE, "DELETE blob", (_old,), leaves=None, nth=2,
        cells=_DELETED),
    Row("delete-fence-lease", "blob delete {blob} --lease-id {lease}" + _FENCE, "DELETE blob", (_fenced, _leased),
        leaves=None),
    Row("metadata-set", "blob metadata set {blob} --metadata n=2", "PUT metadata", (_old,), leaves=b"old"),
    Row("metadata-set-last-writer-wins", "blob metadata set {blob} --metadata n=2 --last-writer-wins", "PUT metadata",
        (_old,), leaves=b"old"),
    Row("metadata-set-date", "blob metadata set {blob} --metadata n=2 --if-unmodified-since 2099-01-01T00:00:00Z",
        "PUT metadata", (_old,), leaves=b"old", cells=_UNDER_LEASE),
    Row("set-properties", "blob set-properties {blob} --content-language en", "PUT properties", (_old,), leaves=b"old",
        cells=_LOST),
    Row("set-properties-lease", "blob set-properties {blob} --content-language en --lease-id {lease}", "PUT properties",
        (_old, _leased), leaves=b"old"),
    Row("tags-set", "blob tags set {blob} --tags n=2", "PUT tags", (_old, _tags), leaves=b"old", cells=_UNDER_LEASE),
    Row("tags-set-acquire", "blob tags set {blob} --tags n=2", "PUT lease:acquire", (_old, _tags), "PUT tags",
        leaves=b"old", cells={Column.ZOMBIE_LAST: Says(0, leased=True)}),
    Row("tags-set-release", "blob tags set {blob} --tags n=2", "PUT lease:release", (_old, _tags), "PUT tags",
        leaves=b"old"),
    Row("tags-set-lease", "blob tags set {blob} --tags n=2 --lease-id {lease}", "PUT tags", (_old, _leased, _tags),
        leaves=b"old", cells={**_UNCONDITIONAL, Column.ZOMBIE_THEN: DONE}),
    Row("tags-set-last-writer-wins", "blob tags set {blob} --tags n=2 --last-writer-wins", "PUT tags", (_old,),
        leaves=b"old", cells=_UNTRACED),
    Row("tier", "blob tier {blob} --tier Cool", "PUT tier", (_old,), leaves=b"old", cells=_UNDER_LEASE),
    Row("tier-last-writer-wins", "blob tier {blob} --tier Cool --last-writer-wins", "PUT tier", (_old,), leaves=b"old",
        cells=_UNTRACED),
    Row("container-create", "container create {container}", "PUT container", leaves=b"", partial=True),
    Row("container-create-skip", "container create {container} --if-exists skip", "PUT container", leaves=b"",
        partial=True),
    Row("container-metadata-set", "container metadata set {container} --metadata a=1 --allow-race", "PUT metadata",
        (_container,), leaves=b"", partial=True, cells=_UNCONDITIONAL),
    Row("container-acl-set", "container acl set {container} --public-access blob --last-writer-wins", "PUT acl",
        (_container,), leaves=b"", cells=_UNTRACED),
    Row("container-delete-acquire", "container delete {container}", "PUT lease:acquire", (_container,),
        "DELETE container", leaves=None),
    Row("container-delete", "container delete {container}", "DELETE container", (_container,), leaves=None),
    Row("container-delete-last-writer-wins", "container delete {container} --last-writer-wins", "DELETE container",
        (_container,), leaves=None, cells=_DELETED_ANYHOW),
    Row("container-delete-lease", "container delete {container} --lease-id {lease} --last-writer-wins",
        "DELETE container", (_leased_container,), leaves=None),
    # A second copy finds its own metadata and is answered 204: it changes nothing.
    Row("queue-create", "queue create {queue}", "PUT queue", leaves=b"", repeatable=True),
    Row("queue-create-skip", "queue create {queue} --if-exists skip", "PUT queue", leaves=b"", repeatable=True),
    Row("queue-metadata-set", "queue metadata set {queue} --metadata a=1 --allow-race", "PUT metadata", (_queue,),
        leaves=b"", cells=_UNCONDITIONAL),
    Row("queue-acl-set", "queue acl set {queue} --last-writer-wins", "PUT acl", (_queue,), stdin=b"{}", leaves=b"",
        cells=_UNTRACED),
    Row("queue-delete", "queue delete {queue} --last-writer-wins", "DELETE queue", (_queue,), leaves=None,
        cells=_DELETED_ANYHOW),
    Row("message-put", "message put {queue} --content new", "POST messages", (_queue,),
        cells={column: PUT_UNTRACED for column in Column if column is not Column.REPLAYED} | {Column.REPLAYED: TWICE}),
    # The second copy finds nothing more to receive; what the first received is hidden for its time.
    Row("message-get", "message get {queue}", "GET messages", (_queue, _sent), leaves=b"",
        cells={column: RECEIVED_UNTRACED for column in Column if column is not Column.REPLAYED}
        # The first copy hides the message for its time; the second finds none, which is true as long as that.
        | {Column.REPLAYED: NONE_LEFT}),
    Row("message-update", "message update {message} --visible --content new", "PUT message", (_queue, _message),
        cells={**_in((*ANSWER_LOST, Column.ZOMBIE_FIRST), RECEIPT_LOST), Column.REPLAYED: STALE}),
    Row("message-delete", "message delete {message}", "DELETE message", (_queue, _message), leaves=b""),
    Row("message-update-shown", "message update {message} --visibility-timeout 5m", "PUT message",
        (_queue, _message, _shown), leaves=b"",
        cells={**_in((*ANSWER_LOST, Column.ZOMBIE_FIRST), RECEIPT_LOST), Column.REPLAYED: STALE}),
    Row("message-delete-shown", "message delete {message}", "DELETE message", (_queue, _message, _shown), leaves=b"",
        cells={**_in((*ANSWER_LOST, Column.ZOMBIE_FIRST), TAKEN), Column.REPLAYED: STALE}),
    Row("message-clear", "message clear {queue} --last-writer-wins --with-contents", "DELETE messages",
        (_queue, _message), leaves=b"",
        cells={column: CLEARED for column in Column if column is not Column.REPLAYED} | {Column.REPLAYED: TWICE}),
    Row("queue-move-put", "queue move {queue}-poison", "POST messages", (_poison,),
        cells={column: PUT_UNTRACED for column in Column if column is not Column.REPLAYED} | {Column.REPLAYED: TWICE}),
    Row("queue-move-delete", "queue move {queue}-poison", "DELETE message", (_poison,)),
    Row("update-read", _INCREMENT, "GET blob", (_one,), "PUT blob", leaves=_TWO),
    Row("update", _INCREMENT, "PUT blob", (_one,), leaves=_TWO),
    Row("update-create", _INCREMENT + " --create", "PUT blob", leaves=b'{"n": 1}'),
    Row("edit", "edit blob:{blob}", "PUT blob", (_old,)),
    Row("update-file", "safe-update blob:{blob} -- sed -i s/old/new/ {{}}", "PUT blob", (_old,)),
    Row("update-metadata", 'safe-update blob:{blob} --metadata --set n="2"', "PUT metadata", (_old,), leaves=b"old"),
    Row("update-tags", "safe-update blob:{blob} --tags --set-string n=2", "PUT tags", (_old,), leaves=b"old",
        cells=_UNDER_LEASE),
    Row("update-container-metadata", "safe-update container:{container} --metadata --set-string n=2 --allow-race",
        "PUT metadata", (_container,), leaves=b"",
        cells={**_UNCONDITIONAL, Column.ZOMBIE_THEN: DONE}),
    Row("update-queue-metadata", "safe-update queue:{queue} --metadata --set-string n=2 --allow-race",
        "PUT metadata", (_queue,), leaves=b"", partial=True, cells={**_UNCONDITIONAL, Column.ZOMBIE_THEN: DONE}),
    Row("update-blocks", "safe-update blob:{blob} --append new", "PUT blocklist", (lambda stage: stage.put(LARGE),),
        leaves=LARGE + b"new"),
    # The change is there already: what is written is that the key is done.
    Row("update-key-unchanged", "safe-update blob:{blob} --op-id key -- cat", "PUT metadata", (_one,),
        leaves=b'{"n": 1}'),
    Row("update-key-unchanged-guard-lease", "safe-update blob:{blob} --op-id key --guard lease -- cat", "PUT metadata",
        (_one,), leaves=b'{"n": 1}'),
    Row("update-container-key-unchanged",
        "safe-update container:{container} --metadata --allow-race --op-id key -- cat", "PUT metadata", (_container,),
        leaves=b"", cells={**_UNCONDITIONAL, Column.ZOMBIE_THEN: DONE}),
    Row("update-guard-acquire", _INCREMENT + " --guard lease", "PUT lease:acquire", (_one,), "PUT blob", leaves=_TWO),
    Row("update-guard-put", _INCREMENT + " --guard lease", "PUT blob", (_one,), leaves=_TWO),
    Row("update-guard-release", _INCREMENT + " --guard lease", "PUT lease:release", (_one,), "PUT blob", leaves=_TWO),
    Row("update-no-lineage", _INCREMENT + " --no-lineage", "PUT blob", (_one,), leaves=_TWO, cells=_LOST),
    Row("update-guard-no-lineage", _INCREMENT + " --no-lineage --guard lease", "PUT blob", (_one,), leaves=_TWO),
    _lease("acquire", "--infinite", "leased"),
    Row("lease-acquire-reason", "lease acquire blob:{blob} --infinite --reason why", "PUT metadata", (_old,),
        leaves=b"old", lease="leased", partial=True),
    _lease("renew", "--lease-id {lease}", "leased", _leased),
    _lease("change", f"--lease-id {{lease}} --proposed-lease-id {_OTHER}", "leased", _leased),
    _lease("release", "--lease-id {lease}", "available", _leased),
    _lease("break", "--yes", "broken", _leased),
    Row("lock-break", "lock break blob:{blob} --yes", "PUT lease:break", (_old, _leased), leaves=b"old", lease="broken",
        repeatable=True),
    Row("update-lease", _INCREMENT + " --lease-id {lease}", "PUT blob", (_one, _leased), leaves=_TWO),
    Row("update-fence-read", _INCREMENT + _FENCE, "GET tags", (_fenced_one,), "PUT blob", leaves=_TWO),
    Row("update-fence", _INCREMENT + _FENCE, "PUT blob", (_fenced_one,), leaves=_TWO),
    Row("update-entity-read", _ENTITY, "GET entity", (_entity,), "PUT entity", leaves=_TWO),
    Row("update-entity", _ENTITY, "PUT entity", (_entity,), leaves=_TWO),
    Row("update-entity-create", _ENTITY + " --create", "POST entity", leaves=b'{"n": 1}'),
    Row("update-entity-no-lineage", _ENTITY + " --no-lineage", "PUT entity", (_entity,), leaves=_TWO, cells=_LOST),
    Row("update-entity-key-unchanged", "safe-update entity:{entity} --op-id key -- cat", "PATCH entity", (_entity,),
        leaves=b'{"n": 1}', partial=True),
    Row("update-entity-ledger-key-unchanged", "safe-update entity:{entity} --op-id key --guard ledger -- cat",
        "POST batch", (_entity,), leaves=b'{"n": 1}'),
    Row("update-entity-ledger", _BY_LEDGER, "POST batch", (_entity,), leaves=_TWO),
    Row("update-entity-ledger-key", _BY_LEDGER + " --op-id key", "GET entity", (_entity,), "POST batch", leaves=_TWO,
        nth=2),
    Row("update-entity-ledger-create", _BY_LEDGER + " --create", "POST batch", leaves=b'{"n": 1}'),
    Row("update-entity-ledger-no-lineage", _BY_LEDGER + " --no-lineage", "POST batch", (_entity,), leaves=_TWO),
    Row("entity-insert", "entity insert {entity} n:int32=2", "POST entity", leaves=_TWO),
    Row("entity-insert-skip", "entity insert {entity} n:int32=2 --if-exists skip", "POST entity", leaves=_TWO),
    Row("entity-replace", "entity replace {entity} n:int32=2", "PUT entity", (_entity,), leaves=_TWO),
    Row("entity-replace-last-writer-wins", "entity replace {entity} n:int32=2 --last-writer-wins", "PUT entity",
        (_entity,), leaves=_TWO, cells=_UNCONDITIONAL),
    Row("entity-replace-no-lineage", "entity replace {entity} n:int32=2 --no-lineage", "PUT entity", (_entity,),
        leaves=_TWO, cells=_LOST),
    Row("entity-merge", "entity merge {entity} n:int32=2", "PATCH entity", (_entity,), leaves=_TWO, partial=True),
    Row("entity-merge-last-writer-wins", "entity merge {entity} n:int32=2 --last-writer-wins", "PATCH entity",
        (_entity,), leaves=_TWO, partial=True, cells=_UNCONDITIONAL),
    Row("entity-upsert", "entity upsert {entity} n:int32=2 --mode replace --last-writer-wins", "PUT entity",
        leaves=_TWO, cells=_UNCONDITIONAL),
    Row("entity-upsert-merge", "entity upsert {entity} n:int32=2 --last-writer-wins", "PATCH entity", (_entity,),
        leaves=_TWO, partial=True, cells=_UNCONDITIONAL),
    Row("entity-delete", "entity delete {entity}", "DELETE entity", (_entity,), leaves=None, cells=_DELETED),
    Row("entity-delete-last-writer-wins", "entity delete {entity} --last-writer-wins", "DELETE entity", (_entity,),
        leaves=None, cells=_DELETED_ANYHOW),
    Row("entity-transaction", _TRANSACTION, "POST batch", (_entity,), stdin=_items("insert", "replace"), leaves=_TWO),
    Row("entity-transaction-insert", _TRANSACTION, "POST batch", stdin=_items("insert", "insert"), leaves=_TWO),
    Row("entity-transaction-merge-insert", _TRANSACTION, "POST batch", (_entity,), stdin=_items("insert", "merge"),
        leaves=_TWO),
    Row("entity-transaction-delete", _TRANSACTION, "POST batch", (_entity,), stdin=_items("insert", "delete"),
        leaves=None),
    Row("entity-transaction-deletes", _TRANSACTION, "POST batch", (_entity,), stdin=_items("", "delete"), leaves=None,
        cells=_DELETED),
    Row("entity-transaction-upsert", _TRANSACTION, "POST batch", stdin=_items("", "upsert"), leaves=_TWO,
        cells=_UNCONDITIONAL),
    Row("table-create", "table create {table}", "POST table", leaves=b"", cells=_MADE_BY_WHOM),
    # After a refusal it exists, whoever made it.
    Row("table-create-skip", "table create {table} --if-exists skip", "POST table", leaves=b"",
        cells={**_MADE_BY_WHOM, Column.REPLAYED: DONE}),
    Row("table-acl-set", "table acl set {table} --last-writer-wins", "PUT acl", (_table,), stdin=b"{}", leaves=b"",
        cells=_UNTRACED),
    Row("table-delete", "table delete {table} --last-writer-wins", "DELETE table", (_table,), leaves=None,
        cells=_DELETED_ANYHOW),
    Row("share-create", "share create {share}", "PUT share", leaves=b"", partial=True),
    Row("share-delete", "share delete {share}", "DELETE share", (_share,), leaves=None),
    Row("share-delete-last-writer-wins", "share delete {share} --last-writer-wins", "DELETE share", (_share,),
        leaves=None, cells=_DELETED_ANYHOW),
    Row("dir-create", "dir create {share}/d", "PUT directory", (_share,), leaves=b"", partial=True),
    Row("dir-delete", "dir delete {share}/d --allow-race", "DELETE directory", (_share, _dir), leaves=None,
        cells=_DELETED_ANYHOW),
    Row("file-delete", "file delete {share}/f", "DELETE blob", (_share, _file), leaves=None),
    Row("file-delete-last-writer-wins", "file delete {share}/f --last-writer-wins", "DELETE blob", (_share, _file),
        leaves=None, cells=_DELETED_ANYHOW),
    Row("append", "blob append {blob}", "PUT appendblock", (_log,), stdin=b"new\n", leaves=_LOG, partial=True,
        cells=_LOST_APPEND),
    Row("append-line", _LINE, "PUT appendblock", (_log,), leaves=_LOG, partial=True, cells=_LOST_APPEND),
    Row("append-line-look", _LINE, "HEAD blob", (_log,), "PUT appendblock", leaves=_LOG),
    Row("append-line-content", _LINE + " --guard content", "PUT appendblock", (_log,), leaves=_LOG, partial=True),
    Row("append-line-lease", _LINE + " --guard lease", "PUT appendblock", (_log,), leaves=_LOG, partial=True),
    Row("append-line-lease-acquire", _LINE + " --guard lease", "PUT lease:acquire", (_log,), "PUT appendblock",
        leaves=_LOG, partial=True),
    Row("append-line-lease-release", _LINE + " --guard lease", "PUT lease:release", (_log,), "PUT appendblock",
        leaves=_LOG, partial=True),
    Row("append-update", _UPDATE_LOG, "PUT appendblock", (_log,), leaves=_LOG, partial=True, cells=_LOST_APPEND),
    Row("append-update-lease", _UPDATE_LOG + " --guard lease", "PUT appendblock", (_log,), leaves=_LOG, partial=True),
    Row("append-create", _LINE + " --create", "PUT blob", (), "PUT appendblock", leaves=b"new\n", partial=True),
    Row("block-stage", "blob block stage {blob} --block-id cGFydA==", "PUT block", stdin=b"new", leaves=None,
        repeatable=True),
    Row("block-commit", _COMMIT, "PUT blocklist", (_old, _staged)),
    Row("block-commit-create", _COMMIT, "PUT blocklist", (_staged,)),
    Row("block-commit-last-writer-wins", _COMMIT + " --last-writer-wins", "PUT blocklist", (_old, _staged),
        cells=_UNCONDITIONAL),
    Row("page-put", _PAGE, "PUT page", (_disk,), stdin=b"n" * 512, leaves=_PAGES),
    Row("page-put-acquire", _PAGE, "PUT lease:acquire", (_disk,), "PUT page", b"n" * 512, _PAGES),
    Row("page-put-release", _PAGE, "PUT lease:release", (_disk,), "PUT page", b"n" * 512, _PAGES),
    Row("page-put-sequence", _PAGE + " --if-sequence-number-le 3", "PUT page", (_disk,), stdin=b"n" * 512,
        leaves=_PAGES),
    Row("page-put-lease", _PAGE + " --lease-id {lease}", "PUT page", (_disk, _leased), stdin=b"n" * 512,
        leaves=_PAGES, cells=_LOST),
    Row("page-put-last-writer-wins", _PAGE + " --last-writer-wins", "PUT page", (_disk,), stdin=b"n" * 512,
        leaves=_PAGES, cells={**dict.fromkeys(Column, MAY_STILL_ARRIVE), Column.REPLAYED: TWICE}),
    Row("page-put-create", "blob page put {blob} --create 512", "PUT blob", (), "PUT page", b"n" * 512, b"n" * 512),
    Row("page-resize", "blob page resize {blob} 512", "PUT properties", (_disk,), leaves=b"o" * 512),
    Row("page-sequence", "blob page set-sequence-number {blob} --increment", "PUT properties", (_disk,),
        leaves=b"o" * 1024),
    Row("page-clear", "blob page clear {blob} --offset 0 --length 512", "PUT page", (_disk,),
        leaves=bytes(512) + b"o" * 512),
    Row("append-seal", "blob append seal {blob}", "PUT seal", (_log,), leaves=b"old\n", repeatable=True),
    Row("update-fence-metadata", 'safe-update blob:{blob} --metadata --set n="2"' + _FENCE, "PUT metadata",
        (_fenced,), leaves=b"old"),
)  # fmt: skip


class Rival(Enum):
    """Another who writes the blob between the fault and azguard's next question."""

    FOREIGN = "foreign"  # overwrites it, metadata and all
    AZGUARD = "azguard"  # overwrites it, and keeps the lineage
    APPENDER = "appender"  # appends other bytes
    TWIN = "twin"  # appends equal bytes
    HOLDER = "holder"  # has the lock after us: the same, under a higher fence


@dataclass(frozen=True)
class Contest:
    """A cell in which a rival writes meanwhile."""

    row: str
    column: Column
    rival: Rival
    says: Says


OVERTAKEN = Says(77)

CONTESTS = (
    Contest("put-if-match", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("put-if-match", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("put-if-match", Column.DROP, Rival.AZGUARD, DONE),
    Contest("put-if-match", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("put-if-match", Column.ZOMBIE_LAST, Rival.AZGUARD, Says(42)),
    Contest("put-if-match", Column.STORED_AFTER, Rival.AZGUARD, DONE),
    Contest("put-if-match", Column.STORED_BEFORE, Rival.AZGUARD, Says(42)),
    Contest("put-blocks-if-match", Column.DROP, Rival.AZGUARD, DONE),
    Contest("put-blocks-if-match", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("put-create", Column.DROP, Rival.AZGUARD, DONE),
    Contest("put-create", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("put-create", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("put-last-writer-wins", Column.DROP, Rival.AZGUARD, DONE),
    Contest("copy-if-match", Column.DROP, Rival.AZGUARD, DONE),
    Contest("copy-if-match", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("copy-if-match", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("copy-if-match", Column.ZOMBIE_LAST, Rival.AZGUARD, Says(42)),
    Contest("copy-create", Column.DROP, Rival.AZGUARD, DONE),
    Contest("copy-create", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("copy-fence", Column.DROP, Rival.HOLDER, DONE),
    Contest("restore", Column.DROP, Rival.AZGUARD, DONE),
    Contest("restore", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("snapshot", Column.DROP, Rival.FOREIGN, DONE),
    Contest("delete-if-match", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("delete-if-match", Column.DROP, Rival.AZGUARD, RECREATED),
    Contest("edit", Column.DROP, Rival.AZGUARD, DONE),
    Contest("edit", Column.RESET, Rival.AZGUARD, Says(65)),
    Contest("edit", Column.ZOMBIE_LAST, Rival.AZGUARD, Says(65)),
    Contest("edit", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update-key-unchanged", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-key-unchanged", Column.RESET, Rival.AZGUARD, DONE),
    Contest("update-key-unchanged", Column.ZOMBIE_LAST, Rival.AZGUARD, DONE),
    Contest("update-key-unchanged", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update", Column.RESET, Rival.AZGUARD, DONE),
    Contest("update", Column.ZOMBIE_THEN, Rival.AZGUARD, DONE),
    Contest("update", Column.ZOMBIE_LAST, Rival.AZGUARD, DONE),
    Contest("update", Column.STORED_AFTER, Rival.AZGUARD, DONE),
    Contest("update", Column.STORED_BEFORE, Rival.AZGUARD, DONE),
    Contest("update", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update-create", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-create", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("update-no-lineage", Column.RESET, Rival.AZGUARD, DONE),
    Contest("update-entity", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-entity", Column.RESET, Rival.AZGUARD, DONE),
    Contest("update-entity", Column.ZOMBIE_THEN, Rival.AZGUARD, DONE),
    Contest("update-entity", Column.ZOMBIE_LAST, Rival.AZGUARD, DONE),
    Contest("update-entity", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update-entity", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update-entity-create", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-entity-create", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("update-entity-ledger", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-entity-ledger", Column.DROP, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger", Column.RESET, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger", Column.ZOMBIE_THEN, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger", Column.ZOMBIE_LAST, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger-create", Column.DROP, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger-create", Column.RESET, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger-create", Column.ZOMBIE_LAST, Rival.FOREIGN, DONE),
    Contest("update-entity-ledger-no-lineage", Column.DROP, Rival.FOREIGN, DONE),
    Contest("entity-insert", Column.DROP, Rival.AZGUARD, DONE),
    Contest("entity-insert", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("entity-insert", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("entity-replace", Column.DROP, Rival.AZGUARD, DONE),
    Contest("entity-replace", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("entity-replace", Column.ZOMBIE_LAST, Rival.AZGUARD, Says(42)),
    Contest("entity-replace", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("entity-merge", Column.DROP, Rival.AZGUARD, DONE),
    Contest("entity-merge", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("entity-merge", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("entity-upsert", Column.DROP, Rival.AZGUARD, DONE),
    Contest("entity-delete", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("entity-delete", Column.DROP, Rival.AZGUARD, RECREATED),
    Contest("entity-transaction", Column.DROP, Rival.AZGUARD, DONE),
    Contest("entity-transaction", Column.RESET, Rival.AZGUARD, Says(42)),
    Contest("entity-transaction", Column.ZOMBIE_LAST, Rival.AZGUARD, Says(42)),
    Contest("entity-transaction", Column.DROP, Rival.FOREIGN, DONE),
    Contest("entity-transaction", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("queue-create", Column.DROP, Rival.AZGUARD, DONE),
    Contest("queue-create", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("queue-create", Column.RESET, Rival.AZGUARD, RECREATED),
    Contest("queue-delete", Column.DROP, Rival.FOREIGN, RECREATED),
    Contest("queue-metadata-set", Column.DROP, Rival.AZGUARD, DONE),
    Contest("queue-metadata-set", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("queue-metadata-set", Column.RESET, Rival.AZGUARD, MAY_STILL_ARRIVE),
    Contest("update-queue-metadata", Column.DROP, Rival.AZGUARD, DONE),
    Contest("update-queue-metadata", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("update-queue-metadata", Column.RESET, Rival.AZGUARD, MAY_STILL_ARRIVE),
    Contest("message-update-shown", Column.DROP, Rival.FOREIGN, RECEIPT_LOST),
    Contest("message-update-shown", Column.RESET, Rival.FOREIGN, RECEIPT_LOST),
    Contest("message-delete-shown", Column.DROP, Rival.FOREIGN, TAKEN),
    Contest("message-delete-shown", Column.RESET, Rival.FOREIGN, Says(42)),
    Contest("message-delete-shown", Column.ZOMBIE_THEN, Rival.FOREIGN, Says(42)),
    Contest("append", Column.RESET, Rival.APPENDER, Says(42)),
    Contest("append", Column.ZOMBIE_LAST, Rival.APPENDER, Says(42)),
    Contest("append", Column.RESET, Rival.TWIN, EQUAL_BYTES),
    Contest("append-line", Column.RESET, Rival.APPENDER, DONE),
    Contest("append-line", Column.ZOMBIE_THEN, Rival.APPENDER, DONE),
    Contest("append-line", Column.ZOMBIE_LAST, Rival.APPENDER, DONE),
    Contest("append-line", Column.DROP, Rival.APPENDER, EQUAL_BYTES),
    Contest("append-line", Column.RESET, Rival.TWIN, EQUAL_BYTES),
    Contest("append-line", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("append-line", Column.RESET, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("append-line-content", Column.DROP, Rival.APPENDER, DONE),
    Contest("append-line-content", Column.RESET, Rival.APPENDER, DONE),
    Contest("put-fence", Column.DROP, Rival.HOLDER, DONE),
    Contest("put-fence", Column.DROP, Rival.FOREIGN, FOREIGN_COVERED),
    Contest("put-fence", Column.ZOMBIE_LAST, Rival.HOLDER, ON_ITS_FENCE),
    Contest("put-fence-adopt", Column.DROP, Rival.HOLDER, DONE),
    Contest("put-fence-adopt", Column.RESET, Rival.HOLDER, OVERTAKEN),
    Contest("put-fence-adopt", Column.RESET, Rival.AZGUARD, DONE),
    Contest("delete-fence-adopt", Column.RESET, Rival.HOLDER, OVERTAKEN),
    Contest("update-fence", Column.DROP, Rival.HOLDER, DONE),
    Contest("update-fence", Column.RESET, Rival.HOLDER, OVERTAKEN),
    Contest("update-fence", Column.ZOMBIE_THEN, Rival.HOLDER, OVERTAKEN),
    Contest("update-fence", Column.ZOMBIE_LAST, Rival.HOLDER, OVERTAKEN),
    Contest("update-fence-metadata", Column.RESET, Rival.HOLDER, OVERTAKEN),
)


@dataclass(frozen=True)
class Outage:
    """A cell in which the fault hits every such request until azguard gives up, after two seconds."""

    row: str
    column: Column
    says: Says


# Nothing was applied, and because a fence has replaced the version it was for, nothing ever will be.
NOTHING = Says(53)
NO_FENCE = Says(74, "it may still arrive, and nothing that could stop it gets through or exists")
LATE_LEASE = Says(74, "it may still arrive, and nothing about a lease can be called back")
UNSEEN = Says(74, "that a lease is held says nothing of how long, so a renewal leaves no trace")

OUTAGES = (
    Outage("put-if-match", Column.DROP, DONE),
    Outage("put-if-match", Column.RESET, NO_FENCE),
    Outage("put-if-match", Column.FAIL_BEFORE, NO_FENCE),
    Outage("put-if-match", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("put-if-match", Column.STORED_AFTER, DONE),
    Outage("put-if-match", Column.STORED_BEFORE, NO_FENCE),
    Outage("put-create", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("delete-if-match", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("copy-if-match", Column.DROP, DONE),
    Outage("copy-if-match", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("copy-create", Column.RESET, NO_FENCE),
    Outage("snapshot", Column.DROP, DONE),
    Outage("container-create", Column.RESET, NO_FENCE),
    Outage("container-delete-acquire", Column.ZOMBIE_LAST, NOTHING),
    Outage("container-delete-acquire", Column.FAIL_BEFORE, NOTHING),
    Outage("lease-acquire", Column.DROP, DONE),
    Outage("lease-acquire", Column.RESET, LATE_LEASE),
    Outage("lease-acquire", Column.ZOMBIE_LAST, LATE_LEASE),
    Outage("lease-acquire", Column.STORED_BEFORE, LATE_LEASE),
    Outage("lease-renew", Column.DROP, UNSEEN),
    Outage("lease-change", Column.DROP, DONE),
    Outage("lease-change", Column.ZOMBIE_LAST, LATE_LEASE),
    Outage("lease-release", Column.DROP, DONE),
    Outage("lease-release", Column.RESET, LATE_LEASE),
    Outage("lease-break", Column.DROP, DONE),
    Outage("lease-break", Column.ZOMBIE_LAST, LATE_LEASE),
    Outage("update-read", Column.FAIL_BEFORE, NOTHING),
    Outage("update-read", Column.STORED_BEFORE, NOTHING),
    Outage("update-key-unchanged", Column.DROP, DONE),
    Outage("update-key-unchanged", Column.FAIL_BEFORE, NO_FENCE),
    Outage("update", Column.DROP, DONE),
    Outage("update", Column.RESET, NOTHING),
    Outage("update", Column.FAIL_BEFORE, NOTHING),
    Outage("update", Column.ZOMBIE_LAST, NOTHING),
    Outage("update", Column.STORED_BEFORE, NOTHING),
    Outage("update-no-lineage", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-lease", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-guard-put", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-guard-acquire", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-create", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("update-metadata", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("update-entity-read", Column.FAIL_BEFORE, NOTHING),
    Outage("update-entity", Column.DROP, DONE),
    Outage("update-entity", Column.RESET, NOTHING),
    Outage("update-entity", Column.FAIL_BEFORE, NOTHING),
    Outage("update-entity", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-entity-no-lineage", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-entity-create", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("update-entity-ledger", Column.DROP, DONE),
    Outage("update-entity-ledger", Column.RESET, NOTHING),
    Outage("update-entity-ledger", Column.ZOMBIE_LAST, NOTHING),
    Outage("update-entity-ledger-create", Column.DROP, DONE),
    Outage("update-entity-ledger-create", Column.ZOMBIE_LAST, NOTHING),
    Outage("entity-insert", Column.DROP, DONE),
    Outage("entity-insert", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("entity-replace", Column.DROP, DONE),
    Outage("entity-replace", Column.RESET, NO_FENCE),
    Outage("entity-merge", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("entity-delete", Column.FAIL_BEFORE, NO_FENCE),
    Outage("entity-transaction", Column.DROP, DONE),
    Outage("entity-transaction", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("queue-create", Column.DROP, DONE),
    Outage("queue-create", Column.RESET, NO_FENCE),
    Outage("update-queue-metadata", Column.DROP, DONE),
    Outage("update-queue-metadata", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("message-update", Column.DROP, RECEIPT_LOST),
    Outage("message-delete", Column.DROP, TAKEN),
    Outage("message-delete", Column.RESET, NO_FENCE),
    Outage("message-delete", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("put-fence", Column.DROP, DONE),
    Outage("put-fence", Column.ZOMBIE_LAST, ON_ITS_FENCE),
    Outage("put-fence-adopt", Column.ZOMBIE_LAST, NO_FENCE),
    Outage("delete-fence", Column.ZOMBIE_LAST, ON_ITS_FENCE),
    Outage("update-fence", Column.DROP, DONE),
    Outage("update-fence", Column.RESET, NOTHING),
    Outage("update-fence", Column.ZOMBIE_LAST, NOTHING),
)
