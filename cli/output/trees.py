"""The output of a run over a tree: a line for each file as it ends, and one for all."""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from azguard.address import Kind
from azguard.cli.output import stream, terminal
from azguard.cli.output.json_form import check_lines, pick_from_line, to_json_form
from azguard.cli.output.results import Output
from azguard.cli.output.terminal import ERASE
from azguard.errors import OutputFailed, Partial
from azguard.resources.pool import Done
from azguard.times import say_count, span

if TYPE_CHECKING:
    from azguard.cli.context import Environment
    from azguard.trees.deletes import TreeDelete
    from azguard.trees.downloads import TreeDownload
    from azguard.trees.runs import Headway, Reached, TreeItem, TreeSummary
    from azguard.trees.uploads import TreeUpload

    Tree = TreeUpload | TreeDownload | TreeDelete


_WIDTH = 9
_WRONG = ("failed", "unknown", "not tried", "would refuse")
# So many files that failed are named again at the end: a tree may have more of them than fit the memory.
_MOST_WRONG = 1000
# So many lines are one table: the width of its columns is known only when all of them are there.
_TABLE_LINES = 1000
# A narrower terminal has no room for a bar beside the numbers.
_BAR_COLUMNS = 100
# Less of a name tells nothing.
_LEAST_NAME = 8
_UNITS = {"GiB": 1024**3, "MiB": 1024**2, "KiB": 1024}
# The speed of that time tells when all is done: what was left alone at the beginning took no time.
_WINDOW_SECONDS = 20.0
# A file takes a request even if it is empty. The request takes as long as so many bytes, roughly.
_REQUEST_BYTES = 64 * 1024


class Lines:
    """The lines of a run; where they cannot be printed, the run goes on.

    ``end`` prints what is left of a table, ``tell_wrong`` what failed, on stderr; ``finish`` tells at last whether all
    was printed.
    """

    def __init__(self, out: Output, sample: object = None) -> None:
        """Begin without a line; ``sample`` is the result of one, where that is not one of a tree.

        Raises:
            UsageError: --query needs all lines at once.
        """
        self._out = out
        self._failure: OutputFailed | None = None
        self._is_broken = False
        self._sample = sample or _build_sample()
        #: What is to be in the next table, and of how many lines it is made.
        self._rows: list[Any] = []
        self._lines_of_table = 0
        #: What to tell again at the end, and how much more there is.
        self._wrong: list[str] = []
        self._wrong_untold = 0
        check_lines(out.query, to_json_form(self._sample))

    def print(self, done: Done) -> None:
        """Print how one file ended.

        Raises:
            OutputFailed: it cannot be printed.
            BrokenPipeError: its reader has gone.
        """
        self.keep_wrong(done)
        value = _describe(done)
        if self._out.summarizes is not None:
            text = _to_text(done, value, color=self._out.color)
            # In one piece: the threads that draw the bar draw it between any two.
            self._out.print_line(f"{ERASE}{text}" if self._is_beside_bar else text)
        elif self._out.format == "table":
            self._rows += pick_from_line(self._out.query, value) if self._out.query else [_shorten(value)]
            self._lines_of_table += 1
            if self._lines_of_table >= _TABLE_LINES:
                self.end()
        else:
            self._show_picked(pick_from_line(self._out.query, value))

    def show(self, done: Done) -> None:
        """Print how one file ended, if that is possible."""
        if self._is_broken:
            self.keep_wrong(done)
            return
        try:
            self.print(done)
        except (BrokenPipeError, OutputFailed) as failure:
            self._note(failure)

    def end(self) -> None:
        """Print the last rows of a table, if that is possible."""
        rows, self._rows = self._rows, []
        self._lines_of_table = 0
        try:
            if rows:
                self._show_picked(rows)
        except (BrokenPipeError, OutputFailed) as failure:
            self._note(failure)

    def tell_wrong(self) -> None:
        """Name on stderr the files that failed, with their statuses: their lines may be far above, or nowhere."""
        for each in self._wrong:
            self._out.complain(each)
        if self._wrong_untold:
            self._out.complain(f"and {self._wrong_untold:,} more, as the lines on stdout say")

    def finish(self) -> None:
        """Say that not all lines were printed, at the end of a run that went well.

        Raises:
            OutputFailed: why; a reader that has gone is no failure.
        """
        if self._failure is not None:
            raise self._failure

    @property
    def _is_beside_bar(self) -> bool:
        return self._out.progress and self._out.format != "none" and terminal.is_terminal(sys.stdout)

    def _show_picked(self, values: list[Any]) -> None:
        if values and self._is_beside_bar:
            sys.stdout.write(ERASE)
        self._out.show_picked(values, self._sample)

    def keep_wrong(self, done: Done) -> None:
        """Keep a file that failed, to tell it again."""
        if done.outcome not in _WRONG:
            return
        if len(self._wrong) >= _MOST_WRONG:
            self._wrong_untold += 1
            return
        status = "" if done.error is None else f" ({done.error.exit_code})"
        self._wrong.append(f"{_to_text(done, _describe(done), color=False)}{status}")

    def _note(self, failure: BrokenPipeError | OutputFailed) -> None:
        self._failure = failure if isinstance(failure, OutputFailed) else None
        self._is_broken = True
        stream.silence(sys.stdout)


