"""What a command did, in one line for a terminal."""

import io
from typing import Any

import pytest

from azguard.cli.output import summaries
from tests.support.cases import cases

WRITE: dict[str, Any] = {
    "address": "blob:site/a",
    "etag": '"0x1"',
    "guard": "if-match",
    "attempts": 1,
    "conflicts": 0,
    "outcome": "committed",
}
SOON = "2026-11-21T10:00:00Z"
MESSAGE = {"address": "message:jobs/1", "time_next_visible": SOON}
LEASE = {**WRITE, "lease_id": "0f3c", "duration": 60, "lease_time": None}
KEPT = "what was there is site/a?snapshot=T"
ENDED = {"forgotten": 0, "deleted": 0, "in_use": 0, "dry_run": False}
BROKEN = {"held_by": "alice@build1", "age": 10_800}


@cases(
    ("command", "result", "line"),
    ("blob put", {"created": True, "content_length": 16}, "✓ created site/a: 16 bytes"),
    ("blob put", {"created": False, "content_length": 1234}, "✓ updated site/a: 1,234 bytes"),
    ("blob put", {"created": None, "content_length": 1}, "✓ wrote site/a: 1 byte"),
    ("safe-update", {"conflicts": 2, "attempts": 3}, "✓ updated site/a: after 2 conflicts"),
    (
        "edit",
        {"created": False, "merged_with": {"etag": "E", "last_modified": SOON}},
        f"✓ updated site/a: merged with what another wrote at {SOON}",
    ),
    ("edit", {"created": False, "merged_with": {"etag": "E", "last_modified": None}}, "✓ updated site/a"),
    ("safe-update", {"attempts": 3}, "✓ updated site/a: after 3 attempts"),
    ("safe-update", {"outcome": "unchanged"}, "site/a is unchanged"),
    (
        "edit",
        {"outcome": "applied_before", "applied_at": None, "written_since": False},
        "site/a was left alone: this --op-id was applied before",
    ),
    (
        "safe-update",
        {"outcome": "applied_before", "applied_at": SOON, "written_since": True},
        f"site/a was left alone: this --op-id was applied before at {SOON}, and another write followed",
    ),
    ("blob put", {"outcome": "exists"}, "site/a exists, and was left alone"),
    ("blob delete", {"etag": None}, "✓ deleted site/a"),
    ("container create", {"address": "container:site"}, "✓ created container site"),
    ("entity merge", {"address": "entity:Orders/eu/1"}, "✓ merged entity Orders/eu/1"),
    ("table create", {"address": "table:Orders", "etag": None}, "✓ created table Orders"),
    ("table acl set", {"address": "table:Orders"}, "✓ set the access policies of table Orders"),
    ("blob put", {"created": False, "snapshot": "blob:site/a?snapshot=T"}, f"✓ updated site/a: {KEPT}"),
    ("blob copy", {"source": "blob:site/b", "copy_status": "success"}, "✓ copied site/b to site/a"),
    ("blob restore", {"source": "blob:site/b", "copy_status": "success"}, "✓ restored site/a from site/b"),
    (
        "blob copy",
        {"source": "blob:site/b", "copy_status": "pending", "copy_id": "7"},
        "the copy of site/b to site/a is pending: its id is 7",
    ),
    (
        "blob snapshot",
        {"snapshot": "T", "snapshot_address": "blob:site/a?snapshot=T"},
        "✓ kept site/a as site/a?snapshot=T",
    ),
    ("blob abort-copy", {"copy_status": "aborted"}, "✓ stopped the copy to site/a"),
    ("blob undelete", {}, "✓ brought back site/a"),
    ("message put", {**MESSAGE, "insertion_time": SOON}, "✓ put message jobs/1"),
    ("message put", {**MESSAGE, "insertion_time": "T"}, f"✓ put message jobs/1: visible at {SOON}"),
    ("message update", MESSAGE, f"✓ changed message jobs/1: visible at {SOON}"),
    ("message delete", {"address": "message:jobs/1"}, "✓ deleted message jobs/1"),
    ("message clear", {"address": "queue:jobs"}, "✓ cleared queue jobs"),
)
def test_a_write_is_one_line(command: str, result: dict[str, Any], line: str) -> None:
    assert summaries.summarize({**WRITE, **result}, command) == line


