"""Names on the disk, with what is known of each: a tree may have more of them than fit the memory."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from azguard.cache import scratch
from azguard.times import iso
from azguard.trees.store import ListedItem

_BATCH = 1000


class Known(NamedTuple):
    """What a listing says of one file."""

    name: str
    etag: str | None
    last_modified: datetime | None
    content_length: int | None
    content_md5: str | None
    #: Of a blob, where the listing tells it.
    blob_type: str | None = None


class NameIndex:
    """The names of a listing, of which some are marked. One thread uses it at a time."""

    def __init__(self, fold: Callable[[str], str] | None = None) -> None:
        """Begin without a name; ``fold`` tells what names have in common that are taken for one."""
        self._fold = fold or str
        self._database = scratch.connect(
            "CREATE TABLE names (key TEXT PRIMARY KEY, name TEXT, etag TEXT, modified TEXT, length INTEGER, md5 TEXT,"
            " blob_type TEXT, marked INTEGER NOT NULL) WITHOUT ROWID"
        )

    def add_all(self, items: Iterable[ListedItem]) -> None:
        """Add what a listing yields.

        Raises:
            ConfigError: the disk is full.
        """
        add = "INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?, ?, ?, 0)"
        with scratch.explain_failure():
            self._database.executemany(add, map(self._to_row, items))

    def _to_row(self, item: ListedItem) -> tuple[str, str, str | None, str | None, int | None, str | None, str | None]:
        modified, kind = iso(item.last_modified), getattr(item, "blob_type", None)
        return self._fold(item.name), item.name, item.etag, modified, item.content_length, item.content_md5, kind

    def find(self, name: str) -> Known | None:
        """Return what is known of a name."""
        query = "SELECT name, etag, modified, length, md5, blob_type FROM names WHERE key = ?"
        row = self._database.execute(query, (self._fold(name),)).fetchone()
        return None if row is None else _parse(row)

    @property
    def is_empty(self) -> bool:
        """Return whether it has no name."""
        return self._database.execute("SELECT 1 FROM names LIMIT 1").fetchone() is None

    def mark(self, name: str, *, with_all_below: bool = False) -> None:
        """Mark a name, if it is there; also all below it, as if it were a folder."""
        key = self._fold(name)
        with scratch.explain_failure():
            self._database.execute("UPDATE names SET marked = 1 WHERE key = ?", (key,))
            if with_all_below:
                # The character after the slash is the zero.
                below = (f"{key}/", f"{key}0")
                self._database.execute("UPDATE names SET marked = 1 WHERE key >= ? AND key < ?", below)

    def is_marked(self, name: str) -> bool:
        """Return whether a name is there and marked."""
        query = "SELECT marked FROM names WHERE key = ?"
        row = self._database.execute(query, (self._fold(name),)).fetchone()
        return row is not None and bool(row[0])

    def list_unmarked(self) -> Iterator[Known]:
        """Yield what is not marked, in order of name."""
        query = "SELECT name, etag, modified, length, md5, blob_type FROM names WHERE NOT marked ORDER BY key"
        cursor = self._database.execute(query)
        while rows := cursor.fetchmany(_BATCH):
            yield from map(_parse, rows)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def close(self) -> None:
        """Delete it."""
        self._database.close()


def _parse(row: tuple[str, str | None, str | None, int | None, str | None, str | None]) -> Known:
    name, etag, modified, length, md5, kind = row
    return Known(name, etag, None if modified is None else datetime.fromisoformat(modified), length, md5, kind)
