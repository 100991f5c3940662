"""The steps of the protocol, a line of JSON each, in the file that ``AZGUARD_TRACE`` names.

A step is noted before a request is sent and once its outcome is known, so that a process that is killed in between has
left what it was about to do. Many processes may write into one file: each line is one write at its end.

What could give access, or is content, is never written. A lease id, a receipt, and the keys of an entity are written as
a digest, which tells the same from another, and no more. A field that is not in ``_SPELL`` is a name, a number or an
outcome, which the code that notes it has chosen.
"""

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from azguard.accounts.account import Target

#: The variable that names the file.
VARIABLE = "AZGUARD_TRACE"
#: The command of the line of a batch that a thread works on. A thread that begins others tells them.
line_command: ContextVar[str | None] = ContextVar("line_command", default=None)
_DIGITS = 12
_LONGEST_CODE = 64
_DONE = {
    "acquire": "acquired",
    "renew": "renewed",
    "change": "changed",
    "release": "released",
    "break": "broken",
}


class _Trace:
    """The trace of one command."""

    def __init__(self, path: str, command: str, warn: Callable[[str], None]) -> None:
        #: The numbers of the steps; a line that is missing shows.
        self._numbers = itertools.count(1)
        self.writes = itertools.count(1)
        self._path: str | None = os.path.abspath(path)
        self._command, self._warn = command, warn
        #: The pid and the identity of the process that wrote last: a fork is another one.
        self._process = 0, ""
        #: The pipe or device that this process has open.
        self._stream: int | None = None

    def write(self, step: str, target: "Target | None", facts: Mapping[str, Any]) -> None:
        """Append a step. A file that cannot be written is said once, and tried no more."""
        import json

        path = self._path
        if path is None:
            return
        spelt = {name: _SPELL.get(name, _keep)(value) for name, value in facts.items()}
        line = {
            "at": round(time.time(), 6),
            "process": self._identify(),
            "n": next(self._numbers),
            "command": line_command.get() or self._command,
            "step": step,
            **({} if target is None else {"endpoint": target.endpoint, "address": describe(target)}),
            **spelt,
        }
        try:
            self._stream = _append(path, json.dumps(line).encode() + b"\n", self._stream)
        except OSError as error:
            self._path = None
            self._warn(f"{VARIABLE}: {path} cannot be written: {error.strerror}")

    def _identify(self) -> str:
        pid = os.getpid()
        if self._process[0] != pid:
            self._process = pid, f"{pid}.{os.urandom(4).hex()}"
            # In a process that was forked, the number could be another file's.
            self._stream = None
        return self._process[1]

    def close(self) -> None:
        if self._stream is not None:
            os.close(self._stream)


_trace: _Trace | None = None


@contextmanager
def into(path: str, command: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Note the steps of a command in a file for the length of a ``with`` block; ``warn`` is told if that fails."""
    global _trace  # noqa: PLW0603  # all threads of a command write into its one trace
    before, own = _trace, _Trace(path, command, warn)
    _trace = own
    try:
        yield
    finally:
        _trace = before
        own.close()


def note(step: str, target: "Target | None" = None, **facts: Any) -> None:
    """Note a step, if that was asked for."""
    if _trace is not None:
        _trace.write(step, target, facts)


@contextmanager
def note_lease(action: str, target: "Target", lease_id: str | None, seconds: int | None = None) -> Iterator[None]:
    """Note that something is asked for a lease, and that it was done, unless an error is raised."""
    note("asking", target, action=action, lease=lease_id, seconds=seconds)
    yield
    note(_DONE[action], target, lease=lease_id)


def new_write() -> int:
    """Return a number that the steps of one write have in common; 0 where none are noted."""
    return 0 if _trace is None else next(_trace.writes)


def digest(text: str | None) -> str | None:
    """Return the hash of a text: a trace names a text by it, and does not show the text."""
    import hashlib

    return None if text is None else hashlib.sha256(text.lower().encode()).hexdigest()[:_DIGITS]


def describe(target: "Target") -> str:
    """Return an address without what is content: the keys of an entity can be the data of a person."""
    address = target.address
    if address.kind.value != "entity":
        return str(address)
    return f"entity:{address.folded.parts[0]}/#{digest('/'.join(address.parts[1:]))}"


def _append(path: str, line: bytes, opened: int | None) -> int | None:
    """Append a line, and return the descriptor of a pipe or a device, which stays open; a file is closed again.

    The reader of a pipe sees its end when no writer has it open. azguard does not wait for a slow reader, which misses
    lines, and their numbers.
    """
    if opened is None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        opened = os.open(path, flags, 0o600)
    is_file = stat.S_ISREG(os.fstat(opened).st_mode)
    try:
        with suppress(BlockingIOError):
            os.write(opened, line)
    finally:
        if is_file:
            os.close(opened)
    return None if is_file else opened


def _keep(value: Any) -> Any:
    return value


def _spell_version(etag: str | None) -> str:
    from azguard.requests.lineage import bare

    return bare(etag)


def _spell_error(error: BaseException | None) -> str | None:
    """Return the code or the status of a refusal; None where there is neither."""
    import re

    from azguard.requests.service_codes import service_code, status

    if error is None:
        return None
    found = service_code(error) or getattr(error, "service_code", None) or status(error)
    return None if found is None else re.sub(r"\W", "", str(found))[:_LONGEST_CODE]


_SPELL: Mapping[str, Callable[[Any], Any]] = {
    "lease": digest,
    "key": digest,
    "over": _spell_version,
    "version": _spell_version,
    "etag": lambda etag: None if etag is None else _spell_version(etag),
    "code": _spell_error,
}
