"""Draw every picture anew: ``python -m docs.pictures``."""

from pathlib import Path

from docs.pictures import contention, lost_answer, lost_lock, terminal, writers

FOLDER = Path(__file__).parent
PICTURES = {
    "writers": writers.draw,
    "lost-lock": lost_lock.draw,
    "lost-answer": lost_answer.draw,
    "contention": contention.draw,
    "demo": terminal.demo,
    "refusal": terminal.refusal,
}


def main() -> None:
    """Write the pictures."""
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
