"""What the tests share: emulators, worlds to run command lines in, and how the tests are spread over the workers."""

import gc
import os
import random
import signal
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.nodeid import coerce_node_id
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.intervalsets import IntervalSet

from azguard.emulators import azurite_install, background
from azguard.emulators.azurite_process import Azurite
from azguard.folders import Folders
from tests.support import (
    azurites,
    emulator_world,
    files_world,
    forked,
    forked_workers,
    surroundings,
    thorough,
)
from tests.support import smb_emulator as smb_emulator_process
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World
from tests.support.places import DATA
from tests.support.smb_emulator import SmbEmulator

# Before the first test starts a program.
surroundings.shed()
surroundings.work_in_memory()

# The models of a thorough run; ``--hypothesis-profile long`` tries more. A busy machine is no fault.
_EXAMPLES = 40
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# All that UTF-8 has not.
_SURROGATES = range(0xD800, 0xE000)

# Files emulators of a run, each for some of the modules: one for all would be needed from its begin to its end.
_FILES = 3
# Groups that take minutes and wait more than they work, or would else end last. Each begins at another time.
_WAITING = (
    *(f"files {number}" for number in range(_FILES)),
    "killed readers",
    "killed holders",
    "fault matrix",
    "other-races",
    "killed slots",
    "lock-races",
    "smb_emulator",
    "fault gateways",
    "races",
    "queue-races",
    "terraform",
    "tests.system.test_packaging",
)
# Where the last test that can wait begins, of the whole run, and the last module of units that try many examples.
_END = 0.7
_EXAMPLES_END = 0.5
# Multiples of it, less their whole part, are spread evenly: so begins the first test of each module.
_GOLDEN = 0.618


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of models, races and pages."""
    models = parser.getgroup("models")
    models.addoption("--thorough", action="store_true", help="try all examples, mutants and repetitions, not a few")
    group = parser.getgroup("races")
    group.addoption("--race-minutes", type=float, default=0.0, help="how long the long race takes; 0 leaves it out")
    seed = random.SystemRandom().randrange(10**6)
    group.addoption(
        "--race-seed", default=str(seed), help="what a race decides: jobs, faults, kills; random if not given"
    )
    docs = parser.getgroup("docs")
    docs.addoption("--write-docs", action="store_true", help="write what commands show now into the pages of docs/")


def pytest_configure(config: pytest.Config) -> None:
    """Do once what else each worker would do: start what forks commands, and choose how much is tried."""
    thorough.choose(config)
    if getattr(config.option, "tx", None) and not hasattr(config, "workerinput"):
        forked.share()
        azurites.share(is_needed=thorough.is_whole())
    if hasattr(config, "workerinput"):
        config.option.race_seed = config.workerinput["race_seed"]
    if not config.getoption("--hypothesis-profile"):
        usual = settings.get_profile("long")
        settings.register_profile("usual", usual, max_examples=thorough.count(_EXAMPLES))
        settings.load_profile("usual")
        # Hypothesis reads all modules for constants to try, which takes each worker 2 s in a new clone.
        providers._get_local_constants = lambda: providers._local_constants
        # To try which characters UTF-8 has takes it 1.3 s.
        vars(charmap)["intervals_from_codec"] = _find_intervals


def _find_intervals(codec: str, others: Any = charmap.intervals_from_codec) -> Any:
    """Return the characters that a codec has, and those of them that it reads back as others."""
    if codec != "utf-8":
        return others(codec)
    return IntervalSet([(0, _SURROGATES[0] - 1), (_SURROGATES[-1] + 1, sys.maxunicode)]), IntervalSet([])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Fork the workers from one process."""
    forked_workers.prepare(config, specs)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what it cannot see itself."""
    thorough.tell(node.workerinput)
    node.workerinput["race_seed"] = node.config.getoption("--race-seed")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Print the seed, so that a race that failed can be run again, and how many answers are replayed."""
    files = sorted((DATA / "answers").glob("*.jsonl"))
    counts = ", ".join(f"{len(each.read_text(encoding='utf-8').splitlines())} {each.stem}" for each in files)
    return [f"races: --race-seed {config.getoption('--race-seed')}", f"recorded answers: {counts}"]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Keep the thousands of tests out of the search for garbage, which else takes longer the more of them there are.

    Search less often, too: a whole search for what each test leaves takes 5 % of the units' processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 100)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave out those cases of a table that other runs play."""
    yield
    if not is_hypothesis_test(metafunc.function):
        thorough.choose_cases(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that share a fixture of their module, or a Files emulator, on one worker: each would make another.

    So are the units of a module: to hand each of thousands to a worker takes longer than to run it.
    """
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.thorough)
    groups = {item: _find_group(item) for item in items}
    for item in items:
        group = groups[item]
        # pytest-xdist 3.8 groups by the end of an id, which it sets in a way that pytest 9.2 does not see any more.
        if group is not None and getattr(config.option, "loadgroup", False):
            item._id = coerce_node_id(f"{item.nodeid}@{group}")
            assert item.nodeid.endswith(f"@{group}")
    if getattr(config.option, "loadgroup", False):
        _spread(items, groups)


def _find_group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    if mark is not None:
        return str(mark.args[0])
    if not isinstance(item, pytest.Function):
        return None
    if "smb_emulator" in item.fixturenames:
        return "smb_emulator"
    if "files_connection_string" in item.fixturenames:
        return f"files {zlib.crc32(item.module.__name__.encode()) % _FILES}"
    shares = any(found[-1].scope == "module" for found in item._fixtureinfo.name2fixturedefs.values())
    return item.module.__name__ if shares or item.nodeid.startswith("tests/unit/") else None


def _spread(items: list[pytest.Item], groups: Mapping[pytest.Item, str | None]) -> None:
    """Mix what waits with what works, so that at any time there is work for the processors.

    The tests of a module are spread over the whole run, and so are the groups of a folder. The groups that wait begin
    one after the other in its first half. At its end are the quick units, which no worker is behind with.
    """
    trying = {item.path for item in items if item.get_closest_marker("thorough")}
    kinds: dict[tuple[str, float], list[pytest.Item]] = {}
    for item in items:
        group = groups[item]
        kind = item.path if group is None else item.path.parent
        end = _END if "unit" not in item.path.parts else _EXAMPLES_END if item.path in trying else 1.0
        kinds.setdefault((group if group in _WAITING else str(kind), end), []).append(item)
    places = {}
    for index, ((name, end), alike) in enumerate(kinds.items()):
        for number, item in enumerate(alike):
            if name in _WAITING:
                places[item] = _WAITING.index(name) / len(_WAITING) / 2
            elif name.endswith(".py"):
                places[item] = (number + index * _GOLDEN % 1) / len(alike) * end
            else:
                places[item] = number / len(alike) * end
    items.sort(key=places.__getitem__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Let no test end a later one by its handlers of signals."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) == before, "the test leaves its handler of SIGINT"


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """Run an Azurite in memory on free ports; taken from PATH or the user's cache, else installed first."""
    with azurites.fresh() as running:
        yield running


@pytest.fixture(scope="session")
def connection_string(azurite: Azurite) -> str:
    """Return the connection string of this run's Azurite."""
    return azurite.connection_string


@pytest.fixture(scope="session")
def azurite_script() -> Path:
    """Return the installed Azurite's script; installed first if need be."""
    return emulator_world.installation(azurite_install.ensure(Folders.of(os.environ).emulator, os.environ, print))


@pytest.fixture(scope="session")
def smb_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmbEmulator]:
    """Run a Files emulator with SMB; without Samba the test is skipped, but fails in CI."""
    with smb_emulator_process.run(tmp_path_factory.mktemp("files")) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, azurite_script: Path) -> Iterator[World]:
    """Return a private world for commands; whatever emulator it leaves in the background is stopped."""
    made = emulator_world.make(tmp_path, azurite_script)
    yield made
    background.stop(made.folder)


@pytest.fixture
def cli(tmp_path: Path, connection_string: str) -> CliWorld:
    """Return a private folder to run command lines in, against this run's Azurite."""
    return CliWorld(tmp_path, connection_string)


@pytest.fixture(scope="session")
def files_connection_string(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the Files emulator on a free port and return its connection string, which names no other service."""
    with files_world.running(tmp_path_factory.mktemp("files")) as found:
        yield found


@pytest.fixture
def files_cli(tmp_path: Path, files_connection_string: str) -> CliWorld:
    """Return a private folder to run command lines in, against this run's Files emulator."""
    return CliWorld(tmp_path, files_connection_string)


@pytest.fixture
def smb_cli(tmp_path: Path, smb_emulator: SmbEmulator) -> CliWorld:
    """Return a private folder to run command lines in, against this run's Files emulator with SMB."""
    return CliWorld(tmp_path, smb_emulator.connection_string, smb_emulator.environ)


@pytest.fixture
def offline(tmp_path: Path) -> CliWorld:
    """Return a private folder to run command lines in, without any account."""
    return CliWorld(tmp_path)
