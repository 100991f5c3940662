"""What a run over a tree shows: a line for each file as it ends, and one for all."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from azguard.cli import terminal
from azguard.cli.output import Output, plain
from azguard.requests.pool import Done

if TYPE_CHECKING:
    from azguard.trees.items import TreeSummary

_WIDTH = 9
_WRONG = ("failed", "unknown", "would refuse")


def printer(out: Output) -> Callable[[Done], None]:
    """Return what prints how one file ended."""

    def show(done: Done) -> None:
        value = _describe(done)
        if out.summarizes is None:
            out.show_line(value)
        else:
            out.print_line(_to_text(done, value, color=out.color))

    return show


def tell(out: Output, summary: "TreeSummary") -> None:
    """Tell how many files ended in which way."""
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
