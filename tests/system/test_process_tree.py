"""Processes by descent, in real ones of which some end while they are looked for."""

import shutil
import subprocess
import sys

import pytest

from azguard.processes import command_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who descends from whom")

# This process adopts orphans. It has a child with a child with a worker. One of the first two is killed in the midst of
# a look, or the one in the first and the other in the second: what it started then has another parent, whose children
# have been listed already.
LOOK = """
import os, signal, sys, time
from azguard.processes import tree

def start(below):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.write(writing, b"%d %d\\n" % (below, os.getpid()))
        if below:
            start(below - 1)
        signal.pause()

tree.adopt_orphans()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
reading, writing = os.pipe()
start(2)
told = b""
while told.count(b"\\n") < 3:
    told += os.read(reading, 100)
worker, inner, child = (pid for _, pid in sorted(tuple(map(int, line.split())) for line in told.splitlines()))
kills = {"child": [(child, child)], "inner": [(child, inner)], "both": [(child, child), (inner, inner)]}[sys.argv[1]]
alive = {child, inner, worker} - {victim for _, victim in kills}
read = tree.find

def kill(victim):
    os.kill(victim, signal.SIGKILL)
    while os.path.exists(f"/proc/{victim}"):
        time.sleep(0.001)  # the system tells the end of another's child by no signal

def find(pid):
    victim = kills.pop(0)[1] if kills and kills[0][0] == pid else None
    if victim and sys.argv[2] == "before":
        kill(victim)
    found = read(pid)
    if victim and sys.argv[2] == "after":
        kill(victim)
    return found

tree.find = find
found = [each.pid for each in tree.find_descendants(os.getpid())]
for each in alive:
    os.kill(each, signal.SIGKILL)
print(set(found) == alive, len(found) == len(alive), kills)
"""
# A child of several threads has started a worker. The thread that did it ends after it was listed.
LOOK_AT_THREADS = """
import os, signal, threading, time
from azguard.processes import tree

tree.adopt_orphans()
telling, told = os.pipe()
ending, end = os.pipe()
child = os.fork()
if child == 0:
    def work():
        worker = os.fork()
        if worker == 0:
            signal.pause()
        os.write(told, b"%d %d" % (worker, threading.get_native_id()))
        os.read(ending, 1)
    threading.Thread(target=work).start()
    signal.pause()
worker, thread = map(int, os.read(telling, 100).split())
listdir, ended = os.listdir, []

def list_and_end(path):
    listed = listdir(path)
    if path == f"/proc/{child}/task" and not ended:
        os.write(end, b".")
        while os.path.exists(f"{path}/{thread}"):
            time.sleep(0.001)  # the system tells the end of a thread by no signal
        ended.append(str(thread) in listed)
    return listed

os.listdir = list_and_end
found = [each.pid for each in tree.find_descendants(os.getpid())]
for each in (worker, child):
    os.kill(each, signal.SIGKILL)
print(found == [child, worker], ended)
"""
# All of it forks and ends without a pause.
LOOK_AT_WHAT_NEVER_STANDS_STILL = """
import os
from azguard.processes import tree
from azguard.processes.identity import Process

looks = []

def list_children(parent):
    looks.append(parent)
    return [2**22 + len(looks)] if parent == os.getpid() else []

tree._list_children = list_children
tree.find = lambda pid: Process(pid, 1, 1, len(looks), False, False, "")
print([each.pid for each in tree.find_descendants(os.getpid())] == [2**22 + len(looks) - 1], len(looks) > 2)
"""
# This process has all the files open that it may have.
LOOK_WITHOUT_ROOM = """
import os, resource, signal
from azguard.processes import identity, tree

tree.adopt_orphans()
child = os.fork()
if child == 0:
    signal.pause()
birth = identity.find_birth(child)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
try:
    found = [[each.pid for each in tree.find_descendants(os.getpid())] for _ in range(2)]
    lives = identity.find_birth(child) == birth
finally:
    os.kill(child, signal.SIGKILL)
print(found == [[child], [child]], lives, len(taken) > 10)
"""

# A command whose processes end as soon as each has started the next one: what is found has ended when it is killed.
STORM = """
import os, subprocess, sys, time
from azguard.processes import command_tree, tree
from azguard.processes.command_tree import CommandTree

chain = "import os; os.getpid() == os.getpgrp() or os.setsid(); [os._exit(0) for _ in range(20000) if os.fork()]"
tree.adopt_orphans()
group = command_tree.make_control_group() if sys.argv[1] == "grouped" else None
folder = None if group is None else group.folder
shell = f"for n in 1 2 3 4 5 6 7 8; do {sys.executable} -c '{chain}' & done; wait"
join = None if group is None else group.join
running = CommandTree(subprocess.Popen(["sh", "-c", shell], process_group=0, preexec_fn=join).pid, group)
time.sleep(1)  # until the chains have begun
until = time.monotonic() + 20  # the chains last far longer
while not running.is_gone() and time.monotonic() < until:
    running.kill()
    running.reap()
if group is not None:
    group.remove()
print(running.is_gone(), folder is None or folder.exists())
"""


def look(script: str, *words: str) -> str:
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("victim", "moment"), [("child", "before"), ("child", "after"), ("inner", "after"), ("both", "before")]
)
def test_what_a_process_has_started_is_found_even_if_it_ends_meanwhile(victim: str, moment: str) -> None:
    assert look(LOOK, victim, moment) == "True True []\n"


def test_what_a_thread_has_started_is_found_even_if_it_ends_meanwhile() -> None:
    assert look(LOOK_AT_THREADS) == "True [True]\n"


def test_a_look_at_processes_that_never_stand_still_comes_to_an_end() -> None:
    assert look(LOOK_AT_WHAT_NEVER_STANDS_STILL) == "True True\n"


def test_what_a_process_has_started_is_found_where_no_more_files_can_be_opened() -> None:
    assert look(LOOK_WITHOUT_ROOM) == "True True True\n"


def test_a_storm_of_forks_is_ended_at_once_in_a_control_group() -> None:
    made = command_tree.make_control_group()
    if made is None:
        pytest.skip("this process may make no control group")
    made.remove()
    assert look(STORM, "grouped") == "True False\n"


def test_a_proc_of_other_numbers_tells_nothing() -> None:
    # As in a sandbox that numbers its processes anew and shows the /proc of the machine.
    sandbox = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*sandbox, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no process may number others anew here")
    script = (
        "import os, subprocess; from azguard.processes import command_tree, tree;"
        "child = subprocess.Popen(['sleep', '60'], process_group=0);"
        "print(tree.IS_KNOWN, tree.find_descendants(os.getpid()), command_tree.is_group_alive(child.pid)); child.kill()"
    )
    done = subprocess.run([*sandbox, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False [] True\n"
