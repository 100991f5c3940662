"""No signal, at whatever moment from the first line of azguard to the last of Python, shows a traceback."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.support.cli_world import CliWorld
from tests.support.places import REPOSITORY

# Sends a signal to its own process at the nth of the moments that Python reports to an audit hook: imports, opened
# files, sockets, and what the interpreter does at its end. For the 0th, of which there is none, it tells how many.
# Counting begins with azguard's first line: before it, Python itself answers Ctrl-C, with a traceback of its own.
SITE = """
import os, sys

def hook(event, args, state=[0], at=int(os.environ["KILL_AT"]), number=int(os.environ["KILL_BY"]),
         kill=os.kill, pid=os.getpid(), write=os.write):
    if not state[0] and event == "exec" and args[0].co_filename.endswith("azguard/__main__.py"):
        state[0] = 1
    if not state[0] or event == "os.kill":
        return
    state[0] += 1
    if state[0] == at:
        kill(pid, number)
    if not at and event == "cpython.PyInterpreterState_Clear":
        write(2, b"moments: %d\\n" % state[0])

sys.addaudithook(hook)
"""
_TORN = re.compile("Traceback|panic|ignored")
LINES = {"help": ("blob",), "read": ("blob", "show", "site/a", "--timeout", "0.1s")}


@pytest.fixture
def struck(offline: CliWorld) -> CliWorld:
    """Return a world whose runs of azguard strike themselves."""
    (offline.root / "site").mkdir()
    offline.file("site/sitecustomize.py", SITE)
    return CliWorld(offline.root, "AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/acc")


def strike(world: CliWorld, words: tuple[str, ...], moment: int, number: int) -> tuple[int, str]:
    """Strike a run at a moment, and return its exit status and what it said."""
    path = f"{world.root / 'site'}{os.pathsep}{REPOSITORY}"
    environ = {"KILL_AT": str(moment), "KILL_BY": str(int(number)), "PYTHONPATH": path}
    running = world.begin(*words, env=environ, stdin=subprocess.DEVNULL)
    _, err = running.communicate(timeout=60)
    return running.returncode, err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("line", LINES)
def test_a_signal_at_any_moment_shows_no_traceback(struck: CliWorld, line: str, number: signal.Signals) -> None:
    status, told = strike(struck, LINES[line], 0, 0)
    moments = int(told.rpartition("moments: ")[2])
    for moment in range(1 + int(number), moments, moments // 8):
        code, said = strike(struck, LINES[line], moment, number)
        known = code in (status, 128 + number, -number)
        assert (known, _TORN.search(said)) == (True, None), (moment, code, said)


def raised_where(code: str, folder: CliWorld) -> str:
    """Run code that sends itself SIGTERM, under our handling of signals, and return what it prints."""
    whole = f"import os, signal, sys, time\nfrom azguard.cli import signals\nsignals.end_in_order()\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, cwd=folder.root, env=folder.environ(), timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout


def test_an_import_is_not_torn_apart(offline: CliWorld) -> None:
    offline.file("whole.py", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nend = 'imported'\n")
    code = """
try:
    sys.path.insert(0, "")
    import whole
    print(whole.end)
    time.sleep(60)
except signals.Ended as ended:
    print(ended.status)
"""
    assert raised_where(code, offline) == "imported\n143\n"


def test_a_signal_in_a_destructor_is_not_lost(offline: CliWorld) -> None:
    code = """
class Bad:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        os.getpid()

try:
    Bad()
    print("deleted")
    time.sleep(60)
except signals.Ended as ended:
    print(ended.status)
"""
    assert raised_where(code, offline) == "deleted\n143\n"


def test_a_signal_after_the_end_is_known_hastens_it_and_changes_nothing(offline: CliWorld) -> None:
    code = """
signals.hasten(42)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
    whole = f"import os, signal, time\nfrom azguard.cli import signals\nsignals.end_in_order()\n{code}"
    ran = subprocess.run([sys.executable, "-c", whole], capture_output=True, env=offline.environ(), timeout=60)
    assert (ran.returncode, ran.stderr) == (42, b"")


def test_what_we_were_started_to_ignore_stays_ignored(offline: CliWorld) -> None:
    code = """
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signals.end_in_order()
signals.hasten(1)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    os.kill(os.getpid(), number)
print("alive")
"""
    assert raised_where(code, offline) == "alive\n"
