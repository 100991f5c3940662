"""Rows on the disk that this process alone sees: more of them than fit the memory.

A database of SQLite without a name. It is deleted when it is closed, or when the process ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from azguard.errors import ConfigError

if TYPE_CHECKING:
    from sqlite3 import Connection


def connect(*statements: str) -> "Connection":
    """Return a new database, in one transaction that never ends, after these statements."""
    import sqlite3

    connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
    for each in (*statements, "BEGIN"):
        connection.execute(each)
    return connection


@contextmanager
def explain_failure() -> Iterator[None]:
    """Say that a full disk keeps no rows, and is no fault of azguard.

    Raises:
        ConfigError: the rows cannot be kept.
    """
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        raise ConfigError(
            f"the folder of temporary files cannot be written: {error}", reason="temporary_folder_fails"
        ) from error