@cases(
    ("result", "line"),
    ({"action": "acquire"}, "✓ acquired the lease of site/a for 1m: 0f3c"),
    ({"action": "acquire", "duration": "infinite"}, "✓ acquired the lease of site/a until it is released: 0f3c"),
    ({"action": "renew", "duration": None}, "✓ renewed the lease of site/a: 0f3c"),
    ({"action": "change", "duration": 15}, "✓ changed the lease of site/a for 15s: 0f3c"),
    ({"action": "release"}, "✓ released the lease of site/a"),
    ({"action": "break", "lease_id": None}, "✓ broke the lease of site/a"),
    (
        {"action": "break", "lease_time": 50, "broken": BROKEN},
        "✓ broke the lease of site/a, held by alice@build1 for 3h",
    ),
)
def test_what_was_done_to_a_lease_is_one_line(result: dict[str, Any], line: str) -> None:
    assert summaries.summarize({**LEASE, **result}, "lease") == line


@cases(("before", "size"), (None, "16 bytes"), (15, "15 → 16 bytes"), (16, "16 bytes"), (1234, "1,234 → 16 bytes"))
def test_a_write_says_how_long_the_content_was(before: int | None, size: str) -> None:
    result = {**WRITE, "content_length": 16, "conflicts": 2, "attempts": 3}
    assert summaries.summarize(result, "safe-update", before) == f"✓ updated site/a: {size}, after 2 conflicts"


@cases(
    ("failed", "line"),
    (0, "✓ moved 3 messages to jobs"),
    (1, "moved 3 messages to jobs: 1 failed"),
)
def test_a_move_of_messages_is_one_line(failed: int, line: str) -> None:
    result = {"address": "queue:a", "destination": "queue:jobs", "moved": 3, "duplicated": 0, "failed": failed}
    assert summaries.summarize({**result, "unknown": 0}, "queue move") == line


def test_a_blob_read_into_a_file_is_one_line() -> None:
    got = {"address": "blob:site/a", "etag": '"0x1"', "content_length": 16, "file": "a.json"}
    assert summaries.summarize(got, "blob get") == "✓ read site/a into a.json: 16 bytes"
    of_file = {**got, "address": "file:team/a"}
    assert summaries.summarize(of_file, "file get") == "✓ read file team/a into a.json: 16 bytes"


def test_a_directory_is_called_one() -> None:
    made = {"address": "dir:team/a", "guard": "if-none-match", "attempts": 1, "outcome": "committed"}
    assert summaries.summarize(made, "dir create") == "✓ created directory team/a"


STARTED = {
    "already_running": False,
    "blob_endpoint": "http://127.0.0.1:10000/devstoreaccount1",
    "queue_endpoint": "http://127.0.0.1:10001/devstoreaccount1",
    "table_endpoint": "http://127.0.0.1:10002/devstoreaccount1",
    "file_endpoint": None,
    "smb_endpoint": None,
}
FILES = {"file_endpoint": "http://127.0.0.1:10004/devstoreaccount1", "smb_endpoint": "smb://127.0.0.1:14445"}
MANY = {
    "address": "table:Orders",
    "matched": 1200,
    "updated": 1200,
    "unchanged": 0,
    "applied_before": 0,
    "skipped": 0,
    "failed": 0,
    "unknown": 0,
}


@cases(
    ("command", "result", "line"),
    ("cache forget", {"forgotten": 1}, "✓ forgot 1 version"),
    ("cache clear", ENDED, "✓ forgot 0 versions"),
    ("cache prune", {**ENDED, "deleted": 1, "in_use": 2}, "✓ forgot 0 versions, deleted 1 kept item, 2 in use stay"),
    ("cache prune", {**ENDED, "deleted": 3, "dry_run": True}, "would forget 0 versions, delete 3 kept items"),
    ("cache import", {"imported": 2}, "✓ imported 2 versions"),
    (
        "emulator start",
        STARTED,
        "✓ started the emulator: blobs at 127.0.0.1:10000, queues at 127.0.0.1:10001, tables at 127.0.0.1:10002",
    ),
    (
        "emulator start",
        {**STARTED, "already_running": True, **FILES},
        "✓ the emulator runs already: blobs at 127.0.0.1:10000, queues at 127.0.0.1:10001, "
        "tables at 127.0.0.1:10002, files at 127.0.0.1:10004, SMB at 127.0.0.1:14445",
    ),
    ("emulator stop", {"outcome": "stopped"}, "✓ stopped the emulator"),
    ("emulator stop", {"outcome": "not_running"}, "nothing was stopped"),
    ("profile set", {"name": "prod", "default": True}, "✓ wrote profile prod, the default"),
    ("profile set", {"name": "prod", "default": False}, "✓ wrote profile prod"),
    ("profile delete", {"name": "prod"}, "✓ deleted profile prod"),
    ("safe-update", MANY, "✓ updated 1,200 of 1,200 entities of table Orders"),
    (
        "safe-update",
        {**MANY, "created_keys": ["nosuch"]},
        "✓ updated 1,200 of 1,200 entities of table Orders: created nosuch",
    ),
    (
        "safe-update",
        {**MANY, "matched": 1, "updated": 0, "unchanged": 1},
        "✓ updated 0 of 1 entity of table Orders: 1 unchanged",
    ),
    (
        "safe-update",
        {**MANY, "updated": 1197, "skipped": 1, "failed": 1, "unknown": 1},
        "updated 1,197 of 1,200 entities of table Orders: 1 skipped, 1 failed, 1 unknown",
    ),
)
def test_what_is_no_write_of_one_resource_is_one_line_too(command: str, result: dict[str, Any], line: str) -> None:
    assert summaries.summarize(result, command) == line


