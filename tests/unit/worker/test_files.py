"""The files that a worker writes: events and metrics."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from azguard.documents.open_metrics import MetricsFile
from azguard.errors import UsageError
from azguard.worker.outcomes import Counts, Events, Outcome, build_metrics

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# https://prometheus.io/docs/specs/om/open_metrics_spec/: what a line may be, for the kinds that a worker has.
_LINE = re.compile(
    r"# (TYPE [a-z_]+ (counter|gauge|summary)|UNIT ([a-z_]+) [a-z]+|HELP [a-z_]+ [^\n]+)"
    r"|[a-z_]+\{[a-z]+=\"([^\"\\]|\\.)*\"(,[a-z]+=\"([^\"\\]|\\.)*\")*\} \d+(\.\d+)?"
)


def events(path: Path | None, told: list[str]) -> Events:
    return Events(path, told.append, lambda: NOON)


def test_an_event_is_a_line_of_json(tmp_path: Path) -> None:
    log = events(tmp_path / "log", [])
    log.note("done", id="1", status=0)
    assert json.loads((tmp_path / "log").read_text()) == {
        "time": "2026-01-01T12:00:00Z", "event": "done", "id": "1", "status": 0
    }  # fmt: skip


def test_a_text_that_is_no_utf_8_is_escaped(tmp_path: Path) -> None:
    events(tmp_path / "log", []).note("done", key="\ud800é")
    assert json.loads((tmp_path / "log").read_text())["key"] == "\ud800é"


def test_events_are_appended_to_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    events(tmp_path / "log", []).note("done")
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_a_file_of_events_that_was_moved_or_deleted_is_begun_anew(tmp_path: Path) -> None:
    path, told = tmp_path / "log", list[str]()
    log = events(path, told)
    log.note("first")
    path.rename(tmp_path / "log.1")
    log.note("second")
    path.unlink()
    log.note("third")
    log.note("fourth")
    lines = [
        json.loads(line)["event"] for name in ("log.1", "log") for line in (tmp_path / name).read_text().splitlines()
    ]
    assert (lines, told, log.lost) == (["first", "third", "fourth"], [], 0)


def test_events_go_to_the_moved_file_while_no_new_one_can_be_opened(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = events(folder / "log", [])
    folder.rename(tmp_path / "old")
    log.note("first")
    folder.mkdir()
    log.note("second")
    told = [len((each / "log").read_text().splitlines()) for each in (tmp_path / "old", folder)]
    assert (told, log.lost) == ([1, 1], 0)


def test_a_full_disk_is_told_once_and_each_lost_line_counted() -> None:
    told: list[str] = []
    log = events(Path("/dev/full"), told)
    log.note("done")
    log.note("done")
    assert (len(told), log.lost) == (1, 2)


def test_a_line_after_a_torn_one_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, whole = events(tmp_path / "log", []), os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, content: whole(descriptor, content[:5]))
        log.note("done")
    log.note("failed")
    assert json.loads((tmp_path / "log").read_text().splitlines()[1])["event"] == "failed"


def test_a_file_of_events_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        events(tmp_path / "missing" / "log", [])


def test_metrics_are_openmetrics_text() -> None:
    counts = Counts(lambda: 0.0)
    counts.note_received(2)
    counts.note_command(1.5)
    counts.note_end(Outcome.DONE, "m1")
    *body, end, rest = build_metrics('a"b\\c', counts.take()).split("\n")
    assert [line for line in body if not _LINE.fullmatch(line)] == []
    assert (end, rest) == ("# EOF", "")


def test_metrics_have_every_outcome_and_what_is_running() -> None:
    counts = Counts(lambda: 0.0)
    counts.note_received(2)
    counts.note_end(Outcome.DONE, "m1")
    text = build_metrics("jobs", counts.take())
    assert 'azguard_queue_messages_total{queue="jobs",outcome="done"} 1' in text
    assert 'azguard_queue_messages_running{queue="jobs"} 1' in text
    assert [each.value for each in Outcome if f'outcome="{each.value}"' not in text] == []


def test_a_unit_ends_the_name_of_its_metric() -> None:
    units = re.findall(r"# UNIT (\S+) (\S+)", build_metrics("jobs", Counts(lambda: 0.0).take()))
    assert [name for name, unit in units if not name.endswith(f"_{unit}")] == []


def test_metrics_are_written_every_five_seconds(tmp_path: Path) -> None:
    clock = [0.0]
    path = tmp_path / "metrics"
    metrics = MetricsFile(path, str, lambda text: None, lambda: clock[0])
    metrics.begin()
    path.unlink()
    found = []
    for clock[0] in (4.9, 5.0):
        metrics.write_if_due()
        found.append(path.exists())
    assert found == [False, True]


def test_metrics_that_cannot_be_written_are_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    folder = tmp_path / "folder"
    folder.mkdir()
    metrics = MetricsFile(folder / "metrics", str, told.append)
    metrics.begin()
    (folder / "metrics").unlink()
    folder.rmdir()
    metrics.write()
    metrics.write()
    assert len(told) == 1


def test_a_file_of_metrics_that_cannot_be_written_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        MetricsFile(tmp_path / "missing" / "file", str, print).begin()
