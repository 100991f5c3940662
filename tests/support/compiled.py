"""The modules of azguard and of the tests, compiled before several workers would each compile all of them."""

import os
import subprocess
import sys

from tests.support.places import REPOSITORY

# What two processes collect, about as long each; what they import is compiled with it.
_HALVES = (("tests/unit", "tests/files"), ("tests/azurite", "tests/faults", "tests/races", "tests/system"))


def ensure() -> None:
    """Compile them, unless this was done already.

    The workers of a new clone take twice as long to begin without this: each would compile all, at the same time.
    """
    if list((REPOSITORY / "tests/system/__pycache__").glob("test_help.*-pytest-*.pyc")):
        return
    words = (sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-n", "0", "-p", "no:cacheprovider")
    environ = {**os.environ, "PYTEST_ADDOPTS": ""}
    halves = [
        subprocess.Popen(
            (*words, *half), cwd=REPOSITORY, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        for half in _HALVES
    ]
    for each in halves:
        each.wait()
