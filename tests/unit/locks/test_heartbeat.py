"""The file that is there as long as a lock is held."""

from pathlib import Path
from typing import Any, cast

from azguard.locks.guarded_run import GuardedCommand, GuardedRun, Heartbeat


class Told:
    """A guardian, or locks, that only keep what they are told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.names.append(name)


def test_a_heartbeat_that_cannot_be_deleted_is_said_once_and_is_no_error(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "beat"
    heartbeat = Heartbeat(path, said.append)
    heartbeat.beat(10)
    path.unlink()
    path.mkdir()
    heartbeat.stop()
    heartbeat.stop()
    assert [each.partition(" cannot be deleted: ")[0] for each in said] == [f"warning: {path}"]


def test_the_heartbeat_of_the_next_holder_is_left_alone(tmp_path: Path) -> None:
    path, said = tmp_path / "beat", list[str]()
    lost, held = Heartbeat(path, said.append), Heartbeat(path, said.append)
    lost.beat(10)
    held.beat(11)
    lost.stop()
    assert path.exists()
    held.stop()
    assert (path.exists(), said) == (False, [])


def test_the_guardian_hears_of_a_loss_whatever_becomes_of_the_heartbeat(tmp_path: Path) -> None:
    path, guardian = tmp_path / "beat", Told()
    command = GuardedCommand(["true"], {}, grace=5.0, on_lost="term", say=lambda _: None, heartbeat=path)
    run = GuardedRun(command, cast("Any", Told()), cast("Any", guardian), now=lambda: 0.0)
    run.note_held("blob:locks/a", 10.0)
    path.unlink()
    path.mkdir()
    run.note_loss("it was broken")
    assert guardian.names == ["extend", "lost"]
