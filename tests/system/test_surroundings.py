"""The tests are the same in a terminal, in the background of a script, and in CI."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.support.places import REPOSITORY
from tests.support.terminals import open_terminal

# Sheds what it inherited, and says what a program that it starts finds.
PROBE = """
import os, subprocess, sys
from tests.support import surroundings
surroundings.shed()
code = '''
import os, signal, sys
from azguard.processes.signals import in_foreground
ignored = [n for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM) if signal.getsignal(n) is signal.SIG_IGN]
print(in_foreground(), ignored, sys.dont_write_bytecode, flush=True)
'''
sys.exit(subprocess.run([sys.executable, "-c", code]).returncode + int(sys.argv[1]))
"""


def probed(status: int, wrapped: tuple[str, ...]) -> tuple[int, str]:
    """Run the probe in a session with a terminal of its own; return its status and what it showed."""
    words = [*wrapped, sys.executable, "-c", PROBE, str(status)]
    ours, theirs = open_terminal()
    running = subprocess.Popen(
        words, cwd=REPOSITORY, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, start_new_session=True,
        stdin=theirs, stdout=theirs, stderr=theirs,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # Linux says so when the other side is closed.
    os.close(ours)
    return running.wait(), shown.decode().strip()


IN_A_SHELL = ("bash", "-c", '"$@"; exit $?', "-")
IN_THE_BACKGROUND = ("bash", "-c", '"$@" & wait $!', "-")
AFTER_NOHUP = ("bash", "-c", 'trap "" INT HUP; "$@"; exit $?', "-")


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize(
    "wrapped", [(), IN_A_SHELL, IN_THE_BACKGROUND, AFTER_NOHUP], ids=["leader", "shell", "background", "nohup"]
)
def test_what_the_tests_start_has_no_terminal_and_no_signal_ignored_and_keeps_modules(
    wrapped: tuple[str, ...], status: int
) -> None:
    assert probed(status, wrapped) == (status, "False [] False")


def test_we_have_shed_it_ourselves(tmp_path: Path) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN); open('/dev/tty')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.stdout, "OSError" in ran.stderr or "No such" in ran.stderr) == ("False\n", True)
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
