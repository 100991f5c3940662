"""A folder to type in, and an account with a resource of each kind; made anew where a line has changed it."""

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azguard.wire import listeners
from tests.pairs.account import SERVICES, Account
from tests.pairs.samples import CONTENT, LINES, PAGE
from tests.support.cli_world import CliWorld, Ran

_SCOPE = "pairs"
_FILES = {
    "in.json": CONTENT,
    "page.json": PAGE,
    "policies.json": b'{"policies": {}}',
    "ids.txt": b"AAAAAAAAAAAAAAAAAAAAAA==\n",
    "lines.txt": LINES,
    "patch.json": b'[{"op": "add", "path": "/n", "value": 2}]',
    "transaction.jsonl": b'{"op": "insert", "address": "Pairs/p/made", "entity": {"n": 1}}\n',
    "events.jsonl": b"",
    "last.jsonl": b"",
}
#: The lines that make each resource, and read it, so that this scope guards its writes by it. The first is made first.
_MADE = {
    "container:pairs": ("container create pairs", "container metadata get pairs", "container acl get pairs"),
    "blob:pairs/source.json": ("blob put pairs/source.json", "blob snapshot pairs/source.json"),
    "blob:pairs/a.json": ("blob put pairs/a.json --content-type application/json",),
    "blob:pairs/log": ("blob append pairs/log --create",),
    "blob:pairs/page": ("blob page put pairs/page --create 512 -f page.json",),
    "blob:pairs/held": ("blob put pairs/held", "lease acquire blob:pairs/held --infinite"),
    "container:locks": ("container create locks",),
    "blob:locks/held": ("lock hold held --sticky --reason pairs --no-log",),
    "table:Pairs": ("table create Pairs", "table acl get Pairs", "entity insert Pairs/p/r n=1"),
    "queue:pairs-poison": ("queue create pairs-poison", "message put pairs-poison --content text"),
    "queue:pairs": (
        "queue create pairs", "queue metadata get pairs", "queue acl get pairs", "message put pairs --content text",
        "message get pairs --visibility-timeout 1h", "message put pairs --content text",
    ),
    "share:pairs": (
        "share create pairs", "share acl get pairs", "dir create pairs/dir", "file put pairs/source.json",
        "file put pairs/a.json", "file show pairs/a.json", "share show pairs", "dir metadata get pairs/dir",
    ),
}  # fmt: skip
# What a table and a share have in them.
_INNER = ("entity:Pairs/p/r", "dir:pairs/dir", "file:pairs/a.json", "file:pairs/source.json")
_SERVICE = {"container": "blob", "blob": "blob", "table": "table", "queue": "queue", "share": "file"}
# Folders that are as they were before each line.
_KEPT = (".cache", ".config")
_LONGEST_END_SECONDS = 10.0
_PAUSE_SECONDS = 0.02
_READS = ("GET", "HEAD")


@dataclass
class Requests:
    """The requests of a line."""

    count: int = 0
    #: The ports that were asked to change something.
    written: set[int] = field(default_factory=set)

    def hear(self, text: str) -> None:
        """Hear of a request."""
        self.count += 1
        method, url = text.split(" ")[:2]
        # To receive messages hides them.
        is_read = method in _READS and ("/messages?" not in url or "peekonly" in url)
        if not is_read and (port := re.match(r"http://[^:/]*:(\d+)", url)):
            self.written.add(int(port[1]))


