"""``azguard demo``: a live table on a terminal, plain lines elsewhere, and an explanation."""

import os
import random
import shlex
import shutil
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Self

from azguard.cli.context import Environment
from azguard.cli.options.types import whole
from azguard.cli.output import terminal
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.cli.words.files import USE_OF_EXPORT
from azguard.demo import race
from azguard.demo.race import CountVerdict, DemoPlan, DemoResult, StrategyProgress, StrategyResult
from azguard.demo.worker import RETRY_WAIT_SECONDS, Strategy
from azguard.emulators import background
from azguard.emulators.azurite_install import check_system
from azguard.processes import identity

if TYPE_CHECKING:
    from rich.table import Table

_WRITERS, _INCREMENTS = 8, 25
# More would only measure this machine's memory and Azurite's patience.
_MOST_WRITERS, _MOST_INCREMENTS, _MOST_SEED = 64, 1000, 9999

_COLUMNS = ("way", "expected", "found", "", "unknown", "lost", "time")
# The column with the verdict, which is coloured.
_VERDICT = 3
# A terminal that is narrower than this shows the way, what was found, and the verdict.
_WHOLE_WIDTH = 78
_NARROW = (0, 2, _VERDICT)
# Lines are no longer than this.
_LONGEST_LINE = 79
# A line below the headings and none elsewhere, as rich's own box SIMPLE in ASCII.
_ASCII_LINES = "    \n    \n -- \n    \n    \n    \n    \n    \n"
_STYLES = {CountVerdict.EXACT: "green", CountVerdict.TOO_FEW: "bold red", CountVerdict.TOO_MANY: "bold red"}

app = Group()


@app.command()
def demo(
    env: Environment,
    writers: Annotated[int, option("--writers", "N", "Let N processes write.", whole(1, _MOST_WRITERS))] = _WRITERS,
    increments: Annotated[
        int, option("--increments", "N", "Let each writer apply N increments.", whole(1, _MOST_INCREMENTS))
    ] = _INCREMENTS,
    seed: Annotated[int | None, option("--seed", "N", "Choose which answers get lost.", whole(0, _MOST_SEED))] = None,
) -> int:
    """Watch updates get lost, doubled, and applied exactly once.

    Many processes add 1 to the same blob, in an emulator of their own. One answer in ten gets lost. They do it three
    times: as scripts do it today, as careful scripts do it, and with azguard safe-update. The demo needs no account and
    changes nothing of yours. It takes less than a minute. It exits with 0 only if the count of azguard is exact.

    Examples:
        azguard demo
        azguard demo --writers 4 --increments 10
    """
    check_system()
    plan = DemoPlan(
        writers=writers,
        increments=increments,
        seed=random.randint(0, _MOST_SEED) if seed is None else seed,
    )
    with _choose_view(env, plan) as view:
        result = race.run(plan, env.folders.emulator, env.environ, say=env.out.info, watch=view.watch)
    return _finish(env, view, result)


