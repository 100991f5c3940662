"""Random command lines while answers get lost, and what each left is looked at past the proxies.

    python -m tests.faults.histories [--lines N] [--seed N] [--share SHARE]

Nobody else writes. So each line is held to its exit status: after 0 its change is there exactly once, after a refusal
it is not, and never comes; after 74 both may be.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azguard.emulators.azurite_process import Azurite
from tests.faults.rules import at_random
from tests.support import azurites, files_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault

#: Dropped, doubled, late and cut; those that wait for a time-out are rare, since each takes a second.
WEIGHTS = {
    Fault.DROP: 4.0,
    Fault.FAIL_AFTER: 2.0,
    Fault.HALF: 4.0,
    Fault.REPLAYED: 4.0,
    Fault.RESET: 2.0,
    Fault.ZOMBIE: 0.5,
    Fault.LATE: 0.5,
}
_PATIENT = {"AZGUARD_WRITE_TIMEOUT": "1"}
_UNKNOWN = 74
_REFUSED = (2, 34, 42, 44, 45, 49, 53, 65, 75)
_PORT = re.compile(r"(Blob|Table|File)Endpoint=http://127\.0\.0\.1:(\d+)")


@dataclass
class Kept:
    """One resource that every line of a kind adds a mark of its own to."""

    #: The command line that adds a mark.
    add: Callable[[str], tuple[str, ...]]
    #: The one that reads the resource, and how the marks are found in what it prints.
    read: tuple[str, ...]
    find: Callable[[str], list[str]] = str.split
    done: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def judge(self, found: Sequence[str]) -> str | None:
        """Return what is wrong with the marks that are there; None if they are as the statuses say."""
        counted = Counter(found)
        if lost := [mark for mark in self.done if counted[mark] == 0]:
            return f"lost: {lost}"
        if doubled := [mark for mark, times in counted.items() if times > 1]:
            return f"doubled: {doubled}"
        refused = set(found) - {*self.done, *self.unknown}
        return f"refused, and there: {sorted(refused)}" if refused else None


def list_kept(blobs: str, table: str, share: str) -> list[Kept]:
    """Return the resources of a history."""
    entity = f"entity:{table}/p/r"
    return [
        Kept(
            lambda mark: ("safe-update", f"blob:{blobs}/list", "--append-line", mark),
            ("blob", "get", f"{blobs}/list"),
        ),
        Kept(
            lambda mark: ("safe-update", f"blob:{blobs}/leased", "--append-line", mark, "--guard", "lease"),
            ("blob", "get", f"{blobs}/leased"),
        ),
        Kept(
            lambda mark: ("safe-update", f"blob:{blobs}/keyed", "--append-line", mark, "--op-id", mark),
            ("blob", "get", f"{blobs}/keyed"),
        ),
        Kept(lambda mark: ("blob", "append", f"{blobs}/log", "--line", mark), ("blob", "get", f"{blobs}/log")),
        Kept(lambda mark: ("blob", "put", f"{blobs}/each/{mark}", "--content", mark), *_listed(blobs, "each/")),
        Kept(lambda mark: ("safe-update", entity, "--set", f"{mark}=1"), *_properties(table, "r")),
        Kept(
            lambda mark: ("safe-update", f"entity:{table}/p/l", "--set", f"{mark}=1", "--guard", "ledger"),
            *_properties(table, "l"),
        ),
        Kept(lambda mark: ("entity", "insert", f"{table}/rows/{mark}", "n=1"), *_rows(table)),
        Kept(
            lambda mark: ("safe-update", f"file:{share}/list", "--append-line", mark), ("file", "get", f"{share}/list")
        ),
    ]


def _listed(blobs: str, prefix: str) -> tuple[tuple[str, ...], Callable[[str], list[str]]]:
    words = ("blob", "list", blobs, "--prefix", prefix, "-o", "json")
    return words, lambda text: [each["name"].removeprefix(prefix) for each in json.loads(text)]


def _properties(table: str, row: str) -> tuple[tuple[str, ...], Callable[[str], list[str]]]:
    words = ("entity", "get", f"{table}/p/{row}", "-o", "json")
    return words, lambda text: [name for name in json.loads(text) if re.fullmatch(r"m\d+", name)]


def _rows(table: str) -> tuple[tuple[str, ...], Callable[[str], list[str]]]:
    words = ("entity", "query", table, "--filter", "PartitionKey eq 'rows'", "-o", "json")
    return words, lambda text: [json.loads(line)["RowKey"] for line in text.splitlines()]


@dataclass
class History:
    """Lines that were typed one after the other, and what they left."""

    beside: CliWorld
    behind: CliWorld
    kept: list[Kept]
    chance: random.Random
    statuses: Counter[int] = field(default_factory=Counter)
    _marks: int = 0

    def step(self) -> str | None:
        """Type one line, or one of before again that has a key; return what is wrong with what it left."""
        self._marks += 1
        kept, mark = self.chance.choice(self.kept), f"m{self._marks}"
        is_again = "--op-id" in kept.add(mark) and kept.done and self.chance.random() < 0.5
        mark = self.chance.choice(kept.done) if is_again else mark
        ran = self.behind.call(*kept.add(mark), "-o", "none", env=_PATIENT)
        self.statuses[ran.code] += 1
        if ran.code == 0 and not is_again:
            kept.done.append(mark)
        elif ran.code == _UNKNOWN:
            kept.unknown.append(mark)
        elif ran.code not in (0, *_REFUSED):
            return f"{ran.words}: {ran.code} {ran.err}"
        wrong = kept.judge(kept.find(self._look(kept).out))
        return None if wrong is None else f"{ran.words}: {ran.code}, {wrong}\n{ran.err}"

    def judge_all(self) -> list[str]:
        """Return what is wrong with the resources at the end, when all that was late has come."""
        found = ((kept, kept.judge(kept.find(self._look(kept).out))) for kept in self.kept)
        return [f"{' '.join(kept.read)}: {wrong}" for kept, wrong in found if wrong is not None]

    def _look(self, kept: Kept) -> Ran:
        ran = self.beside.call(*kept.read)
        assert ran.code == 0, ran.err
        return ran


@contextmanager
def begin(folder: Path, azurite: Azurite, files: str, seed: int, share: float) -> Iterator[History]:
    """Make the resources of a history past the proxies, and run a proxy before each service."""
    text = f"{azurite.connection_string.rstrip(';')};{files[files.index('FileEndpoint') :]}"
    folder.mkdir(exist_ok=True)
    beside = CliWorld(folder, text).with_cache()
    blobs, table, shared = beside.container(), f"t{seed}x{random.randrange(10**9)}", f"s{random.randrange(10**9)}"
    for words in (
        ("table", "create", table),
        ("share", "create", shared),
        *(("blob", "put", f"{blobs}/{name}", "--content", "\n") for name in ("list", "leased", "keyed")),
        ("blob", "append", f"{blobs}/log", "--content", "\n", "--create"),
        *(("entity", "insert", f"{table}/p/{row}", "n=1") for row in ("r", "l")),
        ("file", "put", f"{shared}/list", "--content", "\n"),
    ):
        ran = beside.call(*words, scope="history")
        assert ran.code == 0, ran.err
    with ExitStack() as stack:

        def pass_by(found: re.Match[str]) -> str:
            decide = at_random(seed, share, WEIGHTS)
            port = stack.enter_context(proxy.running(int(found[2]), decide)).port
            return f"{found[1]}Endpoint=http://127.0.0.1:{port}"

        behind = CliWorld(folder, _PORT.sub(pass_by, text), beside.extra)
        yield History(beside, behind, list_kept(blobs, table, shared), random.Random(seed))


def main() -> None:
    """Type random lines, and print the statuses, or the first line that left what its status denies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.3)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        azurites.fresh() as azurite,
        files_world.running(Path(name, "files")) as files,
        begin(Path(name, "cli"), azurite, files, asked.seed, asked.share) as history,
    ):
        wrong = next(filter(None, (history.step() for _ in range(asked.lines))), None)
        wrongs = [wrong] if wrong else history.judge_all()
        told: Mapping[int, int] = dict(sorted(history.statuses.items()))
    sys.stdout.write("".join(f"{each}\n" for each in wrongs) or f"{asked.lines} lines, by exit status: {told}\n")
    sys.exit(bool(wrongs))


if __name__ == "__main__":
    main()
