"""What a contender for a lock runs under it: says when it is inside, and looks whether another is.

    python -I -S lock_section.py FOLDER RUN SLOTS SECONDS [child] [stubborn]

A RUN whose name begins with "reader" may be beside other readers, and beside none else.

FOLDER/inside has a link for each section, which names the processes of that section. It is never removed by the
section itself: the next holder looks whether those processes have really gone, however they ended. FOLDER/log has a
line for each event, in the order in which they happened. Only what starts fast is imported.
"""

import os
import sys
import time
from collections.abc import Callable

# Longer than any race waits for it: it has to be ended.
_FOREVER_SECONDS = 600
READER = "reader"


def main(folder: str, run: str, slots: int, seconds: float, manners: list[str]) -> None:
    """Be inside for so many seconds, looking for others at the beginning and at the end."""
    if "stubborn" in manners:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = _child() if "child" in manners else 0
    inside = os.path.join(folder, "inside")
    mine = [pid for pid in (os.getpid(), child) if pid]
    # Only now can others see us; then we look. Of two who overlap, one at least so sees the other.
    os.symlink(",".join(f"{pid}:{started(pid)}" for pid in mine), os.path.join(inside, run))
    say = _log(os.path.join(folder, "log"))
    _look(inside, run, slots, say)
    say(f"enter {run} {os.environ['AZGUARD_LOCK']} {os.environ['AZGUARD_FENCE']}")
    time.sleep(seconds)  # the work in the section
    _look(inside, run, slots, say)
    if child:
        os.kill(child, 9)
        os.waitpid(child, 0)
    say(f"leave {run}")


def started(pid: int) -> str:
    """Return when a process was started, by which it is told from a later one of its number; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # pid (name) state ...: the name may hold anything. The start is the 22nd field.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def alive(link: str) -> list[int]:
    """Return which of a section's processes still run."""
    try:
        processes = [each.split(":") for each in os.readlink(link).split(",")]
    except FileNotFoundError:
        return []  # a later section has found that they do not
    return [int(pid) for pid, start in processes if started(int(pid)) == start]


def _child() -> int:
    """Start a process that does not end by itself, nor by a request."""
    pid = os.fork()
    if pid == 0:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(_FOREVER_SECONDS)  # it is killed
        os._exit(0)
    return pid


def _look(inside: str, run: str, slots: int, say: Callable[[str], object]) -> None:
    """Say who else is inside, and who has gone; what is left of those is removed."""
    others = []
    for other in os.listdir(inside):
        if other == run:
            continue
        if alive(os.path.join(inside, other)):
            others.append(other)
            continue
        say(f"gone {other} {run}")
        try:
            os.unlink(os.path.join(inside, other))
        except FileNotFoundError:
            pass
    rivals = [other for other in others if not (run.startswith(READER) and other.startswith(READER))]
    if len(rivals) >= slots:
        say(f"overlap {run} {' '.join(sorted(rivals))}")


def _log(path: str) -> Callable[[str], object]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    # One write is one line, whatever others write at the same time.
    return lambda text: os.write(file, f"{time.time():.6f} {text}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:])