class LineView(AbstractContextManager["LineView"]):
    """Says when a strategy begins, and how it ended."""

    def __init__(self, plan: DemoPlan, write: Callable[[str], None]) -> None:
        self._plan, self._write = plan, write
        self._begun = ""

    def __enter__(self) -> Self:
        self._write(_heading(self._plan))
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, seen: StrategyProgress | StrategyResult) -> None:
        if isinstance(seen, StrategyResult):
            self._write(_line(seen))
        elif seen.name != self._begun:
            self._begun = seen.name
            self._write(f"{seen.name} ...")

    def close(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._write(line)


class Live(AbstractContextManager["Live"]):
    """A table that fills while one watches."""

    def __init__(self, plan: DemoPlan, color: bool) -> None:
        from rich.console import Console
        from rich.live import Live as Display

        self._plan = plan
        self._seen: dict[str, StrategyProgress | StrategyResult] = {}
        self._console = Console(highlight=False, no_color=not color)
        self._display = Display(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self.close([_heading(self._plan)])
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    def watch(self, seen: StrategyProgress | StrategyResult) -> None:
        self._seen[seen.name] = seen
        # Not earlier: an installation before it has words of its own for the terminal.
        self._display.start()
        self._display.update(self._table(), refresh=True)

    def close(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._console.print(line, markup=False, soft_wrap=True)

    def _table(self) -> "Table":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        lines = box.Box(_ASCII_LINES, ascii=True) if terminal.is_ascii(sys.stdout) else box.SIMPLE
        # Two columns between the cells, so that it fits a terminal of 80.
        table = Table(box=lines, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        shown = range(len(_COLUMNS)) if self._console.width >= _WHOLE_WIDTH else _NARROW
        for name in (_COLUMNS[place] for place in shown):
            table.add_column(name, justify="left" if name in ("way", "") else "right", overflow="fold")
        for strategy in Strategy:
            seen = self._seen.get(strategy)
            cells = _cells(strategy, self._plan, seen)
            style = _STYLES[seen.verdict] if isinstance(seen, StrategyResult) else "dim"
            table.add_row(*(Text(cells[place], style if place == _VERDICT else "") for place in shown))
        return table


def _choose_view(env: Environment, plan: DemoPlan) -> LineView | Live:
    # If the result goes to stdout as JSON, the story goes to stderr.
    if _is_structured(env):
        return LineView(plan, env.out.info)
    is_live = terminal.is_terminal(sys.stdout) and env.environ.get("TERM") != "dumb"
    if is_live and not env.shared.get("no_progress"):
        return Live(plan, env.out.color)
    return LineView(plan, _to_stdout)


def _finish(env: Environment, view: LineView | Live, result: DemoResult) -> int:
    shell = USE_OF_EXPORT[background.guess_syntax(env.environ, identity.find_name(os.getppid()))]
    view.close(["", *_explain(result), "", *_describe_caveats(result), "", *_next_steps(shell, env.environ)])
    if _is_structured(env):
        env.out.show(result)
    return int(not result.exact)


def _is_structured(env: Environment) -> bool:
    return env.out.query is not None or env.shared.get("output") not in (None, "table")


def _to_stdout(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _heading(plan: DemoPlan) -> str:
    text = (
        f"{plan.writers} processes each add 1 to a blob {plan.increments} times, in three ways. One answer in ten "
        "gets lost on its way back. Starting an emulator and the processes ..."
    )
    return "\n".join([*_wrap(text), ""])


def _line(ended: StrategyResult) -> str:
    unknown = f", {ended.unknown} unknown" if ended.unknown else ""
    return (
        f"{ended.name}: expected {ended.expected}, found {ended.found}: {_verdict(ended)}{unknown} "
        f"({ended.dropped} of {ended.requests} answers lost, {ended.seconds} s)"
    )


def _cells(strategy: Strategy, plan: DemoPlan, seen: StrategyProgress | StrategyResult | None) -> Sequence[str]:
    if seen is None:
        return (strategy, str(plan.expected), "", "", "", "", "")
    answers, seconds = f"{seen.dropped} of {seen.requests}", f"{seen.seconds:.1f} s"
    if isinstance(seen, StrategyProgress):
        return (strategy, str(plan.expected), "", f"{seen.ended} tried", "", answers, seconds)
    return (strategy, str(plan.expected), str(seen.found), _verdict(seen), str(seen.unknown), answers, seconds)


def _verdict(ended: StrategyResult) -> str:
    lucky = ended.verdict is CountVerdict.EXACT and ended.name != Strategy.SAFE
    return "exact (this time)" if lucky else str(ended.verdict)


_REASONS: dict[tuple[str, CountVerdict], str] = {
    (Strategy.BLIND, CountVerdict.TOO_FEW): "writers overwrote what others had written, and no writer was told.",
    (Strategy.IF_MATCH, CountVerdict.TOO_MANY): (
        "a write whose answer was lost had been applied. Sent again by the SDK, it met 412, "
        "looked like another's write, and the change was applied once more."
    ),
    (Strategy.IF_MATCH, CountVerdict.TOO_FEW): "callers that got an error gave up.",
    (
        Strategy.SAFE,
        CountVerdict.EXACT,
    ): "every version of the blob names the last writes that led to it, so the outcome "
    "of a write whose answer was lost is looked up, never guessed.",
    (Strategy.SAFE, CountVerdict.TOO_FEW): "this should not happen: please report it, with the seed.",
    (Strategy.SAFE, CountVerdict.TOO_MANY): "this must never happen: please report it, with the seed.",
}
_LUCK = "by luck; nothing in it makes it so."


def _explain(result: DemoResult) -> list[str]:
    lines = []
    for ended in result.strategies:
        reason = f"{ended.name}: {_REASONS.get((ended.name, ended.verdict), _LUCK)}"
        if ended.unknown:
            reason += f" Errors that leave open whether the change was applied: {ended.unknown}."
        if ended.failed:
            reason += f" Given up, and said to be not applied: {ended.failed}."
        lines += _wrap(reason, "  ")
    return lines


def _describe_caveats(result: DemoResult) -> list[str]:
    wait = round(RETRY_WAIT_SECONDS * 1000)
    return _wrap(
        "A lost answer is one that the emulator gave after doing the work. The first two ways use the SDK with its "
        f"retries on, as az does; only the waits before them are cut, from 18 s and more to {wait} ms. "
        f"--seed {result.seed} loses the same answers again; whose they are is up to the race."
    )


def _wrap(text: str, indent: str = "") -> list[str]:
    width = min(_LONGEST_LINE, terminal.width(sys.stdout) - 1)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _next_steps(shell: str, environ: Mapping[str, str]) -> list[str]:
    """Return the next commands to type; first one that puts azguard on PATH, if azguard was run by its path."""
    steps = [
        f"azguard emulator start && {shell}",
        "azguard container create site",
        "echo '{\"count\": 0}' | azguard blob put site/counter.json",
        "azguard safe-update blob:site/counter.json --increment count",
    ]
    if shutil.which("azguard", path=environ.get("PATH", os.defpath)) is None:
        steps.insert(0, f'export PATH={shlex.quote(sysconfig.get_path("scripts"))}:"$PATH"')
    return [f"{'      ' if number else 'next: '}{step}" for number, step in enumerate(steps)]
