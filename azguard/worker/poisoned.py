"""The messages of a poison queue, and why each is there.

A message has no room for a reason. It stands in a table of reasons of the same account (a row that is inserted once and
never changed; its key is the id that the service gave to the copy), or in the rows of the table of claims, and in the
files of events that workers wrote: all name the message of the poison queue by its id. A message that another program
put there has none.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from azguard import columns, times
from azguard.accounts.account import Target
from azguard.address import Address, Kind, parse
from azguard.errors import AzguardError, Exists, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.queues import messages, queues
from azguard.queues.message_format import MessagePeeked
from azguard.queues.moving import POISON_SUFFIX
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.tables import entities, tables, writes
from azguard.tables.edm import PARTITION_KEY, ROW_KEY, Entity
from azguard.tables.writes import EntityWrite, Verb
from azguard.worker.once import POISONED, find_partition

# How much of a body is shown.
_SHOWN_CHARACTERS = 80
_COPY = "poison_message"
#: The table of all poison queues of an account; the partition is the poison queue.
TABLE = "azguardpoison"
_NO_TABLE = "TableNotFound"
_SECONDS = 10.0
# After a failure the table is left alone for so long: each try may take its time.
_PAUSE_SECONDS = 300.0


@frozen
class PoisonedMessage:
    """A message of a poison queue, and what is known of how it came there."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.Column(name="reason", rank=12),
        columns.Column(name="status", rank=11),
        columns.Column(name="dequeue_count", title="received", unit=columns.Unit.ITEMS, rank=8),
        columns.Column(name="poisoned", rank=10),
        columns.TEXT,
    )

    address: str
    id: str
    #: When it was put into the poison queue.
    poisoned: datetime
    #: The id that it had before; None if that is not known, and so with all below.
    original_id: str | None
    #: How often it was received before it was moved.
    dequeue_count: int | None
    reason: str | None
    #: The exit status of the command, if it had one.
    status: int | None
    #: The beginning of its body, as the service keeps it.
    text: str
    #: The beginning of the text of which it is the base64; None if it is none.
    decoded: str | None


@frozen
class PoisonList:
    """The messages that a look shows, and about how many there are."""

    queue: Target
    messages: tuple[PoisonedMessage, ...]
    count: int
    #: Why the table of reasons could not be read; None if it could, or is not there.
    reasons_error: AzguardError | None


def _find_poison_queue(queue: Target) -> Target:
    """Return the poison queue that a queue has by its name; a poison queue is its own."""
    own = queue.address.container
    name = own if own.endswith(POISON_SUFFIX) else own + POISON_SUFFIX
    return Target(queue.account, parse(name, Kind.QUEUE).address)


def list_poisoned(
    queue: Target, named: Target | None, once_table: Target | None, events: Path | None, deadline: Deadline
) -> PoisonList:
    """Look at the messages of a poison queue, and join what is known of each; they stay as they are.

    Raises:
        NotFound: the poison queue, or the table, is not there.
        UsageError: the file of events cannot be read.
    """
    # Before any request: a file that cannot be read is a typing error.
    told = {} if events is None else _read_events(events)
    poison = named or _find_poison_queue(queue)
    seen = _peek(poison, deadline)
    wanted = {each.id for each in seen}
    known = {id_: told[id_] for id_ in wanted & told.keys()}
    if once_table is not None and wanted:
        known |= _read_rows(once_table, queue.address.container, wanted, deadline)
    unread: AzguardError | None = None
    try:
        known |= _read_reasons(poison, sorted(wanted - set(known)))
    except AzguardError as error:
        unread = error
    shown = tuple(_join(each, known.get(each.id, {})) for each in seen)
    return PoisonList(poison, shown, queues.show(poison, Conditions(), deadline).approximate_message_count, unread)


def _peek(poison: Target, deadline: Deadline) -> list[MessagePeeked]:
    try:
        return messages.peek(poison, messages.MOST_MESSAGES, deadline)
    except NotFound as error:
        # A worker makes it with the first message that it moves there.
        raise error.but(reason="poison_queue_missing") from error


