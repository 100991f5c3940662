"""A process of a race of appends: it runs one command line after another, and writes down what each said.

    python -m tests.races.append_worker BLOB WRITER LINES WORDS... < nothing

A line of the journal is ``begin N`` before a command, and ``end N STATUS`` after it.
"""

import contextlib
import io
import os
import sys
from pathlib import Path

from azguard.cli import app


def main(journal: Path, writer: str, count: int, text: str, words: list[str]) -> None:
    """Append so many lines; ``{writer}`` and ``{number}`` in the text are filled in."""
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(count):
        line = text.format(writer=writer, number=number)
        os.write(descriptor, f"begin {number}\n".encode())
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            status = app.run([each.format(line=line) for each in words])
        os.write(descriptor, f"end {number} {status}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:])
