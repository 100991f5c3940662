"""``azguard batch``: many command lines in one process, each in a thread, as if each were a process of its own.

A line's own are its streams, options, conditions, deadline, warnings and exit status. All lines share the environment,
the working folder, the handlers of signals, the caches of Python's functions, the list of those who listen to requests,
the trace, and what ``SharedState`` keeps: accounts, with their login and their connections, and the database of the
cache.
"""

import gc
import io
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

from azguard.address import Kind
from azguard.batch import Address, BatchSettings, Line, LineEnd, TextLine, keep, parse, read, run
from azguard.cli import errors, signals
from azguard.cli.context import Environment
from azguard.cli.errors import CommandMissing, Facts, SharedState
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import choice, whole
from azguard.cli.output.results import Output
from azguard.cli.output.trees import Lines
from azguard.cli.parsing.rows import flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked
from azguard.errors import AzguardError, Partial, UsageError
from azguard.frozen import frozen
from azguard.requests import pool
from azguard.requests.pool import Done, StoppableClock
from azguard.times import say_count

if TYPE_CHECKING:
    from azguard.cli.parsing.parser import ReadyCommand
    from azguard.requests.pool import PoolEnd


# Commands that cannot run beside others in one process, besides those that run a command of the user's.
_ALONE = {
    "batch": "its lines belong into this one",
    "edit": "it needs a terminal",
    "demo": "it needs a terminal",
    "lock hold": "it leaves a process behind",
    "emulator": "it starts and stops servers",
}

# So many lines are understood once; all others twice, because they would not fit the memory.
_MOST_READY = 1_000
_MOST_READY_CHARACTERS = 4 * 1024 * 1024

# Each line leaves some 40 objects that refer to each other. With the threshold of a short command, thousands of lines
# would wait for the collector, and lines that it finds at work would wait for its third generation.
_OBJECTS_BEFORE_COLLECTING = 5_000

_NAMES = ("stdin", "stdout", "stderr")
# A thread that a line starts has none, and tells on those of the process.
_streams: ContextVar[Mapping[str, io.TextIOWrapper]] = ContextVar("streams")
# These options of the batch hold for each line that does not say otherwise.
_NOT_PASSED_ON = ("output", "query", "verbose", "debug")
# What is the process's, and what would not be JSON.
_NOT_IN_A_LINE = ("verbose", "debug", "watch")

app = Group("Many command lines in one process.")


@app.command(
    spec=common.remote("each line has conditions of its own"),
    rules=(
        checked("--file", "each line is a command that can run beside others", "batch.require_runnable"),
        checked("--dry-run", "each line is understood", "batch.tell_checks"),
    ),
)
def batch(
    env: Environment,
    *,
    file: Annotated[
        str | None, option("--file, -f", "FILE|-", "Read the lines from this file, not from stdin.")
    ] = None,
    jobs: Annotated[int, option("--jobs", "N", "Run N lines at a time.", whole(1, pool.MOST_JOBS))] = pool.DEFAULT_JOBS,
    ordered: Annotated[bool, flag("--ordered", "Show the results in the order of the lines.")] = False,
    stop_on_error: Annotated[bool, flag("--stop-on-error", "Begin no other line after one that failed.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Check every line, and send nothing.")] = False,
    output: Annotated[str, option("--output, -o", "json|none", "Choose the format.", choice)] = "json",
) -> None:
    """Run many command lines in one process, with one login and one set of connections.

    A line is words as in a shell: blob put site/a.json -f a.json --etag '"0x8D…"'. It can also be a JSON array of these
    words, or a JSON object: {"args": [...], "stdin": "...", "id": "..."}. No variable and no * is expanded. Empty lines
    and lines that begin with # are left out.

    All lines are checked before the first one runs. If azguard does not understand one, it sends nothing, and the exit
    status is 2.

    Each line has an exit status, a scope and a guard of its own, as if it were a process of its own. Options of batch
    hold for all lines: the account, --scope, --timeout and --quiet. A line can give another value.

    Lines on the same address run in their order. So do those on a container and on a blob in it. All others run at the
    same time, N at a time. A line without an address waits for no other line.

    stdout has a JSON object for each line, as soon as it ends: id, line, exit_code, result, error. The exit status is
    0, or 20 if a line failed. Ctrl-C lets no other line begin, and waits for those that run.

    A line cannot run a command of yours, need a terminal or leave a process behind. It cannot print content: get needs
    -f FILE.

    Examples:
        azguard batch -f lines.txt
        azguard batch -f lines.txt --dry-run
        azguard batch -f lines.txt --query '[?exit_code!=`0`]'

    Topics: exit-status, scopes
    """
    results = _Results(replace(env.out, format=output, summarizes=None))
    clock = StoppableClock()
    runner = LineRunner(env, replace(env.common, clock=clock))
    with streams.source(file, purpose="run") as source, keep(source) as kept, _collect_often():
        divide_streams()
        begin = kept.tell()
        with results.count("check", is_silent=not dry_run):
            ready = _check_all(map(runner.prepare, read(kept)), results, is_preview=dry_run)
        total = results.number
        if dry_run:
            results.tell_checks(total)
            return
        kept.seek(begin)
        works = chain(_take_each(ready), map(runner.prepare, islice(read(kept), len(ready), None)))
        with signals.until_committed():
            with results.count("run"):
                ended = run(works, BatchSettings(jobs, ordered, stop_on_error), results.show, clock.stop)
            results.tell(ended, total)


