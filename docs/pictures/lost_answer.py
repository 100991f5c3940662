"""The loop of safe-update, with an answer that gets lost."""

from docs.pictures.drawing import BLUE, GREEN, GREY, ORANGE, RED, Drawing

_GREEN, _RED, _ORANGE, _BLUE = "#dafbe1", "#ffebe9", "#fff8c5", "#ddf4ff"


def draw() -> str:
    """Return the picture."""
    picture = Drawing(860, 420, "The loop of safe-update: after a lost answer it reads again and looks for its own id")
    picture.labelled(30, 40, 190, 62, "read", "content, ETag, last 16 writes", fill=_BLUE, stroke=BLUE)
    picture.labelled(300, 40, 190, 62, "change", "your edit or command", fill=_BLUE, stroke=BLUE)
    picture.labelled(
        570, 40, 250, 62, "write, with an id of its own", "only if the ETag is still that one", fill=_BLUE, stroke=BLUE
    )
    picture.arrow(220, 71, 298, 71)
    picture.arrow(490, 71, 568, 71)
    _outcomes(picture)
    _looks(picture)
    return picture.svg()


def _outcomes(picture: Drawing) -> None:
    """Draw what the service can answer to the write."""
    picture.labelled(660, 150, 160, 44, "written: done, 0", fill=_GREEN, stroke=GREEN)
    picture.arrow(740, 102, 740, 148, color=GREEN)
    picture.labelled(480, 150, 160, 44, "no answer", fill=_ORANGE, stroke=ORANGE)
    picture.path("M 640 102 L 560 148", color=ORANGE)
    picture.labelled(296, 150, 160, 44, "another was first", fill=_RED, stroke=RED)
    picture.path("M 600 102 L 420 148", color=RED)
    picture.path("M 296 172 L 125 172 L 125 104", color=GREY)
    picture.text(138, 164, "again, with fresh content", size=12, color=GREY)


def _looks(picture: Drawing) -> None:
    """Draw what is found when the blob is read again."""
    picture.labelled(400, 232, 320, 44, "read again, and look at the last 16 writes", fill=_BLUE, stroke=BLUE)
    picture.arrow(560, 194, 560, 230, color=ORANGE)
    found = (
        (18, ("our id is there:", "it was applied, done, 0"), _GREEN, GREEN),
        (228, ("the ETag is still that one:", "writing again is safe"), _BLUE, BLUE),
        (438, ("another id replaced it:", "ours was not applied: again"), _RED, RED),
        (648, ("nothing is left to tell by:", "it cannot be known, 74"), _ORANGE, ORANGE),
    )
    for x, words, fill, stroke in found:
        picture.labelled(x, 324, 194, 62, *words, fill=fill, stroke=stroke)
        picture.path(f"M 560 276 L {x + 97} 322", color=stroke)
