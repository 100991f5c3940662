import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from azguard.demo import race, worker
from azguard.demo.race import CountVerdict
from azguard.demo.worker import IncrementOutcome, Strategy
from azguard.emulators.azurite_process import Azurite
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World, until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Fault, Request

_SHORT = ("--writers", "2", "--increments", "5", "--seed", "1")
_KEYS = {"name", "expected", "found", "verdict", "unknown", "failed", "seconds", "requests", "dropped"}


def _left(world: World) -> list[str]:
    """Return what is still running, and what is still in the folder for temporary files."""
    return [*world.processes(), *(file.name for file in (world.root / "tmp").iterdir())]


@pytest.fixture
def apart(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world with a folder of its own for temporary files."""
    (world.root / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(world.root / "tmp"))
    return world


def test_a_short_run_ends_with_our_count_exact_and_nothing_left(apart: World) -> None:
    answer = apart.run("demo", *_SHORT, "-o", "json")
    result: dict[str, Any] = json.loads(answer.stdout)
    told = [(each["name"], each["expected"], set(each) == _KEYS) for each in result["strategies"]]
    ours = result["strategies"][2]
    assert (answer.returncode, told, _left(apart)) == (0, [(way.value, 10, True) for way in Strategy], [])
    assert (ours["found"], ours["verdict"], ours["unknown"], result["exact"]) == (10, "exact", 0, True)
    assert all(each["dropped"] < each["requests"] for each in result["strategies"])
    for each in result["strategies"]:
        wanted = "exact" if each["found"] == 10 else "too few" if each["found"] < 10 else "too many"
        assert each["verdict"] == wanted
    assert not (apart.folder / "azurite.json").exists()


def test_without_a_terminal_plain_lines_tell_the_story(apart: World) -> None:
    # A proxy of the user's, which would lead nowhere, is not asked for the way to 127.0.0.1.
    answer = apart.run(
        "demo", "--writers", "1", "--increments", "5", HTTP_PROXY="http://127.0.0.1:1", http_proxy="http://127.0.0.1:1"
    )
    lines = answer.stdout.splitlines()
    begun = [line for line in lines if line.endswith(" ...") and line.removesuffix(" ...") in list(Strategy)]
    ended = [line.partition(": expected 5, found ")[0] for line in lines if ": expected 5, found " in line]
    assert (answer.returncode, answer.stderr, "\x1b" in answer.stdout) == (0, "", False)
    assert (begun, ended) == ([f"{way} ..." for way in Strategy], list(Strategy))
    assert max(len(line) for line in lines if not line.startswith(tuple(Strategy))) < 80
    assert lines[-1] == "      azguard safe-update blob:site/counter.json --increment count"


@pytest.mark.parametrize(
    "words",
    [("--writers", "0"), ("--writers", "many"), ("--increments", ""), ("--increments", "-1"), ("--seed", "x")],
)
def test_numbers_that_are_none_are_refused_before_anything_starts(world: World, words: tuple[str, str]) -> None:
    answer = world.run("demo", *words)
    assert (answer.returncode, answer.stdout, words[0] in answer.stderr) == (2, "", True)


@contextmanager
def _under_way(world: World, beginning: str) -> Iterator[subprocess.Popen[str]]:
    """Start a long demonstration and wait for a line that begins like this."""
    running = world.begin("demo", "--writers", "2", "--increments", "1000")
    assert running.stdout is not None
    while not running.stdout.readline().startswith(beginning):
        assert running.poll() is None
    yield running
    running.communicate(timeout=60)


@pytest.mark.parametrize(
    ("number", "status", "beginning"),
    [
        (signal.SIGINT, 130, "gets lost"),
        (signal.SIGTERM, 143, "gets lost"),
        (signal.SIGINT, 130, "get, change, put ..."),
    ],
)
def test_ctrl_c_at_the_start_or_in_a_race_leaves_nothing(
    apart: World, number: signal.Signals, status: int, beginning: str
) -> None:
    with _under_way(apart, beginning) as running:
        running.send_signal(number)
    assert running.returncode == status
    # A process that was just being started is not ended, it ends: its input is closed.
    until(lambda: _left(apart) == [])


def test_a_killed_demonstration_takes_its_writers_and_emulator_along(apart: World) -> None:
    with _under_way(apart, "get, change, put ...") as running:
        assert len(apart.processes()) >= 4
        running.kill()
    until(lambda: apart.processes() == [])


def test_a_writer_that_dies_is_said_and_nothing_goes_on(apart: World) -> None:
    with _under_way(apart, "get, change, put ...") as running:
        os.kill(_writer(running.pid), signal.SIGKILL)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, _left(apart)) == (1, [])
    assert said.startswith("error: one of the demonstration's writers ended before its time\n")


def _writer(parent: int) -> int:
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if b"azguard.demo.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("there is no writer")


# What each way does when the answer to its first put gets lost, one writer alone.


@pytest.fixture(scope="module")
def blob_port(azurite: Azurite) -> int:
    """Return the port of a blob service that has the demonstration's container."""
    worker.open_container(azurite.ports["blob"]).create_container()
    return azurite.ports["blob"]


@pytest.fixture
def count(blob_port: int, tmp_path: Path) -> Callable[[Strategy, proxy.Decide], tuple[IncrementOutcome, int]]:
    """Return a function that applies one increment through a proxy, and says what was told and what is true."""

    def apply(way: Strategy, decide: proxy.Decide) -> tuple[IncrementOutcome, int]:
        blob = worker.open_blob(way, blob_port)
        blob.upload_blob(worker.START, overwrite=True)
        with proxy.running(blob_port, decide) as between:
            told = worker.build_increment(way, between.port, tmp_path)()
        return told, int(json.loads(blob.download_blob().readall())["count"])

    return apply


def _first_put() -> proxy.Decide:
    puts = iter([Fault.DROP])
    return lambda request: next(puts, Fault.NONE) if request.writes else Fault.NONE


def _every_put(request: Request) -> Fault:
    return Fault.DROP if request.writes else Fault.NONE


def test_each_way_and_one_lost_answer(count: Callable[[Strategy, proxy.Decide], tuple[IncrementOutcome, int]]) -> None:
    assert {way: count(way, _first_put()) for way in Strategy} == {
        Strategy.BLIND: (IncrementOutcome.DONE, 1),
        Strategy.IF_MATCH: (IncrementOutcome.DONE, 2),
        Strategy.SAFE: (IncrementOutcome.DONE, 1),
    }


def test_a_script_whose_every_answer_is_lost_cannot_know(
    count: Callable[[Strategy, proxy.Decide], tuple[IncrementOutcome, int]],
) -> None:
    assert count(Strategy.BLIND, _every_put) == (IncrementOutcome.UNKNOWN, 1)


def test_safe_update_knows_even_if_every_answer_to_a_put_is_lost(
    count: Callable[[Strategy, proxy.Decide], tuple[IncrementOutcome, int]],
) -> None:
    assert count(Strategy.SAFE, _every_put) == (IncrementOutcome.DONE, 1)


@cases(("found", "verdict"), (9, CountVerdict.TOO_FEW), (10, CountVerdict.EXACT), (11, CountVerdict.TOO_MANY))
def test_a_count_is_judged_by_what_was_expected(found: int, verdict: CountVerdict) -> None:
    assert race.judge_count(10, found) is verdict


def test_a_share_of_one_in_ten_loses_about_one_in_ten() -> None:
    decide = proxy.losing(race.LOST_SHARE, random.Random(1))
    lost = sum(decide(Request("GET", "/", {})) is Fault.DROP for _ in range(10_000))
    assert 900 < lost < 1100


def test_without_the_sdk_the_extra_is_named_before_anything_starts(
    offline: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    ran = offline.call("demo", env={"PATH": "/nowhere"})
    assert (ran.code, ran.err) == (
        78,
        "error: the SDK's client, which the demo compares azguard with, is missing\n"
        "hint: let pip bring it, in the clone of azguard: pipx install --force '.[emulator]', or pip install "
        "'.[emulator]'\n",
    )