@contextmanager
def _collect_often() -> Iterator[None]:
    """Have the garbage collector look more often, at what is made from now on alone."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _take_each(ready: "deque[LineWork]") -> "Iterator[LineWork]":
    while ready:
        yield ready.popleft()


def _check_all(works: "Iterable[LineWork]", results: "_Results", *, is_preview: bool) -> "deque[LineWork]":
    """Return the first lines, ready to run.

    Raises:
        UsageError: a line cannot be run.
    """
    ready = deque[LineWork]()
    size = 0
    for work in works:
        size += len(work.line.stdin) + sum(map(len, work.line.words))
        if is_preview:
            results.show_check(work)
            continue
        if work.refusal is not None:
            raise work.refusal.at_line(work.line.number)
        if len(ready) < _MOST_READY and size < _MOST_READY_CHARACTERS:
            ready.append(work)
        results.count_one()
    return ready


def require_runnable(ready: "ReadyCommand | None", shared: Mapping[str, Any]) -> "ReadyCommand":
    """Return the command of a line, if it can run beside others in one process."""
    if ready is None:
        raise UsageError("this line shows help, and does nothing", hint="leave it out")
    typed = {**shared, **ready.params}
    option = next((name for name in _NOT_IN_A_LINE if typed.get(name)), None)
    if option is not None:
        raise UsageError(f"--{option} is not for a line of a batch", hint=f"leave --{option} out of the line")
    if shared.get("output") not in (None, "json", "none"):
        raise UsageError("the result of a line is JSON", hint="leave -o out; --query picks from the result")
    if (reason := _find_reason_to_run_alone(ready)) is not None:
        raise UsageError(f"{ready.env.command} cannot run in a batch: {reason}", hint="run it by itself")
    prints_content = any("--result" in row.flags for row in ready.node.own)
    if prints_content and ready.params["file"] in (None, "-") and not ready.params["recursive"]:
        raise UsageError("the content would go to stdout, where the results are", hint="-f FILE writes it to a file")
    return ready


def _find_reason_to_run_alone(ready: "ReadyCommand") -> str | None:
    if any("CMD" in row.metavar and ready.params[row.name] for row in ready.node.own):
        return "it runs a command of yours"
    return next((why for each, why in _ALONE.items() if f"{ready.env.command} ".startswith(f"{each} ")), None)


class _Results(Lines):
    """What a batch shows."""

    def __init__(self, out: Output) -> None:
        super().__init__(out, LineEnd("id", 1, 0))
        self._wrong_lines = 0
        self._progress = out.progress_bar("")
        #: How many lines were checked, or have ended.
        self.number = 0

    @contextmanager
    def count(self, title: str, *, is_silent: bool = False) -> Iterator[None]:
        """Have a terminal show how many lines were checked or have ended, where it does not show them."""
        self.number = 0
        shows = not is_silent and self._out.format != "none"
        with self._out.progress_bar(title, unit="lines", is_beside_content=shows) as self._progress:
            yield

    def count_one(self) -> None:
        self.number += 1
        self._progress.at(self.number)

    def show(self, done: Done) -> None:
        """Show how a line ended, or whether it can be run."""
        super().show(done)
        self.count_one()

    def keep_wrong(self, done: Done) -> None:
        """Name a line on stderr that failed, after what its command told there."""
        ended: LineEnd = done.result
        if ended.messages or ended.exit_code:
            self._progress.hide()
        for message in ended.messages.splitlines():
            self._out.complain(f"line {ended.line}: {message}")
        if ended.exit_code:
            self._wrong_lines += 1
            self._out.complain(ended.reason)

    def show_check(self, work: "LineWork") -> None:
        ended = LineEnd(work.line.id, work.line.number, 0) if work.refusal is None else work.run()
        self.show(Done("", ended.outcome, result=ended))

    def tell_checks(self, total: int) -> None:
        """Tell how many lines can be run, and refuse the batch if one cannot."""
        if self._wrong_lines:
            raise UsageError(f"{self._wrong_lines:,} of {say_count(total, 'line')} cannot be run; nothing was sent")
        self._out.info(f"{say_count(total, 'line')} can be run; nothing was sent")
        self.finish()

    def tell(self, ended: "PoolEnd", total: int) -> None:
        """Tell how many lines ended in which way; raise what interrupted them, or that a line failed."""
        counts = {**ended.counts, "not begun": total - ended.counts.total()}
        told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()) if number)
        self._out.info(f"{say_count(total, 'line')}: {told or 'nothing to do'}")
        if ended.interruption is not None:
            raise ended.interruption
        if self._wrong_lines:
            raise Partial(
                f"{self._wrong_lines:,} of {say_count(total, 'line')} failed", hint="each line above says why"
            )
        self.finish()


class _Divided:
    """Stands for a standard stream: that of the line that a thread is running, else that of the process."""

    def __init__(self, name: str) -> None:
        self._name, self._own = name, getattr(sys, name)

    def __getattr__(self, name: str) -> Any:
        found = _streams.get({}).get(self._name, self._own)
        return getattr(found, name)


def divide_streams() -> None:
    """Give each line streams of its own, from now until this process ends."""
    for name in _NAMES:
        setattr(sys, name, _Divided(name))


class LineStreams:
    """The streams of one line, in memory."""

    def __init__(self, stdin: str = "") -> None:
        self.stdout, self.stderr = io.BytesIO(), io.BytesIO()
        content = io.BytesIO(stdin.encode("utf-8", "surrogatepass")), self.stdout, self.stderr
        texts = (io.TextIOWrapper(each, "utf-8", errors="surrogatepass", write_through=True) for each in content)
        self._texts = dict(zip(_NAMES, texts, strict=True))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put them in the place of the standard ones, for the code of a block."""
        before = _streams.set(self._texts)
        try:
            yield
        finally:
            _streams.reset(before)


