"""An account with a resource of each kind, and a folder to type in; made anew where a line changed it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azguard.accounts import transport
from tests.pairs.described import CONTENT
from tests.support.cli_world import CliWorld, Ran

_FILES = {"in.json": CONTENT}
#: What makes each resource, and what shows whether it is there as it was; a message is hidden and shown by time alone.
_MADE = (
    ("container create pairs", "container show pairs"),
    ("blob put pairs/source.json --content-type application/json", "blob show pairs/source.json"),
    ("blob put pairs/a.json --content-type application/json", "blob show pairs/a.json"),
    ("table create Pairs", "table list --prefix Pairs"),
    ("entity insert Pairs/p/r n=1", "entity get Pairs/p/r"),
    ("queue create pairs", "queue metadata get pairs"),
    ("queue create pairs-poison", "queue metadata get pairs-poison"),
    ("message put pairs --content text", "queue exists pairs"),
    ("share create pairs", "share show pairs"),
    ("file put pairs/source.json", "file show pairs/source.json"),
    ("file put pairs/a.json", "file show pairs/a.json"),
)


@dataclass
class Stage:
    """Where lines are typed."""

    cli: CliWorld
    requests: int = 0
    _before: dict[str, str] = field(default_factory=dict)

    def run(self, words: list[str]) -> Ran:
        """Run a line, and count its requests."""
        self.requests = 0
        with transport.listen_to_requests(self._count):
            return self.cli.call(*words, stdin=CONTENT, scope="pairs")

    def _count(self, _text: str) -> None:
        self.requests += 1

    def prepare(self) -> None:
        """Make what a line before has changed or deleted, and read it, so that this scope guards its writes by it."""
        for name, content in _FILES.items():
            (self.cli.root / name).write_bytes(content)
        for make, show in _MADE:
            if show in self._before and self._show(show) == self._before[show]:
                continue
            self._make(make)
            self._before[show] = self._show(show)

    def find_changes(self) -> list[str]:
        """Return what is not as it was when the line was typed."""
        return [show for show, before in self._before.items() if self._show(show) != before]

    def _make(self, line: str) -> None:
        noun, verb, address, *rest = line.split()
        if self.cli.call(*line.split(), *self._confirm(verb), stdin=CONTENT, scope="pairs").code in (0, 45):
            return
        self.cli.call("lease", "break", f"{noun}:{address}", "--yes", "--lease-break-period", "0", scope="pairs")
        self.cli.call(noun, "delete", address, "--last-writer-wins", scope="pairs")
        self.cli.call(noun, verb, address, *rest, stdin=CONTENT, scope="pairs")

    @staticmethod
    def _confirm(verb: str) -> list[str]:
        return ["--last-writer-wins"] if verb == "put" else []

    def _show(self, line: str) -> str:
        ran = self.cli.call(*line.split(), "-o", "json", scope="pairs")
        return ran.out if ran.code == 0 else f"exit {ran.code}"


@contextmanager
def open_stage(root: Path, connection_string: str) -> Iterator[Stage]:
    """Open a stage in a folder, over an account with all four services."""
    stage = Stage(CliWorld(root, connection_string))
    stage.prepare()
    yield stage
