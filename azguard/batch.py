"""Many lines in one process; what a command line is, is not known here.

Lines as they stand in a file: words of a shell, or JSON; what they say, and how they ended. And lines at work, a few at
a time: those of one address follow each other, all others run beside each other.

An address is a sequence of names, such as ``blob, site, a.json``. Two lines follow each other if the address of one is
that of the other, or is inside it: a blob is written when its container has been created.
"""

import codecs
import json
import re
import shlex
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple, Protocol, Self

from azguard import columns
from azguard.errors import OutcomeUnknown, UsageError
from azguard.folders import explain_unwritable
from azguard.frozen import frozen
from azguard.resources import pool
from azguard.resources.pool import DEFAULT_JOBS, FAILED, UNKNOWN, Done, PoolEnd

DONE = "done"

# Far more than a command line, with its stdin, is meant to have.
_LONGEST_LINE = 16 * 1024 * 1024
_KEYS = ("args", "stdin", "id")
_QUOTES = re.compile(r"['\"\\]")
# Half of a character, which JSON can spell and UTF-8 cannot.
_HALF = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile(r"[ \t\r\n]+")
#: So many lines are read beyond the oldest that has not ended: what waits, and what --ordered holds back, is bounded.
MOST_AHEAD = 10_000
Address = tuple[str, ...]


class TextLine(NamedTuple):
    """A line as it stands in the file."""

    #: Counted from 1, with those that say nothing.
    number: int
    content: bytes


@frozen
class Line:
    """What a line says."""

    number: int
    words: tuple[str, ...]
    #: What its command reads from stdin.
    stdin: str = ""
    #: The name that its writer gave it.
    id: str | None = None


@frozen
class LineEnd:
    """How a line ended."""

    #: The name that its writer gave it.
    id: str | None
    #: Its number in the file.
    line: int
    exit_code: int
    #: What its command showed; text where that is no JSON, and None where it showed nothing.
    result: Any = None
    #: The error object of its command; None where there was none.
    error: Mapping[str, Any] | None = None
    #: What its command told on stderr besides.
    messages: str = field(default="", metadata=columns.UNPRINTED)
    #: What is to be done once it is told.
    once_told: Sequence[Callable[[], object]] = field(default=(), metadata=columns.UNPRINTED)
    #: Its place among the lines that say something.
    position: int = field(default=0, metadata=columns.UNPRINTED)

    @property
    def outcome(self) -> str:
        """Return how it counts."""
        if self.exit_code == OutcomeUnknown.exit_code:
            return UNKNOWN
        return FAILED if self.exit_code else DONE

    @property
    def reason(self) -> str:
        """Return why it failed, in one line."""
        why = "" if self.error is None else f": {self.error['message']}"
        return f"line {self.line} ({self.exit_code}){why}"


