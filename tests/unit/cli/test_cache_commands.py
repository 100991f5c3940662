"""``azguard cache`` with a file that cannot be used: what a command is about is not told as done."""

import json
import os
import time

import pytest

from azguard.updates.local_runs import WriteJournal
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


def test_kept_files_are_listed_pruned_by_their_age_and_cleared_only_where_that_is_meant(offline: CliWorld) -> None:
    folder = offline.root / ".cache" / "kept"
    folder.mkdir(parents=True, mode=0o700)
    old, young = folder / "old", folder / "young"
    for path, days in ((old, 100), (young, 31)):
        path.write_text("mine")
        os.utime(path, (time.time() - days * 86400,) * 2)
    listed = offline.call("cache", "list", "--kept", "-o", "json").json
    assert [(each["path"], each["kind"], each["size"], each["in_use"]) for each in listed] == [
        (str(old), "unsaved work", 4, False),
        (str(young), "unsaved work", 4, False),
    ]
    counts = {"forgotten": 0, "deleted": 1, "deleted_bytes": 4, "in_use": 0}
    tried = offline.call("cache", "prune", "--older-than", "1d", "--dry-run", "-o", "json")
    assert (tried.json, f"would delete: {old} (unsaved work" in tried.err, old.exists()) == (
        {**counts, "dry_run": True}, True, True
    )  # fmt: skip
    assert offline.call("cache", "prune", "--older-than", "1d", "-o", "json").json == {**counts, "dry_run": False}
    assert (old.exists(), offline.call("cache", "clear").code, young.exists()) == (False, 0, True)
    refused = offline.call("cache", "clear", "--kept", "-o", "json")
    assert (refused.code, refused.error["message"], young.exists()) == (
        2, "1 kept file would be deleted, and there is no terminal to ask on", True
    )  # fmt: skip
    assert offline.call("cache", "clear", "--kept", "--dry-run", "-o", "json").json == {**counts, "dry_run": True}
    assert offline.call("cache", "clear", "--kept", "--yes", "-o", "json").json == {**counts, "dry_run": False}
    assert (young.exists(), offline.call("cache", "clear", "--kept").code) == (False, 0)
    assert offline.call("cache", "list", "--kept", "--prefix", "blob:").code == 2


@pytest.mark.parametrize(("words", "forgotten"), [(("clear",), 1), (("prune", "--older-than", "1m"), 2)])
def test_a_dry_run_counts_what_would_be_forgotten_and_forgets_nothing(
    offline: CliWorld, words: tuple[str, ...], forgotten: int
) -> None:
    records = [_RECORD, {**_RECORD, "copy": True, "path": "/tmp/a"}, {**_RECORD, "scope": "other"}]
    lines = "\n".join(map(json.dumps, records)).encode()
    assert offline.call("cache", "import", stdin=lines).code == 0
    for _ in range(2):
        assert (
            offline.call("cache", *words, "--dry-run", "--scope", "test", "-o", "json").json["forgotten"] == forgotten
        )
    assert offline.call("cache", *words, "--scope", "test", "-o", "json").json["forgotten"] == forgotten


def test_the_journal_of_an_update_is_cleared_only_once_its_run_has_ended(offline: CliWorld) -> None:
    folder = offline.root / ".cache" / "attempts"
    running, taken_up, ended = (WriteJournal(folder, name, keyed=True) for name in ("running", "taken-up", "ended"))
    for each in (running, taken_up, ended):
        each.record_sending('"0x1"')
    for each in (taken_up, ended):
        each.close()
    assert taken_up.read_pending() == "0x1"
    ran = offline.call("cache", "clear", "--kept", "--yes", "-o", "json")
    assert (ran.json["deleted"], ran.json["in_use"], sorted(os.listdir(folder))) == (1, 2, ["running", "taken-up"])
    running.forget()
    running.close()
    taken_up.close()
    assert offline.call("cache", "clear", "--kept", "--yes", "-o", "json").json["deleted"] == 1
