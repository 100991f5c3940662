"""The plot of the contention benchmark: four figures by number of writers. Needs azguard[bench]."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contention_ways import Way

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.contention import Row

# Ours in one colour, told apart by the line; the others in greys. Readable without colours too.
_STYLES = {
    Way.ONE_HOST: ("#0063b1", "-", "o"),
    Way.FOUR_HOSTS: ("#0063b1", "--", "s"),
    Way.NO_QUEUE: ("#0063b1", ":", "^"),
    Way.SDK: ("#b14a00", "-", "x"),
    Way.AZ: ("#777777", "-", "+"),
}
_PANELS: tuple[tuple[str, bool, "Callable[[Row], float]"], ...] = (
    ("commits per second", False, lambda row: row.commits_per_second),
    ("requests per commit", True, lambda row: row.requests),
    ("99 of 100 updates done within (s)", True, lambda row: row.p99),
    ("fairness half-way (Jain)", False, lambda row: row.fairness),
)


def save(rows: "list[Row]", path: Path) -> None:
    """Draw the rows into a PNG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(11, 8), layout="constrained")
    sizes = sorted({row.writers for row in rows})
    for panel, (title, logarithmic, value) in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
        for way, (color, line, marker) in _STYLES.items():
            points = sorted((row.writers, value(row)) for row in rows if row.way is way)
            if points:
                panel.plot(*zip(*points, strict=True), color=color, linestyle=line, marker=marker, label=way.value)
        panel.set_title(title)
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.set_xlabel("writers of one blob")
        if logarithmic:
            panel.set_yscale("log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter("")
        else:
            panel.set_ylim(bottom=0)
        panel.grid(visible=True, alpha=0.3)
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)
