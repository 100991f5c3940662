"""The command, and what it shows: lines are checked, then run, and each end is told."""

import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

from azguard.batch import BatchSettings, LineEnd, keep, read, run
from azguard.cli import signals
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import TEXT, choice, whole
from azguard.cli.output.results import Output
from azguard.cli.output.trees import Lines
from azguard.cli.parsing.rows import flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked
from azguard.commands.batch.lines import LineRunner, LineWork, divide_streams
from azguard.errors import Partial, UsageError
from azguard.resources import pool
from azguard.resources.pool import Done, StoppableClock
from azguard.times import say_count

if TYPE_CHECKING:
    from azguard.resources.pool import PoolEnd


# So many lines are understood once; all others twice, because they would not fit the memory.
_MOST_READY = 1_000
_MOST_READY_CHARACTERS = 4 * 1024 * 1024

# A line that fails leaves some 120 objects that refer to each other. With the threshold of a short command, hundreds of
# lines would wait for the collector, and those that it finds at work would wait for its third generation.
_OBJECTS_BEFORE_COLLECTING = 5_000

app = Group()


@app.command(
    spec=common.remote("each line has conditions of its own"),
    rules=(
        checked("--file", "each line is a command that can run beside others", "lines.require_runnable"),
        checked("--dry-run", "each line is understood", "run.tell_checks"),
    ),
)
def batch(
    env: Environment,
    *,
    file: Annotated[
        str | None, option("--file, -f", "FILE|-", "Read the lines from this file, not from stdin.", TEXT)
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
    is_kept = output != "none" and env.out.query is None and streams.to_stream(sys.stdout).is_kept
    runner = LineRunner(env, replace(env.common, clock=clock), is_kept)
    with streams.source(file, purpose="run") as source, keep(source) as kept, _collect_often():
        divide_streams()
        begin = kept.tell()
        with results.tell_if_interrupted(), results.count("check", is_silent=not dry_run):
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


def _take_each(ready: deque[LineWork]) -> Iterator[LineWork]:
    while ready:
        yield ready.popleft()


def _check_all(works: Iterable[LineWork], results: "_Results", *, is_preview: bool) -> deque[LineWork]:
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

    @contextmanager
    def tell_if_interrupted(self) -> Iterator[None]:
        """Tell at Ctrl-C that no line has begun."""
        try:
            yield
        except KeyboardInterrupt:
            self._out.info(f"{say_count(self.number, 'line')} checked; nothing was sent")
            raise

    def count_one(self) -> None:
        self.number += 1
        self._progress.at(self.number)

    def show(self, done: Done) -> None:
        """Show how a line ended, or whether it can be run."""
        super().show(done)
        if not self._is_broken:
            for each in done.result.once_told:
                each()
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

    def show_check(self, work: LineWork) -> None:
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
                f"{self._wrong_lines:,} of {say_count(total, 'line')} failed",
                hint="each line above says why",
                detail=() if self._failure is None else (self._failure.message,),
            )
        self.finish()
