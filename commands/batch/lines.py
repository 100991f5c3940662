"""One line: its streams, its command, the addresses that it names, and how it ended.

A line's own are its streams, options, conditions, deadline, warnings and exit status. All lines share the environment,
the working folder, the handlers of signals, the caches of Python's functions, the list of those who listen to requests,
the trace, and what ``SharedState`` keeps: accounts, with their login and their connections, the scope, and the database
of the cache.
"""

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from azguard.address import Kind
from azguard.batch import Address, Line, LineEnd, TextLine, parse
from azguard.cli import errors
from azguard.cli.context import Environment
from azguard.cli.errors import CommandMissing, Facts, SharedState
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import Row
from azguard.errors import AzguardError, GaveUp, Interrupted, Unavailable, UsageError
from azguard.frozen import frozen
from azguard.requests import trace
from azguard.resources.pool import StoppableClock

if TYPE_CHECKING:
    from azguard.address import Address as ResourceAddress
    from azguard.cli.parsing.parser import ReadyCommand


# Commands that cannot run beside others in one process, besides those that run a command of the user's.
_ALONE = {
    "batch": "its lines belong into this one",
    "edit": "it needs a terminal",
    "demo": "it needs a terminal",
    "lock hold": "it leaves a process behind",
    "emulator": "it starts and stops servers",
}

_NAMES = ("stdin", "stdout", "stderr")
# A thread that a line starts has none, and tells on those of the process.
_streams: ContextVar["LineStreams | None"] = ContextVar("streams", default=None)
# These options of the batch hold for each line that does not say otherwise.
_NOT_PASSED_ON = ("output", "query", "verbose", "debug")
# What is the process's, and what would not be JSON.
_NOT_IN_A_LINE = ("verbose", "debug", "watch")
# The kinds of the addresses that stand without one before them; those of --recursive may be folders.
_KINDS = {
    "BLOB": Kind.BLOB,
    "CONTAINER": Kind.CONTAINER,
    "TABLE": Kind.TABLE,
    "TABLE/PARTITION/ROW": Kind.ENTITY,
    "QUEUE": Kind.QUEUE,
    "QUEUE/ID": Kind.MESSAGE,
    "SHARE": Kind.SHARE,
}
# What a prefix, or a word that may be two kinds of address, names if it names nothing within.
_PARENTS = {"blob": [Kind.CONTAINER], "dir": [Kind.SHARE], "file": [Kind.SHARE]}
# Where `put --recursive` writes the files of the folder that stands before it.
_DESTINATIONS = ("CONTAINER/PREFIX/", "SHARE/PREFIX/")


def require_runnable(ready: "ReadyCommand | None", shared: Mapping[str, Any]) -> "ReadyCommand":
    """Return the command of a line, if it can run beside others in one process."""
    if ready is None:
        raise UsageError("this line shows help, and does nothing", hint="leave it out")
    typed = {**shared, **ready.params}
    option = next((name for name in _NOT_IN_A_LINE if typed.get(name)), None)
    if option is not None:
        raise UsageError(f"--{option} is not for a line of a batch", hint=f"leave --{option} out of the line")
    if shared.get("output") not in (None, "json", "none"):
        raise UsageError("the result of a line is JSON", hint="leave -o out; --query picks from the result")
    if (reason := _find_reason_to_run_alone(ready)) is not None:
        raise UsageError(f"{ready.env.command} cannot run in a batch: {reason}", hint="run it by itself")
    prints_content = any("--result" in row.flags for row in ready.node.own)
    if prints_content and ready.params["file"] in (None, "-") and not ready.params["recursive"]:
        raise UsageError("the content would go to stdout, where the results are", hint="-f FILE writes it to a file")
    return ready


def _find_reason_to_run_alone(ready: "ReadyCommand") -> str | None:
    if any("CMD" in row.metavar and ready.params[row.name] for row in ready.node.own):
        return "it runs a command of yours"
    return next((why for each, why in _ALONE.items() if f"{ready.env.command} ".startswith(f"{each} ")), None)


