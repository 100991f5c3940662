"""``file lock list`` and ``file lock break``: who has a file open, and how an operator takes it from them."""

from tests.support import terminal_world
from tests.support.file_lock_world import FileLockWorld
from tests.support.lock_world import wait_for_file

LOST = "error: the lock was lost while the command ran"


def test_who_has_files_of_a_share_open_is_listed(world: FileLockWorld) -> None:
    first, second = world.new(), f"{world.new()}/deep"
    working = [world.begin_working(first), world.begin_working(second, "--range", "0:1")]
    found = world.cli.call("file", "lock", "list", f"share:{world.container}").json
    mine = {each["address"]: each for each in found if each["address"] in (f"file:{first}", f"file:{second}")}
    assert len(mine) == 2
    for each in mine.values():
        assert each["client"].startswith("127.0.0.1")
        assert {"Read", "Write"} <= set(each["access"])
        assert each["since"] is not None
    below = world.cli.call("file", "lock", "list", second.removesuffix("/deep")).json
    assert [each["address"] for each in below] == [f"file:{second}"]
    for each in working:
        each.finish(0)


def test_a_lock_is_broken_after_its_holder_was_shown(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    ran = world.cli.call("file", "lock", "break", file, "--yes")
    assert (ran.code, ran.json["outcome"], ran.json["closed"], ran.json["failed"]) == (0, "broken", 1, 0)
    assert f"{file}: 127.0.0.1" in ran.err
    ended = working.ended()
    assert (ended.code, LOST in ended.err) == (77, True)


def test_a_file_that_no_program_has_open_is_left_as_it_is(world: FileLockWorld) -> None:
    file = world.new()
    assert world.run(file, "--", "true").code == 0
    for dry_run in ([], ["--dry-run"]):
        ran = world.cli.call("file", "lock", "break", file, "--yes", *dry_run)
        assert (ran.code, f"no program has {file} open" in ran.err) == (44, True)


def test_without_a_word_that_it_is_meant_nothing_is_closed(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    refused = world.cli.call("file", "lock", "break", file)
    elsewhere = world.cli.call("file", "lock", "break", file, "--if-owner", "build-7")
    assert (refused.code, elsewhere.code) == (2, 42)
    assert "--yes" in refused.err
    working.finish(0)
    assert working.ended().code == 0


def test_on_a_terminal_only_a_yes_closes_the_file(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    status, shown = terminal_world.answer(world.cli, "n", "file", "lock", "break", file)
    assert (status, "has it open" in shown, "close it? [y/N]" in shown) == (130, True, True)
    working.finish(0)
    assert working.ended().code == 0


def test_the_machine_that_has_it_open_confirms_the_break(world: FileLockWorld) -> None:
    file = world.new()
    entered = world.cli.root / "entered"
    working = world.begin_working(file)
    waiting = world.begin(file, "--", "touch", str(entered))
    assert world.cli.call("file", "lock", "break", file, "--if-owner", "127.0.0.1").json["closed"] == 1
    wait_for_file(entered)
    assert (working.ended().code, waiting.ended().code) == (77, 0)
