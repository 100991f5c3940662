"""Runs lines within this process, each in a thread, as if each were a process of its own.

Its own are its streams, options, conditions, deadline, warnings and exit status. All lines share the environment, the
working folder, the handlers of signals, the caches of Python's functions, the list of those who listen to requests, the
trace, and what ``SharedState`` keeps: accounts, with their login and their connections, and the database of the cache.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from azguard.address import Kind
from azguard.batch import Address, Line, LineEnd, TextLine, parse
from azguard.cli import errors
from azguard.cli.context import Environment
from azguard.cli.errors import CommandMissing, Facts, SharedState
from azguard.cli.parsing import parser
from azguard.cli.parsing.parser import ReadyCommand
from azguard.errors import AzguardError, UsageError
from azguard.frozen import frozen

_NAMES = ("stdin", "stdout", "stderr")
# A thread that a line starts has none, and tells on those of the process.
_streams: ContextVar[Mapping[str, io.TextIOWrapper]] = ContextVar("streams")
# These options of the batch hold for each line that does not say otherwise.
_NOT_PASSED_ON = ("output", "query", "verbose", "debug")
# What is the process's, and what would not be JSON.
_NOT_IN_A_LINE = ("verbose", "debug", "watch")


class _Divided:
    """Stands for a standard stream: that of the line that a thread is running, else that of the process."""

    def __init__(self, name: str) -> None:
        self._name, self._own = name, getattr(sys, name)

    def __getattr__(self, name: str) -> Any:
        found = _streams.get({}).get(self._name, self._own)
        return getattr(found, name)


def divide_streams() -> None:
    """Give each line streams of its own, from now until this process ends."""
    for name in _NAMES:
        setattr(sys, name, _Divided(name))


class LineStreams:
    """The streams of one line, in memory."""

    def __init__(self, stdin: str = "") -> None:
        self.stdout, self.stderr = io.BytesIO(), io.BytesIO()
        content = io.BytesIO(stdin.encode("utf-8", "surrogatepass")), self.stdout, self.stderr
        texts = (io.TextIOWrapper(each, "utf-8", errors="surrogatepass", write_through=True) for each in content)
        self._texts = dict(zip(_NAMES, texts, strict=True))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put them in the place of the standard ones, for the code of a block."""
        before = _streams.set(self._texts)
        try:
            yield
        finally:
            _streams.reset(before)


@frozen
class LineRunner:
    """Prepares the lines of one batch."""

    env: Environment
    common: SharedState
    #: Raises a UsageError for a command that cannot run in a line.
    refuse: Callable[[ReadyCommand], None]

    def prepare(self, text: TextLine) -> "LineWork":
        """Return the work of a line, which may be to say why it cannot be run."""
        line, facts, streams = Line(text.number, ()), Facts(), LineStreams()
        try:
            line = parse(text)
            typed = {name: value for name, value in self.env.shared.items() if name not in _NOT_PASSED_ON}
            facts, streams = Facts(line.words, typed, common=self.common), LineStreams(line.stdin)
            with streams.in_place():
                ready = self._parse(line, facts)
                return LineWork(line, facts, streams, ready, addresses=tuple(_find_addresses(ready)))
        except AzguardError as error:
            known, _ = errors.explain(error, facts, os.environ)
            return LineWork(line, facts, streams, refusal=known.but(reason=None))

    def _parse(self, line: Line, facts: Facts) -> ReadyCommand:
        try:
            ready = parser.parse(facts, list(line.words))
        except CommandMissing as missing:
            # People would be shown the help of the group, which does not name the line.
            raise UsageError(missing.message, hint=missing.hint) from None
        if ready is None:
            raise UsageError("this line shows help, and does nothing", hint="leave it out")
        typed = {**facts.shared, **ready.params}
        option = next((name for name in _NOT_IN_A_LINE if typed.get(name)), None)
        if option is not None:
            raise UsageError(f"--{option} is not for a line of a batch", hint=f"leave --{option} out of the line")
        if facts.shared.get("output") not in (None, "json", "none"):
            raise UsageError("the result of a line is JSON", hint="leave -o out; --query picks from the result")
        self.refuse(ready)
        return ready


@frozen
class LineWork:
    """A line that was read."""

    line: Line
    facts: Facts
    streams: LineStreams
    #: Its command; None if it cannot be run.
    ready: ReadyCommand | None = None
    #: Why it cannot be run.
    refusal: AzguardError | None = None
    addresses: tuple[Address, ...] = ()

    def run(self) -> LineEnd:
        """Run it, and return how it ended."""
        code, error = 0, None
        with self.streams.in_place():
            try:
                code = self._call()
            except Exception as failure:  # noqa: BLE001  # as in app.run: every end becomes an exit status
                error = errors.describe(failure, self.facts, os.environ)
                code = error["exit_code"]
        result = _read_result(self.streams.stdout.getvalue().decode("utf-8", "backslashreplace"))
        messages = self.streams.stderr.getvalue().decode("utf-8", "backslashreplace")
        return LineEnd(self.line.id, self.line.number, code, result, error, messages)

    def _call(self) -> int:
        if self.ready is None:
            raise self.refusal or AssertionError
        return self.ready.call()


def _find_addresses(ready: ReadyCommand) -> Iterator[Address]:
    """Yield what a command is about: the resources that its words and options name."""
    noun = ready.env.command.partition(" ")[0]
    kinds: list[Kind | None] = [Kind(noun) if noun in list(Kind) else None]
    # What lists blobs is about their container.
    kinds += {"blob": [Kind.CONTAINER], "entity": [Kind.TABLE]}.get(noun, [])
    for row in ready.node.own:
        value = ready.params[row.name]
        for text in value if isinstance(value, list) else [value]:
            # A lock with a bare name is a blob among the locks.
            name = f"locks/{text}" if noun == "lock" and not set(":/") & set(text or "") else text
            for meant in kinds if row.completer is not None and text is not None else ():
                with suppress(AzguardError):
                    address = ready.env.location(name, meant).address.folded
                    yield (address.kind.service, *filter(None, "/".join(address.parts).split("/")))
                    break


def _read_result(shown: str) -> Any:
    """Parse the output of a command: a JSON value, one value for each line of JSON, or else plain text."""
    with suppress(ValueError):
        return json.loads(shown) if shown else None
    with suppress(ValueError):
        return [json.loads(line) for line in shown.splitlines()]
    return shown
