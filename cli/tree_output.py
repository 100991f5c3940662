"""What a run over a tree shows: a line for each file as it ends, and one for all."""

import sys
from typing import TYPE_CHECKING, Any

from azguard.address import Kind
from azguard.cli import line_query, result_stream, terminal
from azguard.cli.output import Output
from azguard.cli.plain_values import plain
from azguard.cli.progress import ERASE
from azguard.errors import OutputFailed
from azguard.requests.pool import Done

if TYPE_CHECKING:
    from azguard.cli.tree_progress import TreeProgress
    from azguard.trees.items import TreeItem, TreeSummary

_WIDTH = 9
_WRONG = ("failed", "unknown", "not tried", "would refuse")
# So many files that failed are named again at the end: a tree may have more of them than fit the memory.
_MOST_WRONG = 1000
# So many lines are one table: the width of its columns is known only when all of them are there.
_TABLE_LINES = 1000


class Lines:
    """The lines of a run; where they cannot be printed, the run goes on.

    ``end`` prints what is left of a table, ``tell_wrong`` what failed, on stderr; ``finish`` tells at last whether all
    was printed.
    """

    def __init__(self, out: Output) -> None:
        """Begin without a line.

        Raises:
            UsageError: --query needs all lines at once.
        """
        self._out = out
        self._failure: OutputFailed | None = None
        self._is_broken = False
        self._sample = _build_sample()
        #: What is to be in the next table, and of how many lines it is made.
        self._rows: list[Any] = []
        self._lines_of_table = 0
        #: What to tell again at the end, and how much more there is.
        self._wrong: list[str] = []
        self._wrong_untold = 0
        line_query.check(out.query, plain(self._sample))

    def print(self, done: Done) -> None:
        """Print how one file ended.

        Raises:
            OutputFailed: it cannot be printed.
            BrokenPipeError: its reader has gone.
        """
        self._keep_wrong(done)
        value = _describe(done)
        if self._out.summarizes is not None:
            text = _to_text(done, value, color=self._out.color)
            # In one piece: the threads that draw the bar draw it between any two.
            self._out.print_line(f"{ERASE}{text}" if self._is_beside_bar else text)
        elif self._out.format == "table":
            self._rows += line_query.pick(self._out, value) if self._out.query else [_shorten(value)]
            self._lines_of_table += 1
            if self._lines_of_table >= _TABLE_LINES:
                self.end()
        else:
            self._show_picked(line_query.pick(self._out, value))

    def show(self, done: Done) -> None:
        """Print how one file ended, if that is possible."""
        if self._is_broken:
            self._keep_wrong(done)
            return
        try:
            self.print(done)
        except (BrokenPipeError, OutputFailed) as failure:
            self._note(failure)

    def end(self) -> None:
        """Print what is left of a table, if that is possible."""
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
        return self._out.progress and terminal.is_terminal(sys.stdout)

    def _show_picked(self, values: list[Any]) -> None:
        if values and self._is_beside_bar:
            sys.stdout.write(ERASE)
        self._out.show_picked(values, self._sample)

    def _keep_wrong(self, done: Done) -> None:
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
        result_stream.silence(sys.stdout)


def _build_sample() -> "TreeItem":
    from azguard.trees.items import CREATED, TreeItem

    return TreeItem(address="blob:site/index.html", file="index.html", outcome=CREATED)


def _shorten(value: dict[str, Any]) -> dict[str, Any]:
    """Return a line as a row of a table, which has no place for a whole error."""
    error = value.pop("error", None)
    return value if error is None else {**value, "reason": f"{error['kind']} ({error['exit_code']})"}


def tell(out: Output, summary: "TreeSummary", progress: "TreeProgress") -> None:
    """Tell how many files ended in which way, in the place of the bar."""
    progress.close()
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    out.info(f"{summary.address}: {counts or 'no file'}")


def _describe(done: Done) -> dict[str, Any]:
    if done.error is None:
        value: dict[str, Any] = plain(done.result)
        return value
    from azguard.cli import hints

    return {"address": done.address, "outcome": done.outcome, "error": hints.in_words(done.error).as_json()}


def _to_text(done: Done, value: dict[str, Any], *, color: bool) -> str:
    kind, _, name = done.address.partition(":")
    name += "/" if kind == Kind.DIR else ""
    word = f"{value['outcome']:{_WIDTH}}"
    word = terminal.paint(word, "red") if color and done.outcome in _WRONG else word
    why = value["error"]["message"] if done.error is not None else value.get("reason")
    return f"{word} {terminal.printable(name + (f': {why}' if why else ''))}"
