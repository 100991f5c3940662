"""Workers of pytest-xdist, forked from a process that has collected all tests: each would take seconds for that."""

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


class _Collected:
    """The session of the process that serves, which each of its forks goes on with instead of collecting anew."""

    _session: pytest.Session

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._session = session

    def go_on(self, config: pytest.Config) -> pytest.Session:
        """Return the session with the configuration of a worker, as ``Session.from_config`` returns a new one."""
        session, fixtures = self._session, self._session._fixturemanager
        nodes = {node: None for item in session.items for node in item.listchain()}
        fixtures.config = config
        for node in nodes:
            node.config = config
        config.pluginmanager.register(session, name="session")

        def collect() -> Sequence[pytest.Item]:
            # The start of the session has made a manager that knows no fixture of a module.
            session._fixturemanager = fixtures
            for node in nodes:
                if isinstance(node, pytest.Directory):
                    config.pluginmanager._loadconftestmodules(
                        node.path,
                        config.getoption("importmode"),
                        rootpath=config.rootpath,
                        consider_namespace_packages=config.getini("consider_namespace_packages"),
                    )
            config.hook.pytest_collection_modifyitems(session=session, config=config, items=session.items)
            config.hook.pytest_collection_finish(session=session)
            session.testscollected = len(session.items)
            return session.items

        vars(session)["perform_collect"] = collect
        return session


def main(path: str, words: Sequence[str]) -> None:
    """Collect the tests that these words choose, and serve; a fork runs the code that execnet gives to Python."""
    collected = _Collected()
    alone = ["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
    # A worker tells what is wrong with a test, or with the words.
    with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        code = pytest.main([*words, *alone], plugins=[collected])
    if code == pytest.ExitCode.OK:
        pytest.Session.from_config = collected.go_on  # type: ignore[method-assign]
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
