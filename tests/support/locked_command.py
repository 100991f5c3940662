"""What runs under the lock in the tests: ``python locked_command.py FOLDER [TRAIT...]``.

FOLDER/beats says when it began and, brought up to date about fifty times a second, when it lived last. FOLDER/signals
has a line for each signal. It ends when FOLDER/end names an exit status. Traits: ``deaf`` survives TERM; ``family`` has
a child in its group, as deaf.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

_NOTED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCONT)
# Whatever goes wrong in a test, nothing stays for long.
_LONGEST_SECONDS = 100.0
_BEAT_SECONDS = 0.02


def main(folder: Path, traits: list[str]) -> int:
    """Live until told to end, or ended."""

    def note(number: int, frame: FrameType | None) -> None:
        append(folder / "signals", f"{time.clock_gettime(time.CLOCK_BOOTTIME)} {signal.Signals(number).name}")
        if number != signal.SIGCONT and "deaf" not in traits:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in _NOTED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, note)
    if "family" in traits and os.fork() == 0:
        folder = folder / "child"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pid.new").write_text(str(os.getpid()))
    (folder / "pid.new").rename(folder / "pid")
    return live(folder / "beats", folder / "end")


def live(beats: Path, end: Path) -> int:
    """Say that we live until told to end, in as few calls of the system as can be: some do so for half a minute."""
    until = time.monotonic() + _LONGEST_SECONDS
    last = os.open(beats, os.O_WRONLY | os.O_CREAT)
    began = os.write(last, beat())
    name = os.fspath(end)
    while time.monotonic() < until:
        # A test creates the file before it writes the status.
        if os.access(name, os.F_OK) and (status := end.read_text()):
            return int(status)
        time.sleep(_BEAT_SECONDS)  # the work of the command: a beat, again and again
        os.pwrite(last, beat(), began)
    return 1


def beat() -> bytes:
    """Return the time on the clock of leases, as a line of one length."""
    return b"%020.6f\n" % time.clock_gettime(time.CLOCK_BOOTTIME)


def append(file: Path, line: str) -> None:
    """Add a line to a file."""
    # Plain calls of the system: a signal handler may run in the midst of this, and does the same.
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(opened, line.encode() + b"\n")
    os.close(opened)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