def _build_sample() -> "TreeItem":
    from azguard.trees.runs import CREATED, TreeItem

    return TreeItem(address="blob:site/index.html", file="index.html", outcome=CREATED)


def _shorten(value: dict[str, Any]) -> dict[str, Any]:
    """Return a line as a row of a table, which has no place for a whole error."""
    error = value.pop("error", None)
    return value if error is None else {**value, "reason": f"{error['kind']} ({error['exit_code']})"}


def _describe(done: Done) -> dict[str, Any]:
    if done.error is None:
        value: dict[str, Any] = to_json_form(done.result)
        return value
    from azguard.cli.words import hints

    return {"address": done.address, "outcome": done.outcome, "error": hints.in_words(done.error).as_json()}


def _to_text(done: Done, value: dict[str, Any], *, color: bool) -> str:
    kind, _, name = done.address.partition(":")
    name += "/" if kind == Kind.DIR else ""
    word = f"{value['outcome']:{_WIDTH}}"
    word = terminal.paint(word, "red") if color and done.outcome in _WRONG else word
    why = value["error"]["message"] if done.error is not None else value.get("reason")
    return f"{word} {terminal.printable(name + (f': {why}' if why else ''))}"


class TreeProgress:
    """Draws one line on stderr, again and again, once the run takes longer than a moment."""

    def __init__(
        self, command: str, address: str, headway: "Headway", sizes: Iterable[int] | None, *, enabled: bool
    ) -> None:
        self._verb = command.rpartition(" ")[2]
        self._prefix = address.partition(":")[2]
        self._headway, self._sizes, self._enabled = headway, sizes, enabled
        self._line = terminal.LiveLine()
        self._over = threading.Event()
        self._pace = Pace()

    def __enter__(self) -> Self:
        if self._enabled:
            _begin(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._over.set()
        self._headway.close()
        self._line.close()

    def keep_below(self, show: Callable[["Done"], None]) -> Callable[["Done"], None]:
        """Return a function that prints a file's line in place of the progress line, which is drawn again below."""

        def show_above(done: "Done") -> None:
            show(done)
            self._line.redraw()

        return show_above

    def _watch(self) -> None:
        """Draw the line until the run is over. The files are counted only now: a short run needs no second listing."""
        if self._over.wait(terminal.QUIET_SECONDS):
            return
        if self._sizes is not None:
            sizes = self._sizes
            _begin(lambda: self._headway.count_all(sizes))
        while not self._over.wait(terminal.REDRAW_SECONDS):
            reached = self._headway.look()
            left = self._pace.estimate(time.monotonic(), reached)
            self._line.draw(describe(self._verb, reached, left, self._prefix, self._line.room()))


def run(env: "Environment", tree: "Tree", jobs: int, sizes: Iterator[int] | None, *, is_preview: bool) -> None:
    """Run a tree and show how each file ends; ``sizes`` counts files and bytes beside the run, if they can be counted.

    Raises:
        Partial: some files failed, or their outcome is unknown.
    """
    from azguard.trees import runs

    lines = Lines(env.out)
    if is_preview:
        try:
            _preview(tree.preview(runs.Control(env.deadline)), lines.print, tree.address, env.command)
        finally:
            lines.end()
            lines.tell_wrong()
        lines.finish()
        return
    with env.cache.gathering() as settle:
        control = runs.Control(env.deadline, outage=runs.Outage(runs.ROUNDS * jobs), settle=settle)
        with TreeProgress(env.command, tree.address, control.headway, sizes, enabled=env.out.progress) as bar:

            def tell(summary: "TreeSummary") -> None:
                lines.end()
                _tell(env.out, summary, bar)
                lines.tell_wrong()

            runs.run_phases(tree.address, tree.phases(control), jobs, control, bar.keep_below(lines.show), tell)
    lines.finish()


def _preview(found: Iterator[Done], show: Callable[[Done], None], address: str, command: str) -> None:
    from azguard.trees.runs import WOULD_REFUSE

    refused = 0
    for done in found:
        show(done)
        if done.error is not None or done.outcome == WOULD_REFUSE:
            refused += 1
    if refused:
        noun, verb = command.split()
        way_out = "here: --overwrite takes theirs" if verb == "get" else f"is read with azguard {noun} get --recursive"
        raise Partial(
            f"{say_count(refused, 'file')} of {address} would be refused",
            address=address,
            hint=f"each line says why; what changed {way_out}",
        )


def _tell(out: Output, summary: "TreeSummary", progress: "TreeProgress") -> None:
    """Tell how many files ended in which way, in the place of the bar."""
    progress.close()
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    out.info(f"{summary.address}: {counts or 'no file'}")


def _begin(work: Callable[[], None]) -> None:
    """Begin a thread that no end of the process waits for; where the system has none left, no line is drawn."""
    with suppress(RuntimeError):
        threading.Thread(target=work, daemon=True).start()


class Pace:
    """How fast a run is, as its last seconds tell."""

    def __init__(self) -> None:
        self._looks = deque[tuple[float, int]]()

    def estimate(self, now: float, reached: "Reached") -> float | None:
        """Return in how many seconds all is done; None where that is not known."""
        done = _weigh(reached.files, reached.bytes)
        self._looks.append((now, done))
        while now - self._looks[0][0] > _WINDOW_SECONDS:
            self._looks.popleft()
        began, before = self._looks[0]
        if reached.total_files is None or done <= before:
            return None
        left = max(0, _weigh(reached.total_files, reached.total_bytes) - done)
        return left * (now - began) / (done - before)


def _weigh(files: int, length: int) -> int:
    return files * _REQUEST_BYTES + length


def describe(verb: str, reached: "Reached", left: float | None, prefix: str, room: int) -> str:
    """Return the line, in so many columns; in a narrow terminal the last parts are missing."""
    line = verb
    for part in _list_parts(reached, left, has_bar=room >= _BAR_COLUMNS - 1):
        if terminal.measure(f"{line}  {part}") > room:
            return line
        line = f"{line}  {part}"
    name = terminal.printable((reached.name or "").partition(":")[2].removeprefix(prefix))
    columns = room - terminal.measure(f"{line}  ")
    return f"{line}  {_end_of(name, columns)}" if name and columns >= _LEAST_NAME else line


def _list_parts(reached: "Reached", left: float | None, *, has_bar: bool) -> list[str]:
    files, total = reached.files, reached.total_files
    # There are more lines than files where a mirror deletes, and where files came in the meantime.
    if total is None or files > total:
        moved = [_show_size(reached.bytes, reached.bytes)] if reached.bytes else []
        return [say_count(files, "file"), *moved]
    whole = reached.total_bytes
    length = min(reached.bytes, whole)
    share = length / whole if whole else files / max(1, total)
    parts = [f"{int(100 * share)} %", f"{files:,} of {say_count(total, 'file')}"]
    if has_bar:
        parts.insert(0, terminal.bar(share))
    if whole:
        parts.append(f"{_show_size(length, whole, has_unit=False)} of {_show_size(whole, whole)}")
    return parts if left is None else [*parts, f"{span(left)} left"]


def _show_size(length: int, whole: int, *, has_unit: bool = True) -> str:
    unit = next((name for name, size in _UNITS.items() if whole >= size), "KiB")
    return f"{length / _UNITS[unit]:,.1f}{f' {unit}' if has_unit else ''}"


def _end_of(text: str, columns: int) -> str:
    """Return as much of the end of a text as so many columns hold: what tells files of a folder apart."""
    if terminal.measure(text) <= columns:
        return text
    mark = "..." if terminal.is_ascii(sys.stderr) else "…"
    return mark + terminal.cut(text[::-1], columns - len(mark))[::-1]
