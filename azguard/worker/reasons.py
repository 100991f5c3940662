"""Why messages are in a poison queue: a row for each, in a table of the same account.

A message has no metadata, and its bytes stay as they are, for other readers. So the reason stands beside it. A row is
inserted once and never changed; its key is the id that the service gave to the copy.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Exists, NotFound
from azguard.processes import clock
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.tables import calls, tables, writes
from azguard.tables.edm import PARTITION_KEY, ROW_KEY, Entity
from azguard.tables.write import EntityWrite, Verb

#: The table of all poison queues of an account; the partition is the poison queue.
TABLE = "azguardpoison"
_NO_TABLE = "TableNotFound"
_SECONDS = 10.0
# After a failure the table is left alone for so long: each try may take its time.
_PAUSE_SECONDS = 300.0


class PoisonReasons:
    """Keeps why messages are in a poison queue, for several threads."""

    def __init__(self, poison: Target, warn: Callable[[str], None], now: Callable[[], float] = clock.now) -> None:
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


def read_reasons(poison: Target, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what is kept of these messages of a poison queue.

    Raises:
        AzguardError: the table cannot be read; that it is missing is no error.
    """
    found, deadline = {}, Deadline(_SECONDS)
    for each in wanted:
        try:
            row = calls.get(_locate(poison, each), deadline).entity
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
