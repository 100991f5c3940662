"""Run the demo on a terminal and keep what it leaves there: ``python -m docs.pictures.record_demo``."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

FILE = Path(__file__).parent / "demo.txt"
# The table is drawn again and again, each time from its first line on.
_REDRAWN = re.compile(r"\x1b\[\?25l.*\x1b\[2K(?=\x1b\[1mway)", re.DOTALL)
_CURSOR = re.compile(r"\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r")
#: How the last part begins, which the picture leaves out.
_NOTES = "\nA lost answer is"


def main() -> None:
    """Run the demo and write the file."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    words = [sys.executable, "-m", "azguard", "demo"]
    demo = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    shown = b""
    # The end of a terminal that no process holds open any more is an error.
    with suppress(OSError):
        while piece := os.read(ours, 65536):
            shown += piece
    if demo.wait():
        sys.exit(shown.decode())
    FILE.write_text(last_frame(shown.decode()), encoding="utf-8")


def last_frame(shown: str) -> str:
    """Return the lines that stay on the terminal at the end, up to the notes."""
    text = _CURSOR.sub("", _REDRAWN.sub("", shown.replace("\r\n", "\n")))
    return text.partition(_NOTES)[0]


if __name__ == "__main__":
    main()
