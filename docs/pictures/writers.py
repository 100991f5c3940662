"""Two writers of one blob: without a guard one change is lost; with azguard the second is told, and both are kept."""

from docs.pictures.drawing import BLUE, GREEN, GREY, INK, LINE, RED, Drawing

_PANEL, _TOP, _STEP = 430, 110, 46
#: What happens, from top to bottom: which writer, in which direction, what is said, in which colour, and the blob then.
_PLAIN = (
    ("A", "read", "read 1", GREY, "1"),
    ("B", "read", "read 1", GREY, ""),
    ("A", "write", "write 2", BLUE, "2"),
    ("B", "write", "write 2", RED, "2"),
)
_GUARDED = (
    ("A", "read", "read 1", GREY, "1"),
    ("B", "read", "read 1", GREY, ""),
    ("A", "write", "write 2, if still 1", BLUE, "2"),
    ("B", "refused", "2, if still 1: refused", RED, ""),
    ("B", "read", "read 2", GREY, ""),
    ("B", "write", "write 3, if still 2", BLUE, "3"),
)


def draw() -> str:
    """Return the picture."""
    picture = Drawing(
        2 * _PANEL, 420, "Two writers raise a number: without a guard one change is lost, with azguard none is"
    )
    _panel(picture, 0, "GET, change, PUT", _PLAIN, ("2 instead of 3: A's change is lost, and no one is told", RED))
    picture.line(_PANEL, 24, _PANEL, 396, color=LINE)
    _panel(picture, _PANEL, "azguard safe-update", _GUARDED, ("3: both changes are there, each exactly once", GREEN))
    return picture.svg()


def _panel(
    picture: Drawing, left: int, title: str, steps: tuple[tuple[str, str, str, str, str], ...], end: tuple[str, str]
) -> None:
    middle = left + _PANEL / 2
    lanes = {"A": left + 56, "B": left + _PANEL - 56}
    picture.text(middle, 36, title, anchor="middle", bold=True, size=16)
    for name, x in lanes.items():
        picture.text(x, 72, f"writer {name}", anchor="middle", color=INK, size=13, bold=True)
        picture.line(x, 82, x, 374, color=LINE)
    picture.text(middle, 72, "the blob", anchor="middle", size=13, bold=True)
    picture.line(middle, 82, middle, 374, color=LINE)
    for number, (writer, kind, words, color, blob) in enumerate(steps):
        y, lane = _TOP + number * _STEP, lanes[writer]
        side = 18 if writer == "B" else -18
        start, goal = (middle + side, lane) if kind == "read" else (lane, middle + side)
        picture.arrow(start, y, goal, y, color=color, dashed=kind == "refused")
        picture.text((lane + middle + side) / 2, y - 7, words, anchor="middle", size=12, color=color)
        if blob:
            picture.box(middle - 14, y - 14, 28, 28, fill="#ddf4ff" if color == BLUE else "#f6f8fa")
            picture.text(middle, y + 5, blob, anchor="middle", bold=True, mono=True)
    words, color = end
    picture.text(middle, 402, words, anchor="middle", bold=True, size=13, color=color)