@contextmanager
def keep(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield what can be read twice: the stream, or a temporary file with all that a pipe has.

    Raises:
        ConfigError: the temporary file cannot be written.
    """
    if stream.seekable():
        yield stream
        return
    with _copy(stream) as copy:
        yield copy


def _copy(stream: BinaryIO) -> BinaryIO:
    folder = Path(tempfile.gettempdir())
    with explain_unwritable(folder, reason="temporary_folder_fails"), ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile())
        # By lines: a terminal tells its end once, and a read of a block would wait for another one.
        copy.writelines(iter(lambda: stream.readline(_LONGEST_LINE), b""))
        copy.seek(0)
        stack.pop_all()
        return copy


def read(stream: BinaryIO) -> Iterator[TextLine]:
    """Yield the lines from here to the end that say something: no empty ones, and none that begin with ``#``.

    Raises:
        UsageError: a line is too long.
    """
    for number, content in enumerate(iter(lambda: stream.readline(_LONGEST_LINE + 1), b""), 1):
        if len(content) > _LONGEST_LINE:
            raise UsageError(f"longer than {_LONGEST_LINE:,} bytes").at_line(number)
        said = (content.removeprefix(codecs.BOM_UTF8) if number == 1 else content).strip()
        if said and not said.startswith(b"#"):
            yield TextLine(number, said)


def parse(line: TextLine) -> Line:
    """Parse a line: shell words, a JSON array or a JSON object.

    Raises:
        UsageError: it is none of the forms.
    """
    try:
        text = line.content.decode().strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"no UTF-8: {error.reason} at byte {error.start + 1}", reason="batch_line") from None
    try:
        said = json.loads(text, object_pairs_hook=_take_once) if text[0] in "[{" else _split(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"no JSON: {error.msg} at character {error.pos + 1}", reason="batch_line") from None
    except ValueError as error:
        raise UsageError(f"no command line: {error}", reason="batch_line") from None
    except RecursionError:
        raise UsageError("no JSON: it is nested too deeply", reason="batch_line") from None
    said = said if isinstance(said, dict) else {"args": said}
    _check(said)
    words = said["args"][1:] if said["args"][:1] == ["azguard"] else said["args"]
    return Line(line.number, tuple(words), said.get("stdin") or "", said.get("id"))


def _split(text: str) -> list[str]:
    """Return the words of a shell's line. ``shlex`` takes 60 µs, which a line without quotes does not need."""
    return shlex.split(text) if _QUOTES.search(text) else _BLANKS.split(text)


def _take_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, none of whose keys is given twice."""
    said = dict(pairs)
    if len(said) < len(pairs):
        raise UsageError("a key is given twice", reason="batch_line")
    return said


def _check(said: dict[str, object]) -> None:
    unknown = next((key for key in said if key not in _KEYS), None)
    if unknown is not None:
        raise UsageError(f"the key {unknown!r} means nothing here", reason="batch_line")
    args = said.get("args")
    if not isinstance(args, list) or not args or not all(isinstance(word, str) for word in args):
        raise UsageError('"args" is not a list of texts', reason="batch_line")
    for key in ("stdin", "id"):
        text = said.get(key)
        if not isinstance(text, str | None) or _HALF.search(text or ""):
            raise UsageError(f'"{key}" is not a text', reason="batch_line")


class PreparedLine(Protocol):
    """What a line is to do."""

    @property
    def addresses(self) -> Iterable[Address]:
        """Return the addresses that it names."""

    def run(self) -> LineEnd:
        """Do it and return how it ended; raise nothing."""


@dataclass(eq=False)
class OrderedJob:
    """A line that runs when those before it at its addresses have ended."""

    #: Counted from 0, without the lines that say nothing.
    position: int
    work: PreparedLine
    end: Callable[["OrderedJob", LineEnd], None]
    #: How many lines it waits for, and which lines wait for it.
    waits_for: int = 0
    followers: list["OrderedJob"] = field(default_factory=list)

    def run(self) -> Done:
        """Do it, and let those begin that waited for it."""
        ended = replace(self.work.run(), position=self.position)
        self.end(self, ended)
        return Done(f"line {ended.line}", ended.outcome, result=ended)


@dataclass
class _Place:
    """The lines at one address that have not ended: the last one of the address itself, and later ones inside it."""

    last: OrderedJob | None = None
    inside: set[OrderedJob] = field(default_factory=set)

    @property
    def jobs(self) -> set[OrderedJob]:
        """Return all of them."""
        return self.inside if self.last is None else {*self.inside, self.last}


class OrderedJobs(Iterator[OrderedJob]):
    """The jobs of lines, each when it may begin. One thread at a time asks for the next one.

    None begins after one whose end ``is_last``.
    """

    def __init__(self, works: Iterable[PreparedLine], is_last: Callable[[LineEnd], bool]) -> None:
        self._works = enumerate(works)
        self._is_last = is_last
        self._places: dict[Address, _Place] = {}
        self._lock = threading.Lock()
        #: Those that have not ended, the oldest first.
        self._open: dict[int, OrderedJob] = {}
        self._ready = deque[OrderedJob]()
        #: For each line that has ended, the lines that waited for it alone; written in C, so that a signal may stop it.
        self._news = SimpleQueue[list[OrderedJob]]()
        self._newest = 0
        self._is_read = self._is_stopped = False

    def stop(self) -> None:
        """Let no other line begin."""
        self._is_stopped = True
        self._news.put([])

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> OrderedJob:
        while not self._is_stopped:
            with suppress(Empty):
                while True:
                    self._ready += self._news.get_nowait()
            if self._ready:
                return self._ready.popleft()
            if not self._may_read():
                if not self._open:
                    break
                self._ready += self._news.get()
            elif (job := self._read()) is not None and not job.waits_for:
                return job
        raise StopIteration

    def _may_read(self) -> bool:
        with self._lock:
            return not self._is_read and self._newest - next(iter(self._open), self._newest) < MOST_AHEAD

    def _read(self) -> OrderedJob | None:
        position, work = next(self._works, (0, None))
        if work is None:
            self._is_read = True
            return None
        job = OrderedJob(position, work, self._end)
        with self._lock:
            self._open[position] = job
            self._newest = position
            before = self._take_places(job)
            job.waits_for = len(before)
            for each in before:
                each.followers.append(job)
        return job

    def _take_places(self, job: OrderedJob) -> set[OrderedJob]:
        """Note where a job is at work, and return those that it has to wait for."""
        before: set[OrderedJob] = set()
        for address in job.work.addresses:
            before |= self._places.get(address, _Place()).jobs
            self._places[address] = _Place(job)
            for length in range(1, len(address)):
                place = self._places.setdefault(address[:length], _Place())
                before |= set() if place.last is None else {place.last}
                place.inside.add(job)
        return before - {job}

    def _end(self, job: OrderedJob, ended: LineEnd) -> None:
        if self._is_last(ended):
            self.stop()
        with self._lock:
            del self._open[job.position]
            for address in job.work.addresses:
                for length in range(1, len(address) + 1):
                    self._leave(address[:length], job)
            for follower in job.followers:
                follower.waits_for -= 1
            self._news.put([each for each in job.followers if not each.waits_for])
            # A thread that waits for a job still has its last one, and with it would have all that came after.
            job.followers.clear()

    def _leave(self, address: Address, job: OrderedJob) -> None:
        place = self._places.get(address)
        if place is None:
            return
        place.inside.discard(job)
        if place.last is job:
            place.last = None
        if not place.jobs:
            del self._places[address]


@frozen
class BatchSettings:
    """How lines are run."""

    jobs: int = DEFAULT_JOBS
    #: Whether the ends are told in the order of the lines.
    is_ordered: bool = False
    stops_on_error: bool = False


def run(
    works: Iterable[PreparedLine], settings: BatchSettings, tell: Callable[[Done], None], stop: Callable[[], None]
) -> PoolEnd:
    """Run each line when it may begin, and tell how it ended; see ``pool.run_phases``."""
    jobs = OrderedJobs(works, lambda ended: settings.stops_on_error and ended.outcome != DONE)
    sequence = _Sequence(tell)

    def stop_all() -> None:
        jobs.stop()
        stop()

    show = sequence.add if settings.is_ordered else tell
    found = pool.run_phases([jobs], settings.jobs, show, stop_all, is_prompt=True)
    sequence.finish()
    return found


class _Sequence:
    """Tells ends in the order of their lines."""

    def __init__(self, tell: Callable[[Done], None]) -> None:
        self._tell = tell
        self._next = 0
        #: Those that came before one of an earlier line.
        self._early: dict[int, Done] = {}

    def add(self, done: Done) -> None:
        """Tell an end once all before it are told."""
        self._early[done.result.position] = done
        while self._next in self._early:
            self._tell(self._early.pop(self._next))
            self._next += 1

    def finish(self) -> None:
        """Tell those that are left: lines before them never ended."""
        for position in sorted(self._early):
            self._tell(self._early.pop(position))
