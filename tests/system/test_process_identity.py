import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from azguard.processes import identity
from tests.support.emulator_world import until

WITHOUT_FIRST_THREAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(100,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_has_one_birth_and_no_other_has_it() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            births = [
                identity.find_birth(os.getpid()),
                identity.find_birth(os.getpid()),
                identity.find_birth(other.pid),
            ]
        finally:
            other.kill()
    assert births[0] is not None
    assert births[0] == births[1] != births[2]


def test_a_dead_process_has_no_birth_even_before_it_is_collected() -> None:
    with subprocess.Popen(["true"]) as child:
        until(lambda: identity.find_birth(child.pid) is None)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process ends with its first thread")
def test_a_process_lives_as_long_as_one_of_its_threads() -> None:
    with subprocess.Popen([sys.executable, "-c", WITHOUT_FIRST_THREAD]) as child:
        try:
            first = Path(f"/proc/{child.pid}/task/{child.pid}/stat")
            until(lambda: first.read_bytes().rpartition(b")")[2].split()[0] == b"Z")
            assert identity.find_birth(child.pid) is not None
        finally:
            child.kill()


def test_ps_tells_the_same_where_there_is_no_proc() -> None:
    if shutil.which("ps") is None:
        pytest.skip("no ps here")
    with subprocess.Popen(["true"]) as child:
        until(lambda: identity._find_birth_by_ps(child.pid) is None)
    assert identity._find_birth_by_ps(os.getpid()) == identity._find_birth_by_ps(os.getpid()) is not None


def test_end_kills_what_ignores_term() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        born = identity.find_birth(child.pid)
        assert born is not None
        identity.end(child.pid, born, grace_seconds=0.2)
        assert child.wait(60) == -9