@dataclass
class Stage:
    """Where lines are typed."""

    cli: CliWorld
    account: Account
    #: What the stage knows: ``{message}`` and the like in lines.
    known: dict[str, str] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)
    _services: set[str] = field(default_factory=lambda: set(SERVICES))

    def run(self, words: Iterable[str], stdin: bytes = CONTENT, *, is_heard: bool = True) -> tuple[Ran, Requests]:
        """Run a line; one that is not heard may have changed anything."""
        requests = Requests()
        with listeners.listen_to_requests(requests.hear):
            ran = self.cli.call(*words, stdin=stdin, scope=_SCOPE)
        written = {name for name, port in self.account.ports.items() if port in requests.written}
        self._services |= written if is_heard else set(SERVICES)
        return ran, requests

    def fill(self, words: Iterable[str]) -> list[str]:
        """Return words with what the stage knows in them."""
        return [re.sub(r"\{(\w+)\}", lambda found: self.known.get(found[1], found[0]), word) for word in words]

    def hide(self, line: str) -> str:
        """Return a line with names instead of what the stage knows."""
        for name in ("connection", "sas", "key"):
            line = line.replace(self.known[name], f"{{{name}}}")
        return line

    def find_changes(self) -> list[str]:
        """Return what is not as it was when the stage was set."""
        now = self.look()
        before = {each: words for each, words in self._before.items() if _find_service(each) in self._services}
        return sorted(each for each in {*now, *before} if now.get(each) != before.get(each))

    def look(self) -> dict[str, str]:
        """Return what the services have that were written to since the stage was reset."""
        return {address: words for each in self._services for address, words in self.account.look(each).items()}

    def list_written(self, hidden: Mapping[str, Iterable[str]]) -> list[str]:
        """Return those resources of services whose service was written to."""
        return [address for service, addresses in hidden.items() if service in self._services for address in addresses]

    def release(self) -> None:
        """End the processes that hold locks for this scope, and wait until they have ended."""
        pids = [json.loads(path.read_text()).get("pid") for path in (self._cache / "holds").glob("*.json")]
        self.cli.call("lock", "release", scope=_SCOPE)
        until = time.monotonic() + _LONGEST_END_SECONDS
        while any(pid and _is_running(pid) for pid in pids) and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)  # the system tells the end of another's child by no signal

    def reset(self, changed: Iterable[str] = ()) -> None:
        """Make all as it is to be when a line is typed; ``changed`` is what the lines before have changed."""
        self._restore_folder()
        if changed := set(changed):
            self._make(self._list_within(changed))
            shutil.rmtree(self._kept, ignore_errors=True)
            for name in _KEPT:
                shutil.copytree(self.cli.root / name, self._kept / name)
        self._services.clear()

    def make_all(self) -> None:
        """Make all that is missing."""
        self.known |= {
            "connection": self.account.connection_string,
            "key": self.account.settings["AccountKey"],
            "sas": self.account.sas,
        }
        self.reset(_MADE)

    @property
    def _cache(self) -> Path:
        return self.cli.root / ".cache"

    @property
    def _kept(self) -> Path:
        return self.cli.root.parent / "kept"

    def _restore_folder(self) -> None:
        for path in self.cli.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in _KEPT:
            if (self._kept / name).exists():
                shutil.copytree(self._kept / name, self.cli.root / name)
        for name, content in _FILES.items():
            (self.cli.root / name).write_bytes(content)
        # What is put with --recursive, where the first word is a folder.
        (self.cli.root / "pairs" / "a.json").mkdir(parents=True)
        (self.cli.root / "pairs" / "a.json" / "n.json").write_bytes(CONTENT)
        (self.cli.root / "cache.jsonl").write_text(self.known.get("cache", ""))

    @staticmethod
    def _list_within(changed: set[str]) -> set[str]:
        """Return what changed, and what goes with it: the blobs of a container."""
        gone = {each.partition(":")[2] for each in changed if each.startswith("container:")}
        return changed | {each for each in _MADE if each.startswith("blob:") and each[5:].partition("/")[0] in gone}

    def _make(self, changed: set[str]) -> None:
        for address in sorted(changed, key=lambda each: not each.startswith("container:")):
            self.account.delete(address)
        self.cli.call("cache", "forget", *changed, *_INNER, scope=_SCOPE)
        if "blob:locks/held" in changed:
            shutil.rmtree(self._cache / "holds", ignore_errors=True)
        for address in (each for each in _MADE if each in changed):
            for line in _MADE[address]:
                ran = self.cli.call(*line.split(), "-o", "json", stdin=CONTENT, scope=_SCOPE)
                assert ran.code == 0, f"{line}: {ran.err}"
                if line.startswith("message get"):
                    self.known["message"] = json.loads(ran.out)[0]["id"]
        for service in {_find_service(each) for each in changed}:
            self._before = {each: words for each, words in self._before.items() if _find_service(each) != service}
            self._before |= self.account.look(service)
        self.cli.call("profile", "set", "pairs", "--emulator", scope=_SCOPE)
        self.known["cache"] = self.cli.call("cache", "export", scope=_SCOPE).out


def _is_running(pid: int) -> bool:
    """Return whether a process runs: of one that has ended and that nothing asked for, the line is empty."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def _find_service(address: str) -> str:
    return _SERVICE[address.partition(":")[0]]


def join(blobs: str, files: str) -> str:
    """Return the connection string of one account for both: all services but files, and files alone."""
    return ";FileEndpoint=".join((blobs, files.rpartition("FileEndpoint=")[2]))


@contextmanager
def open_stage(root: Path, connection_string: str) -> Iterator[Stage]:
    """Open a stage in a folder, over an account with all four services."""
    work = root / "work"
    work.mkdir()
    cli = CliWorld(work, connection_string, extra={"EDITOR": "sed -i s/1/2/"})
    stage = Stage(cli, Account(connection_string))
    stage.make_all()
    yield stage
