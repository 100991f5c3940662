"""The pages that users read, and what in them can be run: the README and every page of docs/.

A block ``sh`` or ``console`` runs, line by line, in the order of the page. In ``console`` a line that begins with
``$ `` is typed and the lines below it are what the terminal then shows; a line ``…`` stands for any number of them.
A remark ``# exit 42`` states the exit status, which is 0 without it. What a reader does not see is in comments:

``<!-- run: COMMAND -->``      runs too, to prepare what follows
``<!-- file: NAME -->``        the block below it is put into a file of that name
``<!-- not run: REASON -->``   the block below it needs what a test has not
``<!-- own emulator -->``      the page starts its own emulator; the others find one in the environment
``<!-- try -->``, ``<!-- test -->``  the two set-up commands of the README, which ``.ci/run`` runs
"""

import getpass
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import REPOSITORY

_BLOCK = re.compile(r"^(?P<comment><!--[^\n]*-->\n)?```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_PREPARE = re.compile(r"^<!-- run: (?P<command>.*?) -->$", re.MULTILINE)
_FILE = re.compile(r"<!-- file: (\S+) -->")
_SKIPPED = re.compile(r"<!-- (not run: .+|try|test) -->")
_RUNNABLE = ("sh", "console")
_OPENS, _CLOSES = re.compile(r"(case|if|for|while) "), re.compile(r"(esac|fi|done)\b")
_PROMPT = "$ "


@dataclass(frozen=True)
class Step:
    """A command of a page, or a file to write."""

    #: The command as the page has it, or the name of the file.
    text: str
    #: The number of the line that it begins on.
    line: int
    #: What the page says that the terminal shows; None if it does not say.
    shown: tuple[str, ...] | None = None
    #: The content, if this is a file.
    content: str | None = None

    @property
    def status(self) -> int:
        """Return the exit status that the page states."""
        remark = re.search(r"# exit (\d+)", self.text)
        return int(remark[1]) if remark else 0


@dataclass(frozen=True)
class Page:
    """One file in Markdown."""

    path: Path

    @property
    def name(self) -> str:
        """Return its name, such as ``docs/locks.md``."""
        return str(self.path.relative_to(REPOSITORY))

    @property
    def text(self) -> str:
        """Return the whole page."""
        return self.path.read_text(encoding="utf-8")

    @property
    def has_own_emulator(self) -> bool:
        """Return whether its commands start an emulator themselves."""
        return "<!-- own emulator -->" in self.text

    @property
    def is_about_files(self) -> bool:
        """Return whether its commands are for the Files emulator alone."""
        return self.path.name == "files.md"

    @property
    def is_about_files_too(self) -> bool:
        """Return whether its commands are for the Files emulator beside Azurite."""
        return self.path.name in ("doctor.md", "trees.md")

    @property
    def is_about_smb(self) -> bool:
        """Return whether its commands are for the Files emulator with SMB."""
        return self.path.name == "smb-locks.md"

    @property
    def steps(self) -> list[Step]:
        """Return what to run, in the order of the page."""
        found = [*self._prepared(), *self._blocks()]
        return sorted(found, key=lambda step: step.line)

    def block(self, marker: str) -> str:
        """Return the code below a marker."""
        found = re.search(rf"^<!-- {marker} -->\n```sh\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)
        assert found is not None, f"{self.name} has no <!-- {marker} -->"
        return found[1]

    def table(self, marker: str) -> list[str]:
        """Return the lines of the table below a marker."""
        found = re.search(rf"^<!-- {marker} -->\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        assert found is not None, f"{self.name} has no <!-- {marker} -->"
        return found[1].splitlines()

    def _prepared(self) -> Iterator[Step]:
        for each in _PREPARE.finditer(self.text):
            yield Step(each["command"], self._line(each.start()))

    def _blocks(self) -> Iterator[Step]:
        for each in _BLOCK.finditer(self.text):
            comment, line = each["comment"] or "", self._line(each.start("body"))
            if name := _FILE.match(comment):
                yield Step(name[1], line, content=each["body"])
            elif each["language"] in _RUNNABLE and not _SKIPPED.match(comment):
                lines = each["body"].splitlines()
                yield from (_console if each["language"] == "console" else _plain)(lines, line)

    def _line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def _plain(lines: list[str], first: int) -> Iterator[Step]:
    """Yield the commands of a block ``sh``; a backslash or an open ``case`` goes on in the next line."""
    begun: list[str] = []
    for number, line in enumerate(lines, first):
        begun.append(line)
        opened = sum(bool(_OPENS.match(each)) - bool(_CLOSES.match(each)) for each in begun)
        if not opened and not line.endswith("\\"):
            text = "\n".join(begun)
            if text.strip() and not text.startswith("#"):
                yield Step(text, number - len(begun) + 1)
            begun = []


def _console(lines: list[str], first: int) -> Iterator[Step]:
    """Yield the commands of a block ``console``, each with what it shows."""
    starts = [index for index, line in enumerate(lines) if line.startswith(_PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Step(lines[start].removeprefix(_PROMPT), first + start, tuple(lines[start + 1 : end]))


def every_page() -> list[Page]:
    """Return the README and the pages of docs/."""
    return [Page(REPOSITORY / "README.md"), *map(Page, sorted((REPOSITORY / "docs").glob("*.md")))]


def replace_shown(page: Page, step: Step, shown: list[str]) -> None:
    """Write what the terminal shows now into a page. Later steps must be replaced first: line numbers move."""
    assert step.shown is not None
    lines = page.text.split("\n")
    lines[step.line : step.line + len(step.shown)] = [publishable(line) for line in shown]
    page.path.write_text("\n".join(lines), encoding="utf-8")


def publishable(line: str) -> str:
    """Return a line as a page may have it: without the names of this machine and of its folders."""
    here = f"{getpass.getuser()}@{socket.gethostname()}"
    return re.sub(r"/\S+/\.cache/", "~/.cache/azguard/", line).replace(here, "ops@build-7").rstrip()


# What differs from run to run, and what stands for it. The order matters.
_MASKS = (
    (r"""W/\\?"datetime'[^']*'\\?\"""", "ETAG"),
    (r"0x[0-9A-F]+", "ETAG"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\b[0-9a-f]{24,64}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00| UTC)?", "TIME"),
    (r"127\.0\.0\.1:\d+", "HOST"),
    (r"\b\d+(\.\d+)? (s|ms|seconds?)\b", "DURATION"),
    (r"\b\d+(\.\d+)?s\b", "DURATION"),
    (r"\bpid \d+", "pid N"),
    (r"(\bhandle|--handle-id) \d+", "handle N"),
    (r"\S+@\S+( \(?pid N\)?)?", "OWNER"),
    (r"~?/\S+/(?=[^/\s]+)", "DIR/"),
    (r"\d{8}T\d{6}-[0-9a-f]{8}", "TIME-ID"),
    (r"[─━]+", "-"),
    (r" {2,}", "  "),
)


def masked(line: str) -> str:
    """Return a line without what differs from run to run: times, ETags, ids, ports, owners, widths of columns."""
    for pattern, stands_for in _MASKS:
        line = re.sub(pattern, stands_for, line)
    return line.rstrip()


def agrees(stated: tuple[str, ...], shown: list[str]) -> bool:
    """Return whether a terminal shows what a page says; ``…`` stands for any number of lines."""
    pattern = "".join(r"(.*\n)*?" if line.strip() == "…" else f"{re.escape(masked(line))}\n" for line in stated)
    return re.fullmatch(pattern, "".join(f"{masked(line)}\n" for line in shown)) is not None