def _join(seen: MessagePeeked, known: Mapping[str, Any]) -> PoisonedMessage:
    return PoisonedMessage(
        address=seen.address,
        id=seen.id,
        poisoned=seen.insertion_time,
        original_id=known.get("id"),
        dequeue_count=known.get("dequeue_count"),
        reason=known.get("reason"),
        status=known.get("status"),
        text=_shorten(seen.text),
        decoded=None if seen.decoded is None else _shorten(seen.decoded),
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _read_rows(table: Target, queue: str, wanted: set[str], deadline: Deadline) -> dict[str, dict[str, Any]]:
    """Return the rows of a table about these messages, by the id of the poisoned copy."""
    query = f"PartitionKey eq {entities.quote_text(find_partition(queue))} and state eq {entities.quote_text(POISONED)}"
    found = {}
    try:
        for page, _ in entities.walk_pages(table, deadline, query):
            for each in page:
                if (copy := each.entity.get(_COPY)) in wanted:
                    found[str(copy)] = {**each.entity, "id": each.entity.get("message")}
    except NotFound as error:
        raise error.but(address=str(table.address), reason="once_table_missing") from error
    return found


def _read_events(path: Path) -> dict[str, dict[str, Any]]:
    """Return the last event about each message in a file of events."""
    try:
        with path.open("rb") as lines:
            return {each["poison_id"]: each for each in _parse(lines)}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", reason="events_not_readable") from None


def _parse(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of a file; a line that is torn, or another's, is none."""
    for line in lines:
        # Cheap: most lines of a long file are of other events.
        if b'"poison_id"' not in line:
            continue
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("poison_id"), str):
            yield found


class PoisonReasons:
    """Keeps why messages are in a poison queue, for several threads."""

    def __init__(
        self, poison: Target, warn: Callable[[str], None], now: Callable[[], float] = times.read_boot_clock
    ) -> None:
        self._poison, self._warn, self._now = poison, warn, now
        self._lock = threading.Lock()
        self._due = float("-inf")
        self._has_warned = False

    def keep(self, copy_id: str, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a message; where that fails, it is told once, and the work goes on."""
        if self._now() < self._due:
            return
        try:
            self._insert(copy_id, facts)
        except AzguardError as error:
            self._due = self._now() + _PAUSE_SECONDS
            self._tell(error)

    def _insert(self, copy_id: str, facts: Mapping[str, Any]) -> None:
        target = _locate(self._poison, copy_id)
        row: Entity = {PARTITION_KEY: target.address.parts[1], ROW_KEY: copy_id, **facts}
        made = EntityWrite(target, Verb.INSERT, row, Conditions(guard="if-none-match"), fresh_op()).add_lineage()
        try:
            writes.write(made, Deadline(_SECONDS))
        except NotFound:
            try:
                tables.create(_find_table(self._poison), Deadline(_SECONDS))
            except Exists:
                pass  # another worker has made it
            writes.write(made, Deadline(_SECONDS))

    def _tell(self, error: AzguardError) -> None:
        with self._lock:
            is_first, self._has_warned = not self._has_warned, True
        if is_first:
            self._warn(f"the reasons of poisoned messages are not kept in the table {TABLE}: {error.message}")


def _read_reasons(poison: Target, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the kept row of each of these messages of a poison queue."""
    found, deadline = {}, Deadline(_SECONDS)
    for each in wanted:
        try:
            row = entities.get(_locate(poison, each), deadline).entity
        except NotFound as error:
            if error.service_code == _NO_TABLE:
                break
        else:
            found[each] = {**row, "id": row.get("message")}
    return found


def _locate(poison: Target, copy_id: str) -> Target:
    return Target(poison.account, Address(Kind.ENTITY, (TABLE, poison.address.container, copy_id)))


def _find_table(poison: Target) -> Target:
    return Target(poison.account, Address(Kind.TABLE, (TABLE,)))
