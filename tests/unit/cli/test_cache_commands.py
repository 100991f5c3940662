"""``azguard cache`` with a file that cannot be used: what a command is about is not told as done."""

import json

import pytest

from tests.support.cli_world import CliWorld
from tests.unit.cache.test_file import filled

_RECORD = {
    "scope": "test", "account": "https://contoso.blob.core.windows.net", "address": "blob:site/a", "etag": '"0x1"',
    "time": "2026-11-23T07:22:42Z", "command": "blob get", "copy": False,
}  # fmt: skip


@pytest.fixture
def newer(offline: CliWorld) -> CliWorld:
    """Return a world whose cache a newer azguard has made."""
    import sqlite3
    from contextlib import closing

    folder = offline.root / ".cache"
    folder.mkdir()
    filled(folder, entries=1)
    with closing(sqlite3.connect(folder / "etags.db")) as connection:
        connection.execute("PRAGMA user_version = 9")
    return offline


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("cache", "list"), "cannot be read"),
        (("cache", "show", "blob:site/a"), "cannot be read"),
        (("cache", "export"), "cannot be read"),
        (("status",), "cannot be read"),
        (("cache", "forget", "blob:site/a"), "was not changed"),
        (("cache", "clear"), "was not changed"),
        (("cache", "prune"), "was not changed"),
        (("cache", "import"), "was not changed"),
    ],
)
def test_a_cache_that_cannot_be_used_is_an_error(newer: CliWorld, command: tuple[str, ...], said: str) -> None:
    ran = newer.call(*command, "-o", "json", stdin=json.dumps(_RECORD).encode())
    path = newer.root / ".cache" / "etags.db"
    assert (ran.code, ran.out, ran.error["message"]) == (78, "", f"the ETag cache {path} {said}")


def test_an_import_of_no_file_names_its_argument(offline: CliWorld) -> None:
    ran = offline.call("cache", "import", "", "-o", "json")
    assert (ran.code, ran.error["message"]) == (2, "FILE is empty")