class _Divided:
    """Stands for a standard stream: that of the line that a thread is running, else that of the process."""

    def __init__(self, name: str) -> None:
        self._name, self._own = name, getattr(sys, name)

    def __getattr__(self, name: str) -> Any:
        line = _streams.get()
        return getattr(self._own if line is None else line.find(self._name), name)


def divide_streams() -> None:
    """Give each line streams of its own, from now until this process ends."""
    for name in _NAMES:
        setattr(sys, name, _Divided(name))


class _MemoryStream(io.TextIOWrapper):
    #: Whether a user gets what is written there.
    is_kept: bool


class LineStreams:
    """The streams of one line, in memory. Each is made when it is first used: lines that wait have none.

    ``is_kept`` says whether a user gets the whole result.
    """

    def __init__(self, stdin: str = "", *, is_kept: bool = False) -> None:
        self._stdin, self._is_kept = stdin, is_kept
        self._contents: dict[str, io.BytesIO] = {}
        self._texts: dict[str, io.TextIOWrapper] = {}

    def find(self, name: str) -> io.TextIOWrapper:
        """Return the stream of that name."""
        if name not in self._texts:
            content = io.BytesIO(self._stdin.encode() if name == "stdin" else b"")
            self._contents[name] = content
            made = _MemoryStream(content, "utf-8", errors="surrogatepass", write_through=True)
            made.is_kept = self._is_kept
            self._texts[name] = made
        return self._texts[name]

    def read_back(self, name: str) -> str:
        """Return the text that a line has written to a stream."""
        content = self._contents.get(name)
        return "" if content is None else content.getvalue().decode("utf-8", "backslashreplace")

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put them in the place of the standard ones, for the code of a block."""
        before = _streams.set(self)
        try:
            yield
        finally:
            _streams.reset(before)


@frozen
class LineRunner:
    """Prepares the lines of one batch."""

    env: Environment
    common: SharedState
    #: Whether a user gets the whole results.
    is_kept: bool = False

    @cached_property
    def _typed_before(self) -> list[str]:
        """The account and the scope as typed for the batch: the hint of a line repeats them."""
        return command_line.keep_account(self.env.argv)

    def prepare(self, text: TextLine) -> "LineWork":
        """Return the work of a line, which may be to say why it cannot be run."""
        line, facts, own = Line(text.number, ()), Facts(), LineStreams()
        try:
            line = parse(text)
            passed_on = {name: value for name, value in self.env.shared.items() if name not in _NOT_PASSED_ON}
            typed = {**passed_on, "output": "json"}
            facts = Facts((*self._typed_before, *line.words), typed, common=self.common)
            own = LineStreams(line.stdin, is_kept=self.is_kept)
            with own.in_place():
                ready = _parse(line, facts)
                return LineWork(line, facts, own, ready, addresses=tuple(_find_addresses(ready)))
        except AzguardError as error:
            known, _ = errors.explain(error, facts, os.environ)
            return LineWork(line, facts, own, refusal=known.but(reason=None))


def _parse(line: Line, facts: Facts) -> "ReadyCommand":
    from azguard.cli.parsing import parser  # which completion does not need

    try:
        return require_runnable(parser.parse(facts, list(line.words)), facts.shared)
    except CommandMissing as missing:
        # People would be shown the help of the group, which does not name the line.
        told = UsageError(missing.message, hint=missing.hint)
    raise told


@frozen
class LineWork:
    """A line that was read."""

    line: Line
    facts: Facts
    streams: LineStreams
    #: Its command; None if it cannot be run.
    ready: "ReadyCommand | None" = None
    #: Why it cannot be run.
    refusal: AzguardError | None = None
    addresses: tuple[Address, ...] = ()

    def run(self) -> LineEnd:
        code, error = 0, None
        with self.streams.in_place():
            try:
                code = self._call()
            except Exception as failure:  # noqa: BLE001  # as in app.run: every end becomes an exit status
                error = errors.describe(self._tell_stop(failure), self.facts, os.environ)
                code = error["exit_code"]
        if self.ready is not None:
            self.ready.env.release()
        is_lines = self.ready is not None and _prints_lines(self.ready)
        result = _read_result(self.streams.read_back("stdout"), is_lines=is_lines)
        messages = self.streams.read_back("stderr")
        return LineEnd(self.line.id, self.line.number, code, result, error, messages, self.facts.once_told)

    def _tell_stop(self, failure: Exception) -> BaseException:
        """Return the interruption in the place of an error whose deadline has passed because of it."""
        clock = None if self.facts.common is None else self.facts.common.clock
        if isinstance(failure, (GaveUp, Unavailable)) and isinstance(clock, StoppableClock) and clock.is_stopped:
            return failure.as_kind(Interrupted, message="interrupted; nothing was applied", hint=None, reason=None)
        return failure

    def _call(self) -> int:
        if self.ready is None:
            raise self.refusal or AssertionError
        trace.line_command.set(self.facts.command)
        return self.ready.call()


def _find_addresses(ready: "ReadyCommand") -> Iterator[Address]:
    """Yield the addresses of the resources that the words and options of a command name.

    Raises:
        AzguardError: one is malformed.
    """
    noun = ready.env.command.partition(" ")[0]
    of_noun = Kind(noun) if noun in list(Kind) else None
    is_tree = noun in ("blob", "file") and bool(ready.params.get("recursive"))
    for row, text in _list_names(ready):
        known = of_noun if row.metavar == "SHARE/PATH" else _KINDS.get(row.metavar)
        name = _cut(text) if is_tree else text
        if noun == "lock" and known is None and not set(":/") & set(text):
            name = f"locks/{text}"  # a lock with a bare name is a blob among the locks
        # Its messages follow the queue, and not each other.
        within = (str(id(ready)),) if noun == "message" and known is Kind.QUEUE else ()
        kinds = [of_noun, *_PARENTS.get(noun, ())] if known is None or is_tree else [known]
        try:
            address = _find_address(ready.env, name, kinds)
        except AzguardError:
            if row.is_argument and known is not None and not is_tree:
                raise
        else:
            yield (address.kind.service, *filter(None, "/".join(address.parts).split("/")), *within)


def _list_names(ready: "ReadyCommand") -> Iterator[tuple[Row, str]]:
    """Yield what may name a resource: what completion knows of, and where a folder is put, but not that folder."""
    own = [(row, ready.params[row.name]) for row in ready.node.own]
    into = [(row, value) for row, value in own if row.metavar in _DESTINATIONS and value is not None]
    known = [(row, value) for row, value in own if row.completer is not None and not (into and row.is_argument)]
    for row, value in (*into, *known):
        for text in value if isinstance(value, list) else [value]:
            if text is not None:
                yield row, text


def _cut(prefix: str) -> str:
    """Return the folder that holds all names with a prefix; the container or the share, where there is none."""
    path, mark, query = prefix.partition("?")
    return (path.rpartition("/")[0] or path) + mark + query


def _find_address(env: Environment, text: str, kinds: Sequence[Kind | None]) -> "ResourceAddress":
    """Return the address in a text, which is of the first kind or else of another."""
    try:
        return env.location(text, kinds[0]).address.folded
    except AzguardError:
        for other in kinds[1:]:
            with suppress(AzguardError):
                return env.location(text, other).address.folded
        raise


def _read_result(shown: str, *, is_lines: bool) -> Any:
    """Parse the output of a command: a JSON value, a list of its lines where each is one, or else plain text."""
    if is_lines:
        return [json.loads(line) for line in shown.split("\n") if line]
    with suppress(ValueError):
        return json.loads(shown) if shown else None
    return shown


def _prints_lines(ready: "ReadyCommand") -> bool:
    """Return whether a command prints a line of JSON for each item, and none where there is none."""
    typed, shared, command = ready.params, ready.env.shared, ready.env.command
    is_tree = typed.get("recursive") and command.endswith((" get", " put", " delete"))
    is_of_entities = typed.get("where") is not None and not typed["dry_run"]
    is_list = command == "cache export" or (command == "entity query" and shared.get("query") is None)
    return shared["output"] != "none" and bool(is_tree or is_of_entities or is_list)
