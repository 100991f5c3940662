"""The life of a lost lock: the network goes away, and the command is ended before the next holder can begin."""

from docs.pictures.drawing import BLUE, GREEN, GREY, INK, LINE, ORANGE, RED, Drawing

_LEFT, _SCALE, _TOP, _ROW, _BAR = 150, 7.0, 76, 52, 24
_LANES = ("the lease", "the network", "azguard", "the command", "the next holder")
#: Seconds, with a lease of 60 s that was renewed at 20 s for the last time.
_RENEWED, _AWAY, _TERM, _KILL, _END, _LAST = 20, 30, 74, 79, 80, 92


def draw() -> str:
    """Return the picture."""
    picture = Drawing(860, 400, "The life of a lost lock, in seconds: the command is ended before the lease ends")
    picture.text(20, 34, "A lost lock: lease of 60 s, the network goes away and stays away", bold=True, size=16)
    for number, lane in enumerate(_LANES):
        picture.text(_LEFT - 14, _y(number) + 17, lane, anchor="end", size=13)
    _bar(picture, 0, 0, _END, "held by the first holder", BLUE)
    _bar(picture, 0, _END, _LAST, "free", GREY)
    _bar(picture, 1, 0, _AWAY, "there", GREEN)
    _bar(picture, 1, _AWAY, _LAST, "away", RED)
    _bar(picture, 2, 0, _AWAY, "renews", BLUE)
    _bar(picture, 2, _AWAY, _TERM, "asks again every 0.5 s", ORANGE)
    _bar(picture, 2, _TERM, _KILL, "ends", RED)
    _bar(picture, 3, 0, _TERM, "works", BLUE)
    _bar(picture, 3, _TERM, _KILL, "grace", ORANGE)
    _bar(picture, 4, 0, _END, "waits", GREY)
    _bar(picture, 4, _END, _LAST, "works", GREEN)
    bottom = _y(len(_LANES)) - 8
    for second, words, color in (
        (0, "0 s", GREY),
        (_RENEWED, "renewed", GREY),
        (_AWAY, "away", RED),
        (_TERM - 2, "TERM", ORANGE),
        (_END + 3, "end of lease", INK),
    ):
        picture.text(_x(second), bottom + 22, words, anchor="middle", size=12, color=color)
    for second in (_RENEWED, _AWAY, _TERM, _KILL, _END):
        picture.line(_x(second), _TOP - 8, _x(second), bottom + 6, color=INK if second == _END else LINE, dashed=True)
    picture.text(20, 380, "KILL is sent one second before the lease ends. azguard exits with 77.", size=13, bold=True)
    return picture.svg()


def _x(second: float) -> float:
    return _LEFT + second * _SCALE


def _y(number: int) -> float:
    return _TOP + number * _ROW


def _bar(picture: Drawing, lane: int, start: float, end: float, words: str, color: str) -> None:
    width = (end - start) * _SCALE
    picture.box(_x(start), _y(lane), width, _BAR, fill=f"{color}22", stroke=color, radius=4)
    picture.text(_x(start) + width / 2, _y(lane) + 17, words, anchor="middle", size=12, color=color)
