"""No signal, at whatever moment from the first line of azguard to the last of Python, shows a traceback."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from unittest.mock import patch

import pytest

from azguard.cli import app
from azguard.requests import commits
from tests.support import thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("line", LINES)
def test_a_signal_at_any_moment_shows_no_traceback(struck: CliWorld, line: str) -> None:
    status, told = strike(struck, LINES[line], 0, 0)
    moments = int(told.rpartition("moments: ")[2])
    # The two take turns, so that both meet the beginning, the imports, the work and the end.
    for turn, moment in enumerate(range(3, moments, moments // thorough.count(10, 4))):
        number = (signal.SIGINT, signal.SIGTERM)[turn % 2]
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
    time.sleep(60)  # a signal ends it
except signals.EndedBySignal as ended:
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
    time.sleep(60)  # a signal ends it
except signals.EndedBySignal as ended:
    print(ended.status)
"""
    assert raised_where(code, offline) == "deleted\n143\n"
    # The thread that sends it again may be faster than the one that starts it.
    late = "start = signals.threading.Timer.start\ndef late(it, begun=[]):\n    start(it)\n"
    late += "    if not begun: begun.append(it); time.sleep(0.5)\nsignals.threading.Timer.start = late\n"
    assert raised_where(late + code, offline) == "deleted\n143\n"


def test_what_a_signal_left_half_made_is_not_told(offline: CliWorld) -> None:
    code = """
class Made:
    def __init__(self):
        self.is_half_made = True
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)  # a signal ends it
        self.file = None

    def __del__(self):
        self.file.close()

class Bad:
    def __del__(self):
        raise OSError("told")

Bad()
try:
    Made()
except signals.EndedBySignal as ended:
    print(ended.status)
"""
    whole = f"import os, signal, time\nfrom azguard.cli import signals\nsignals.end_in_order()\n{code}"
    ran = subprocess.run([sys.executable, "-c", whole], capture_output=True, env=offline.environ(), timeout=60)
    assert (ran.stdout, ran.stderr.count(b"told"), b"file" in ran.stderr.split(b"told")[-1]) == (b"143\n", 1, False)


def test_a_signal_after_the_end_is_known_hastens_it_and_changes_nothing(offline: CliWorld) -> None:
    code = """
signals.hasten(42)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)  # a signal ends it
"""
    whole = f"import os, signal, time\nfrom azguard.cli import signals\nsignals.end_in_order()\n{code}"
    ran = subprocess.run([sys.executable, "-c", whole], capture_output=True, env=offline.environ(), timeout=60)
    assert (ran.returncode, ran.stderr) == (42, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_an_error_is_told_hastens_the_end_and_keeps_its_status(offline: CliWorld, number: int) -> None:
    code = f"""
import os, sys, time
from azguard.cli import app, errors

def struck(*words, told=errors.report):
    os.kill(os.getpid(), {int(number)})
    return told(*words)

errors.report = struck
app.run(["blob", "show"])
time.sleep(60)  # a signal ends it
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=offline.environ(), timeout=60)
    assert (ran.returncode, b"Traceback" in ran.stderr) == (2, False), ran.stderr


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


# What is there before, what writes, and what this scope can do afterwards only if it knows of that write; %s is a
# container of its own.
_THERE = ("blob", "put", "%s/there", "-f", "new")
_HELD = ("lease", "acquire", "container:%s")
_TABLE = ("table", "create", "t%s")
WRITES: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...], tuple[str, ...]]] = {
    "blob put": ((), ("blob", "put", "%s/a", "-f", "new"), ("blob", "put", "%s/a", "-f", "newer")),
    "blob delete": ((_THERE,), ("blob", "delete", "%s/there"), _THERE),
    "container create": ((), ("container", "create", "%s-2"), ("container", "delete", "%s-2", "--etag", "@last")),
    "container delete": (
        (_HELD,), ("container", "delete", "%s", "--with-contents", "--last-writer-wins", "--lease-id", "@held"), ()
    ),
    "entity insert": ((_TABLE,), ("entity", "insert", "t%s/p/r", "n=1"), ("entity", "replace", "t%s/p/r", "n=2")),
    "entity delete": (
        (_TABLE, ("entity", "insert", "t%s/p/there", "n=1")),
        ("entity", "delete", "t%s/p/there"),
        ("entity", "insert", "t%s/p/there", "n=1"),
    ),
    "lease acquire": ((_THERE,), ("lease", "acquire", "blob:%s/there"), ("lease", "release", "blob:%s/there")),
    "lease release": ((_HELD,), ("lease", "release", "container:%s"), _HELD),
    "safe-update": (
        (_THERE,), ("safe-update", "blob:%s/there", "--append", "more"), ("blob", "delete", "%s/there")
    ),
}  # fmt: skip


def fill(cli: CliWorld, before: tuple[tuple[str, ...], ...]) -> str:
    """Return a new container after these lines, and let this scope know of what they wrote."""
    name = cli.container()
    for content in ("new", "newer"):
        cli.file(content, content)
    for line in before:
        assert cli.call(*typed(line, name)).code == 0
    return name


@contextmanager
def struck_after_the_commit(moment: int) -> Iterator[Callable[[], int]]:
    """Send SIGTERM to this process at so many calls of functions after the commit; yield how many there were."""
    calls, announce = 0, commits.announce

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if event == "call":
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGTERM)
        # What comes after the run is the tests' own, and no longer handles signals.
        elif event == "return" and frame.f_code is app.run.__code__:
            sys.setprofile(None)

    def announced() -> None:
        sys.setprofile(count)
        announce()

    # The profile sees the announcement itself too: the first moment is before anything has been done about it.
    try:
        with patch.object(commits, "announce", announced):
            yield lambda: calls
    finally:
        sys.setprofile(None)


def typed(line: tuple[str, ...], name: str) -> list[str]:
    """Return the words of a line for a container."""
    return [word.replace("%s", name) for word in line]


@pytest.mark.parametrize("written", WRITES)
def test_a_signal_after_the_commit_is_no_failure_and_the_write_is_remembered(cli: CliWorld, written: str) -> None:
    before, line, after = WRITES[written]
    counts = []
    for _ in range(3):  # the first imports what it needs, and another may tidy up besides
        name = fill(cli, before)
        with struck_after_the_commit(0) as counted:
            assert cli.call(*typed(line, name)).code == 0
        counts.append(counted())
    # An interrupted acquire is given back: there it begins with the announcement.
    first = 2 if written == "lease acquire" else 1
    for moment in (first, 5, 20, min(counts) // 4, min(counts) // 2):
        name = fill(cli, before)
        with struck_after_the_commit(moment) as seen:
            ran = cli.call(*typed(line, name))
        assert (moment, seen() >= moment, ran.code, ran.err) == (moment, True, 0, "")
        if after:
            assert cli.call(*typed(after, name)).code == 0, moment
