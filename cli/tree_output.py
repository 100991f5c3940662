"""What a run over a tree shows: a line for each file as it ends, and one for all."""

import sys
from typing import TYPE_CHECKING, Any

from azguard.cli import result_stream, terminal
from azguard.cli.output import Output, plain
from azguard.cli.progress import ERASE, Progress
from azguard.errors import OutputFailed
from azguard.requests.pool import Done

if TYPE_CHECKING:
    from azguard.trees.items import TreeSummary

_WIDTH = 9
_WRONG = ("failed", "unknown", "would refuse")


class Lines:
    """The lines of a run; where they cannot be printed, the run goes on, and what failed is told on stderr."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._failure: OutputFailed | None = None
        self._is_broken = False

    def print(self, done: Done) -> None:
        """Print how one file ended.

        Raises:
            OutputFailed: it cannot be printed.
            BrokenPipeError: its reader has gone.
        """
        value = _describe(done)
        if self._out.summarizes is None:
            self._out.show_line(value)
        else:
            text = _to_text(done, value, color=self._out.color)
            # In one piece: the threads that draw the bar draw it between any two.
            is_beside_bar = self._out.progress and terminal.is_terminal(sys.stdout)
            self._out.print_line(f"{ERASE}{text}" if is_beside_bar else text)

    def show(self, done: Done) -> None:
        """Print how one file ended, if that is possible."""
        if not self._is_broken:
            try:
                self.print(done)
            except (BrokenPipeError, OutputFailed) as failure:
                self._failure = failure if isinstance(failure, OutputFailed) else None
                self._is_broken = True
                result_stream.silence(sys.stdout)
            else:
                return
        if done.outcome in _WRONG:
            self._out.warn(_to_text(done, _describe(done), color=False))

    def finish(self) -> None:
        """Say that not all lines were printed, at the end of a run that went well.

        Raises:
            OutputFailed: why; a reader that has gone is no failure.
        """
        if self._failure is not None:
            raise self._failure


def tell(out: Output, summary: "TreeSummary", progress: Progress) -> None:
    """Tell how many files ended in which way, in the place of the bar."""
    progress.erase()
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    out.info(f"{summary.address}: {counts or 'no file'}")


def _describe(done: Done) -> dict[str, Any]:
    if done.error is None:
        value: dict[str, Any] = plain(done.result)
        return value
    from azguard.cli import hints

    return {"address": done.address, "outcome": done.outcome, "error": hints.in_words(done.error).as_json()}


def _to_text(done: Done, value: dict[str, Any], *, color: bool) -> str:
    name = done.address.partition(":")[2]
    word = f"{done.outcome:{_WIDTH}}"
    word = terminal.paint(word, "red") if color and done.outcome in _WRONG else word
    why = value["error"]["message"] if done.error is not None else value.get("reason")
    return f"{word} {terminal.printable(name + (f': {why}' if why else ''))}"
