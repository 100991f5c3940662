"""The records of the cache: exported ones are checked whole before the first is taken in."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azguard.cache import copies, records
from azguard.cache.etag_cache import EtagCache
from azguard.errors import UsageError
from tests.support.caches import ACCOUNT, CONFIG, OTHER, Clock, etag_of, never
from tests.support.cases import cases

GOOD: dict[str, Any] = {
    "scope": "one",
    "account": ACCOUNT,
    "address": "blob:site/config.json",
    "etag": '"0x1"',
    "last_modified": "2026-11-21T11:00:00Z",
    "length": 14,
    "content_hash": "sha256:" + "a" * 64,
    "lineage": "AAAAAAAAAAAAAAAA.0x0",
    "path": "/home/me/config.json",
    "time": "2026-11-21T12:00:00Z",
    "command": "blob get",
    "copy": False,
}


def opened(folder: Path, clock: Clock) -> EtagCache:
    return EtagCache.open(folder, "one", warn=never, now=clock)


def test_what_was_exported_is_loaded_again_through_json(tmp_path: Path) -> None:
    clock = Clock()
    here, there = opened(tmp_path / "a", clock), opened(tmp_path / "b", clock)
    here.record(
        CONFIG,
        etag='"0x1"',
        copy=copies.find_at(tmp_path / "caf\udce9"),
        command="entity get",
    )
    clock.after(seconds=1)
    here.record(CONFIG, etag='"0x2"', length=0, command="blob get")
    here.record_lease(CONFIG, "lease", duration=None, action="lease acquire")
    text = [json.dumps(record) for record in here.export()]
    assert there.import_records(json.loads(line) for line in text) == 2
    assert (list(there.export()), list(there.list_held())) == (list(here.export()), [])
    assert (
        there.find_bound(CONFIG, copies.find_at(tmp_path / "caf\udce9")).path
        == here.find_bound(CONFIG, copies.find_at(tmp_path / "caf\udce9")).path
    )


def test_one_scope_is_exported_alone(tmp_path: Path) -> None:
    cache = opened(tmp_path, Clock())
    assert cache.import_records([GOOD, {**GOOD, "scope": "two"}]) == 2
    assert list(cache.export("two")) == [{**GOOD, "scope": "two"}]


def test_a_record_never_takes_the_place_of_a_newer_read(tmp_path: Path) -> None:
    cache = opened(tmp_path, Clock())
    cache.record(CONFIG, etag='"newer"', command="blob get")
    older, newer = "2026-11-21T11:59:59.999999Z", "2026-11-21T13:00:00+00:30"
    kept = (cache.import_records([{**GOOD, "time": older}]), etag_of(cache.find_last(CONFIG)))
    taken = (cache.import_records([{**GOOD, "time": newer}]), etag_of(cache.find_last(CONFIG)))
    assert (kept, taken) == ((0, '"newer"'), (1, '"0x1"'))


@cases(
    ("field", "value"),
    ("scope", ""), ("scope", None), ("scope", 1), ("scope", "a\nb"),
    ("account", "devstoreaccount1"), ("account", ACCOUNT + "?sv=1&sig=abc"), ("account", "http://u:p@host"),
    ("address", "site/config.json"), ("address", "blob:site"), ("address", ACCOUNT + "/site/config.json"),
    ("address", "blob:site/a?sv=1&sig=abc"), ("address", "blob:site/\udcff"), ("address", None),
    ("etag", ""), ("etag", None), ("etag", "a\nb"), ("etag", 5),
    ("etag", "*"), ("etag", '"*"'), ("etag", "0x1"), ("etag", '"0x1","0x2"'), ("etag", 'W/"0x1"'),
    ("etag", '"@last"'),
    ("etag", "W/\"datetime'2026-11-21T11%3A00%3A00Z'\""), ("account", "http://a b"), ("account", "http://host#x"),
    ("last_modified", "yesterday"), ("last_modified", 5),
    ("length", -1), ("length", "14"), ("length", True), ("length", 1.5), ("length", 2**63),
    ("content_hash", "md5:abc"), ("content_hash", "sha256:" + "g" * 64),
    ("lineage", ""), ("lineage", 5), ("lineage", "anything"), ("lineage", "AAAAAAAAAAAAAAAA.0x0,x"),
    ("path", "config.json"), ("path", ""), ("path", "/a\0b"), ("path", "/\ud800"), ("path", 5),
    ("time", None), ("time", "2026-11-21T12:00:00"), ("time", "0001-01-01T00:00:00+01:00"),
    ("command", None), ("command", "blob get a?sig=abc"),
    ("copy", "yes"),
)  # fmt: skip
def test_a_bad_record_is_named_and_nothing_is_loaded(tmp_path: Path, field: str, value: object) -> None:
    cache = opened(tmp_path, Clock())
    with pytest.raises(UsageError, match=rf"^line 2: {field} is not ") as refused:
        cache.import_records([GOOD, {**GOOD, field: value}, GOOD])
    assert ("abc" in str(refused.value), list(cache.export())) == (False, [])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (["etag"], "line 1 is not a record"),
        ({**GOOD, "ETag": "x"}, "line 1: there is no field 'ETag'"),
        ({**GOOD, "copy": True, "path": None}, "line 1: path is missing, and the record is of a copy in a file"),
        ({field: GOOD[field] for field in GOOD if field != "etag"}, "line 1: etag is not an ETag"),
    ],
)
def test_a_record_of_another_shape_is_refused(tmp_path: Path, record: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        opened(tmp_path, Clock()).import_records([record])
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("address", "etag", "good"),
    [
        ("entity:Orders/eu/1", "W/\"datetime'2026-11-21T11%3A00%3A00Z'\"", True),
        ("entity:Orders/eu/1", '"0x1"', False),
        ("entity:Orders/eu/1", "*", False), ("entity:Orders/eu/1", 'W/"*"', False), ("table:Orders", '"0x1"', False),
        ("table:Orders", f'"acl-{"0" * 32}"', True), ("container:site", '"0x1"', True), ("file:docs/a", '"0x1"', True),
        ("message:work/1", '"0x1"', False),
    ],
)  # fmt: skip
def test_an_etag_is_checked_by_what_the_address_is(tmp_path: Path, address: str, etag: str, good: bool) -> None:
    cache = opened(tmp_path, Clock())
    record = {**GOOD, "address": address, "etag": etag}
    if good:
        assert cache.import_records([record]) == 1
    else:
        with pytest.raises(UsageError, match="line 1: etag is not an ETag of a"):
            cache.import_records([record])


def test_fields_that_may_be_missing_may_be_missing(tmp_path: Path) -> None:
    least = {field: GOOD[field] for field in ("scope", "account", "address", "etag", "time", "command")}
    cache = opened(tmp_path, Clock())
    assert cache.import_records([least, {**least, "address": str(OTHER.address)}]) == 2
    nothing = dict.fromkeys(("last_modified", "length", "content_hash", "lineage", "path"))
    assert next(cache.export()) == {**GOOD, **least, **nothing}


def test_more_records_than_one_transaction_takes_are_loaded(tmp_path: Path) -> None:
    cache = opened(tmp_path, Clock())
    assert cache.import_records({**GOOD, "address": f"blob:site/{number}"} for number in range(4500)) == 4500
    assert len({entry.address for entry in cache.list_entries()}) == 4500


SOON = datetime(2026, 11, 22, 4, 0, 30, tzinfo=UTC)


def test_until_when_a_message_is_hidden_is_kept_behind_the_command() -> None:
    command = records.add_hidden_until("message get", SOON)
    assert (command.startswith("message get"), records.find_hidden_until(command)) == (True, SOON)


@cases(
    "command", "message get", "", records.add_hidden_until("message get", None), "message get, hidden until then",
                "message get, hidden until 2026-11-22T04:00:30",
)  # fmt: skip
def test_what_names_no_moment_tells_none(command: str) -> None:
    assert records.find_hidden_until(command) is None


def test_no_placeholder_has_a_number_of_which_python_3_12_warns() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in Path(records.__file__).parent.glob("*.py")}
    assert len(found) > 5
    assert [name for name, text in found.items() if re.search(r"\?\d", text)] == []
