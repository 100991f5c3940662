"""What many writers of one blob get done: a plot of ``benchmarks/contention.json``, a real run."""

import json
import math
from pathlib import Path
from typing import Any

from docs.pictures.drawing import BLUE, GREY, INK, LINE, RED, Drawing

DATA = Path(__file__).parents[2] / "benchmarks" / "contention.json"
_STYLES = {
    "azguard, one host": (BLUE, ""),
    "azguard, four hosts": (BLUE, "7 4"),
    "azguard, a host each": (BLUE, "2 4"),
    "SDK loop": (RED, ""),
    "az-style loop": (GREY, ""),
}
_ROUND = (1.2, 1.5, 2, 3, 4, 6, 8, 12)
#: Where the ways are named below the panels.
_KEYS = (24, 194, 374, 566, 690)
_PANELS = (("updates per second", "commits_per_second"), ("99 of 100 updates done within, s", "p99"))
_WIDTH, _HEIGHT, _LEFT, _TOP, _NEXT = 330, 240, 60, 88, 420


def draw() -> str:
    """Return the picture."""
    rows = json.loads(DATA.read_text(encoding="utf-8"))
    picture = Drawing(860, 420, "Many writers of one blob: updates per second, and how long they take")
    picture.text(20, 34, "Many writers of one blob, 10 ms added to each request", bold=True, size=16)
    for number, (title, key) in enumerate(_PANELS):
        _panel(picture, _LEFT + number * _NEXT, title, key, rows)
    for x, (way, (color, dash)) in zip(_KEYS, _STYLES.items(), strict=True):
        picture.curve([(x, 392), (x + 28, 392)], color=color, dash=dash)
        picture.text(x + 36, 397, way, size=12, color=color)
    return picture.svg()


def _panel(picture: Drawing, left: float, title: str, key: str, rows: list[dict[str, Any]]) -> None:
    sizes = sorted({row["writers"] for row in rows})
    most = _round_up(max(row[key] for row in rows))
    span = math.log2(sizes[-1]) or 1

    def place(writers: int, value: float) -> tuple[float, float]:
        return left + _WIDTH * math.log2(writers) / span, _TOP + _HEIGHT * (1 - value / most)

    picture.text(left, _TOP - 12, title, size=13, bold=True)
    parts = 4 if math.isclose(most % 4, 0) else 3
    for part in range(parts + 1):
        value = most * part / parts
        y = place(1, value)[1]
        picture.line(left, y, left + _WIDTH, y, color=LINE, width=1)
        picture.text(left - 8, y + 4, f"{value:g}", anchor="end", size=11, color=GREY)
    for writers in sizes:
        picture.text(place(writers, 0)[0], _TOP + _HEIGHT + 18, str(writers), anchor="middle", size=11, color=GREY)
    picture.text(left + _WIDTH / 2, _TOP + _HEIGHT + 38, "writers", anchor="middle", size=12, color=INK)
    for way, (color, dash) in _STYLES.items():
        points = [place(row["writers"], row[key]) for row in rows if row["way"] == way]
        if points:
            picture.curve(sorted(points), color=color, dash=dash)


def _round_up(value: float) -> float:
    """Return a round number that is not less, and which three or four grid lines divide well."""
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(part * magnitude for part in _ROUND if part * magnitude >= value)