@cases("result", {"address": "blob:site/a", "etag": '"0x1"'}, {"forgotten": 1})
def test_what_is_no_write_is_not_summarized(result: dict[str, Any]) -> None:
    assert summaries.summarize(result, "blob show") is None


@cases(
    ("encoding", "color", "shown"),
    ("utf-8", True, "\x1b[32m✓\x1b[0m created a"),
    ("utf-8", False, "✓ created a"),
    ("ascii", True, "created a"),
    ("ascii", False, "created a"),
)
def test_the_mark_is_shown_where_the_encoding_has_it(encoding: str, color: bool, shown: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert summaries.show("✓ created a", stream, color=color) == shown


def test_no_id_or_time_is_cut_where_the_line_is_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lease_id, stream = "0f3c2d1e-0000-4000-8000-1234567890ab", io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    shown = summaries.show(f"✓ acquired the lease of site/a for 1m: {lease_id}", stream, color=False)
    assert shown == f"✓ acquired the lease of site/a for 1m:\n  {lease_id}"


def test_the_arrow_between_two_lengths_is_spelled_in_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert summaries.show("✓ updated a: 1 → 2 bytes", stream, color=True) == "updated a: 1 -> 2 bytes"


def test_a_summary_cannot_drive_the_terminal() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert summaries.show("✓ wrote site/a\x1b[2J", stream, color=False) == "✓ wrote site/a\\x1b[2J"


@cases(("counts", "line"),
    ({"received": 1, "done": 1}, "✓ handled 1 message of queue jobs: 1 done"),
    ({"received": 3, "done": 1, "failed": 2}, "handled 3 messages of queue jobs: 1 done, 2 failed"),
    ({"received": 0}, "✓ handled 0 messages of queue jobs"),
    ({"received": 1, "duplicates": 1}, "✓ handled 1 message of queue jobs: 1 duplicates"),
    ({"received": 1, "duplicate_differs": 1}, "handled 1 message of queue jobs: 1 of a done key with another body")
)  # fmt: skip
def test_a_worker_says_how_the_messages_ended(counts: dict[str, int], line: str) -> None:
    outcomes = ("done", "retried", "failed", "poisoned", "lost", "held", "duplicates", "released", "unsettled")
    result = {"address": "queue:jobs", **dict.fromkeys((*outcomes, "duplicate_differs"), 0), **counts}
    assert summaries.summarize(result, "queue work") == line


@cases(
    ("command", "result", "line"),
    ("lock hold", {"outcome": "held", "until": "12:41", "pid": 9}, "took A until 12:41: pid 9 renews it, fence 4"),
    ("lock hold", {"outcome": "held", "until": None, "pid": None}, "took A until it is released: fence 4"),
    ("lock hold", {"outcome": "already_held", "until": "12:41", "pid": None},
     "this job holds already: A until 12:41: fence 4"),
    ("lock check", {"seconds_left": 57, "pid": 9},
     "this job holds A: pid 9 renews it, else it ends in 57s"),
    ("lock check", {"seconds_left": 57, "pid": None}, "this job holds A: it ends in 57s unless it is renewed"),
    ("lock check", {"seconds_left": None, "pid": None}, "this job holds A"),
)  # fmt: skip
def test_a_hold_tells_who_renews_it_and_when_it_ends(command: str, result: dict[str, object], line: str) -> None:
    shown = summaries.summarize({"address": "blob:locks/deploy", "fence": 4, **result}, command)
    assert shown == "✓ " + line.replace("A", "locks/deploy")
