"""Processes by descent, in real ones of which some end while they are looked for."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who descends from whom")

# This process adopts orphans. Its child starts a worker; the child is killed in the midst of a look, which then finds
# the worker below neither of them.
LOOK = """
import os, signal, sys, time
from azguard.processes import tree

def await_state(pid, letter):
    while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != letter:
        time.sleep(0.001)

tree.adopt_orphans()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    worker = os.fork()
    if worker == 0:
        os.setsid()
    else:
        os.write(writing, b"%d" % worker)
    while True:
        time.sleep(100)
worker = int(os.read(reading, 20))
read, kills = tree.find, [sys.argv[1]]

def kill_child():
    os.kill(child, signal.SIGKILL)
    await_state(child, "Z")

def find(pid):
    if pid == child and kills == ["before it is read"]:
        kills.clear()
        kill_child()
    found = read(pid)
    if pid == child and kills == ["before its children are listed"]:
        kills.clear()
        kill_child()
    return found

tree.find = find
found = [each.pid for each in tree.find_descendants(os.getpid())]
os.kill(worker, signal.SIGKILL)
print(found == [worker], kills)
"""


@pytest.mark.parametrize("when", ["before it is read", "before its children are listed"])
def test_what_a_process_has_started_is_found_even_if_it_ends_while_it_is_looked_at(when: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOOK, when], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_a_look_at_processes_that_end_all_the_time_comes_to_an_end() -> None:
    look = (
        "import os\n"
        "from azguard.processes import tree\n"
        "tree._list_children = lambda parent: [2**22 + len(asked)]\n"
        "asked = []\n"
        "tree.find = lambda pid: asked.append(pid)\n"
        "print(tree.find_descendants(os.getpid()), len(asked) > 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"
