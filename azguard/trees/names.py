"""The names of a tree: which are meant, what a listing says of each, and which are taken for one.

A tree may have more of them than fit the memory. Patterns are those of ``.gitignore``, on names relative to the root.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from azguard.cache import database
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.resources.tree_store import ListedItem
from azguard.times import iso

if TYPE_CHECKING:
    from pathspec import PathSpec


# A negation, a comment, and what no name below the folder begins with.
_MEANS_NOTHING = ("!", "#", "./", "../")
_BATCH = 1000
#: Returns what two names have in common that are taken for one.
Fold = Callable[[str], str]
_DIGEST_BYTES = 8


@frozen
class Patterns:
    """What is included, all if nothing is named, and what is excluded from that."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def selects(self, name: str) -> bool:
        """Return whether a name is meant, relative to the root of the tree."""
        if not self.include and not self.exclude:
            return True
        included = not self.include or self._included.match_file(name)
        return included and not self._excluded.match_file(name)

    @cached_property
    def _included(self) -> "PathSpec[Any]":
        return _parse_pattern(self.include)

    @cached_property
    def _excluded(self) -> "PathSpec[Any]":
        return _parse_pattern(self.exclude)


def check_pattern(text: str, name: str) -> None:
    """Refuse a malformed pattern.

    Raises:
        UsageError: it is empty, malformed, or can mean no file.
    """
    if not _is_pattern(text):
        raise UsageError(f"{name}: {text!r} is no pattern", reason="tree_pattern_malformed")


def _is_pattern(text: str) -> bool:
    if not text.strip() or text.startswith(_MEANS_NOTHING):
        return False
    try:
        _parse_pattern([text])
    except ValueError:
        return False
    return True


def _parse_pattern(patterns: Sequence[str]) -> "PathSpec[Any]":
    from pathspec import PathSpec

    return PathSpec.from_lines("gitignore", patterns)


class NameIndex:
    """The names of a listing, of which some are marked. One thread uses it at a time."""

    def __init__(self, fold: Callable[[str], str] | None = None) -> None:
        """Begin without a name; ``fold`` tells what names have in common that are taken for one."""
        self._fold = fold or str
        self._database = database.connect_scratch(
            "CREATE TABLE names (key TEXT PRIMARY KEY, name TEXT, etag TEXT, modified TEXT, length INTEGER, md5 TEXT,"
            " blob_type TEXT, marked INTEGER NOT NULL) WITHOUT ROWID"
        )

    def add_all(self, items: Iterable[ListedItem]) -> None:
        add = "INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?, ?, ?, 0)"
        with database.explain_full_disk():
            self._database.executemany(add, map(self._to_row, items))

    def _to_row(self, item: ListedItem) -> tuple[str, str, str | None, str | None, int | None, str | None, str | None]:
        modified, md5 = iso(item.last_modified), item.content_md5
        return self._fold(item.name), item.name, item.etag, modified, item.content_length, md5, item.blob_type

    def find(self, name: str) -> ListedItem | None:
        """Return the listed facts of a name."""
        query = "SELECT name, etag, modified, length, md5, blob_type FROM names WHERE key = ?"
        row = self._database.execute(query, (self._fold(name),)).fetchone()
        return None if row is None else _parse_row(row)

    @property
    def is_empty(self) -> bool:
        return self._database.execute("SELECT 1 FROM names LIMIT 1").fetchone() is None

    def mark(self, name: str, *, with_all_below: bool = False) -> None:
        """Mark a name, if it is there; also all below it, as if it were a folder."""
        key = self._fold(name)
        with database.explain_full_disk():
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

    def list_unmarked(self) -> Iterator[ListedItem]:
        """Yield the names that are not marked, in their order."""
        query = "SELECT name, etag, modified, length, md5, blob_type FROM names WHERE NOT marked ORDER BY key"
        cursor = self._database.execute(query)
        while rows := cursor.fetchmany(_BATCH):
            yield from map(_parse_row, rows)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def close(self) -> None:
        self._database.close()


def _parse_row(row: tuple[str, str | None, str | None, int | None, str | None, str | None]) -> ListedItem:
    name, etag, modified, length, md5, kind = row
    return ListedItem(name, etag, None if modified is None else datetime.fromisoformat(modified), length, md5, kind)


class TakenNames:
    """Which names are taken. Threads may use it at the same time."""

    def __init__(self, fold: Fold | None) -> None:
        """Begin without a name; without ``fold`` each name is its own."""
        self._fold = fold
        self._lock = threading.Lock()
        #: Digests, for names of a large tree would not fit the memory.
        self._taken = set[bytes]()

    def take(self, name: str) -> bool:
        """Take a name, and return whether none before is taken for the same."""
        if self._fold is None:
            return True
        digest = blake2b(self._fold(name).encode(), digest_size=_DIGEST_BYTES).digest()
        with self._lock:
            if digest in self._taken:
                return False
            self._taken.add(digest)
            return True
