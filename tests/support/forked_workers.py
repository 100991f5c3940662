"""Workers of pytest-xdist, forked from a process that has imported all tests: each would take two seconds for that."""

import os
import shlex
import sys
import types
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from tests.support import forked, forked_client

# Fewer workers import the tests faster than they would be forked.
_FEW = 3


def prepare(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Have the workers forked, unless they are few."""
    if len(specs) < _FEW:
        return
    path = forked.await_ready(forked.start(__name__, *map(str, config.invocation_params.args)))
    for spec in specs:
        spec.python = shlex.join([sys.executable, "-I", "-S", forked_client.__file__, path])


def main(path: str, words: Sequence[str]) -> None:
    """Import the tests that these words choose, and serve; a fork runs the code that execnet gives to Python."""
    alone = ["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
    # A worker tells what is wrong with a test, or with the words.
    with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        pytest.main([*words, *alone])
    # Pytest, which rewrites it, comes first. In a new clone each worker would take two seconds to make this table.
    from hypothesis.internal import charmap

    charmap.charmap()
    forked.serve(path)
    # As after ``python -c``: a process pool of a test does not import this module again.
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(sys.argv[-1], vars(sys.modules["__main__"]))  # as Python does
    forked.end(SystemExit(0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3:])
