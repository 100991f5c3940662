"""Tests of units need no other process and no socket: what asks for one fails, so that they stay a matter of seconds.

What starts a process or a server belongs into tests/system.
"""

import platform
import sys
from collections.abc import Iterator

import pytest

_FORBIDDEN = frozenset(
    {"socket.__new__", "subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
)
_forbidding = False
_asked_for: list[str] = []


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if _forbidding and event in _FORBIDDEN:
        _asked_for.append(event)
        raise AssertionError(f"a unit test asked for {event}{arguments}: it belongs into tests/system")


# The SDK asks for this when it is first used, and Python asks another process for it, once.
platform.processor()
# A hook of the interpreter sees every way to it, and cannot be taken away again: hence the switch.
sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Fail a test that asked for a process or a socket, even if what asked has swallowed the refusal."""
    global _forbidding  # noqa: PLW0603  # the hook is told by nothing else
    _asked_for.clear()
    _forbidding = True
    yield
    _forbidding = False
    assert _asked_for == []