@frozen
class LineRunner:
    """Prepares the lines of one batch."""

    env: Environment
    common: SharedState

    def prepare(self, text: TextLine) -> "LineWork":
        """Return the work of a line, which may be to say why it cannot be run."""
        line, facts, own = Line(text.number, ()), Facts(), LineStreams()
        try:
            line = parse(text)
            typed = {name: value for name, value in self.env.shared.items() if name not in _NOT_PASSED_ON}
            facts, own = Facts(line.words, typed, common=self.common), LineStreams(line.stdin)
            with own.in_place():
                ready = _parse(line, facts)
                return LineWork(line, facts, own, ready, addresses=tuple(_find_addresses(ready)))
        except AzguardError as error:
            known, _ = errors.explain(error, facts, os.environ)
            return LineWork(line, facts, own, refusal=known.but(reason=None))


def _parse(line: Line, facts: Facts) -> "ReadyCommand":
    from azguard.cli.parsing import parser  # which completion does not need

    try:
        return require_runnable(parser.parse(facts, list(line.words)), facts.shared)
    except CommandMissing as missing:
        # People would be shown the help of the group, which does not name the line.
        told = UsageError(missing.message, hint=missing.hint)
    raise told


@frozen
class LineWork:
    """A line that was read."""

    line: Line
    facts: Facts
    streams: LineStreams
    #: Its command; None if it cannot be run.
    ready: "ReadyCommand | None" = None
    #: Why it cannot be run.
    refusal: AzguardError | None = None
    addresses: tuple[Address, ...] = ()

    def run(self) -> LineEnd:
        code, error = 0, None
        with self.streams.in_place():
            try:
                code = self._call()
            except Exception as failure:  # noqa: BLE001  # as in app.run: every end becomes an exit status
                error = errors.describe(failure, self.facts, os.environ)
                code = error["exit_code"]
        result = _read_result(self.streams.stdout.getvalue().decode("utf-8", "backslashreplace"))
        messages = self.streams.stderr.getvalue().decode("utf-8", "backslashreplace")
        return LineEnd(self.line.id, self.line.number, code, result, error, messages)

    def _call(self) -> int:
        if self.ready is None:
            raise self.refusal or AssertionError
        return self.ready.call()


def _find_addresses(ready: "ReadyCommand") -> Iterator[Address]:
    """Yield the addresses of the resources that the words and options of a command name."""
    noun = ready.env.command.partition(" ")[0]
    kinds: list[Kind | None] = [Kind(noun) if noun in list(Kind) else None]
    # What lists blobs is about their container.
    kinds += {"blob": [Kind.CONTAINER], "entity": [Kind.TABLE]}.get(noun, [])
    for row in ready.node.own:
        value = ready.params[row.name]
        for text in value if isinstance(value, list) else [value]:
            # A lock with a bare name is a blob among the locks.
            name = f"locks/{text}" if noun == "lock" and not set(":/") & set(text or "") else text
            for meant in kinds if row.completer is not None and text is not None else ():
                with suppress(AzguardError):
                    address = ready.env.location(name, meant).address.folded
                    yield (address.kind.service, *filter(None, "/".join(address.parts).split("/")))
                    break


def _read_result(shown: str) -> Any:
    """Parse the output of a command: a JSON value, one value for each line of JSON, or else plain text."""
    with suppress(ValueError):
        return json.loads(shown) if shown else None
    with suppress(ValueError):
        return [json.loads(line) for line in shown.splitlines()]
    return shown
