"""What a run tells a scraper of its locks."""

import re
from pathlib import Path

from azguard.locks.metrics import LockMetrics


def samples(path: Path) -> dict[str, float]:
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {re.sub(r'azguard_lock_(\w+)\{lock="(\w+)"\}', r"\2 \1", name): float(value) for name, value in lines}


def test_a_lock_is_told_from_its_request_to_its_release_or_its_loss(tmp_path: Path) -> None:
    clock = [100.0]
    path = tmp_path / "locks.prom"
    metrics = LockMetrics(path, ["a", "b"], print, lambda: clock[0], lambda: clock[0] + 1000)
    metrics.begin()
    assert samples(path) == {
        f"{name} {value}": number
        for name in "ab"
        for value, number in (("asked_timestamp_seconds", 1100), ("held", 0), ("losses_total", 0))
    }
    for clock[0], name in ((103.0, "a"), (104.0, "b")):
        metrics.note_held(name, clock[0] + 60, 7)
    clock[0] = 110.0
    metrics.note_renewal("a", 170.0)
    metrics.note_loss("b")
    clock[0] = 120.0
    metrics.note_release("a")
    metrics.note_release("b")
    found = samples(path)
    assert {name: number for name, number in found.items() if "asked" not in name} == {
        "a wait_seconds": 3, "a held": 0, "a hold_seconds": 17, "a confirmed_timestamp_seconds": 1170, "a fence": 7,
        "a losses_total": 0,
        "b wait_seconds": 4, "b held": 0, "b hold_seconds": 6, "b confirmed_timestamp_seconds": 1164, "b fence": 7,
        "b losses_total": 1,
    }  # fmt: skip


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    metrics = LockMetrics(None, ["a"], print)
    metrics.begin()
    metrics.note_held("a", 1.0, 1)
    assert list(tmp_path.iterdir()) == []
