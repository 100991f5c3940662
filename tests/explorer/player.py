"""One process of azguard's core, played a step at a time in a greenlet, and remembered.

A process does nothing by chance here: its ids are counted, and time passes only while it waits. So what it does next
depends on what it was told alone. Each history is played once; where two interleavings tell a process the same, the
steps that are known are taken, and none of its code runs again.
"""

import gc
import os
import random
import secrets
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import count
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from azguard.accounts.account import Account
from azguard.blobs.content import put_blob
from azguard.errors import AzguardError
from azguard.requests.deadline import Deadline
from azguard.wire import call
from tests.explorer import rests, wire
from tests.explorer.rests import Rest
from tests.explorer.wire import Answer, Asked, Silence

# A moment of the wall clock, at which every story begins.
EPOCH = 1767225600.0
# What is no longer than this is put by one request, so that little is enough for blocks.
_SINGLE_BYTES = 32
# So many processes are kept where they stopped; others are played again from their begin when they go on.
_MOST_LIVE = 20_000
# After so many steps what ended processes left in circles is given back, and what killed ones left half done is ended.
_COLLECT_EVERY = 10_000


class Sleep(NamedTuple):
    """A process waits for so many seconds."""

    seconds: float


#: The pause of a process that has done all, and has not ended yet.
LAST_BREATH = Sleep(0.001)


class Told(NamedTuple):
    """A process tells the rules of something, such as that it holds a lock."""

    event: tuple[Any, ...]


class Ended(NamedTuple):
    """A process ended: its exit status, and what it said."""

    status: int
    outcome: str


#: The end of a process that was killed.
KILLED = Ended(-9, "killed")
#: That of a process that is played again, of which it is known.
_SOME_REST = Rest(0, ())
Step = Asked | Sleep | Told | Rest | Ended
#: What a process is told: the time, and the answer to what it asked.
Seen = tuple[float, Answer | Silence | None]


class Killed(BaseException):
    """The process is not needed any more."""


@dataclass(frozen=True)
class Program:
    """What a process runs. It returns what it says at its end."""

    name: str
    main: Callable[["Process"], str] = field(compare=False)
    #: The process that ended, or was killed, before this one begins; None begins at once.
    after: str | None = None
    #: The op that it applies, where it is not its own.
    op: str | None = None
    #: How many seconds later it begins.
    begins: float = 0.0
    #: What a process does that applies nothing itself: see ``UpdateRules``.
    other: str | None = None
    #: Whether it can be killed when it has done all that it does, and has not ended yet.
    lingers: bool = False
    #: What it adds to a content whose name it is told: see ``names``.
    own: str = ""


class Process:
    """A process under way, as its program sees it."""

    def __init__(self, name: str, now: float, given: Any) -> None:
        self.name = name
        self.now = now
        #: What it finds on its machine at its begin.
        self.given = given
        #: The lines of its trace since its last step, where the steps are traced: see ``traced``.
        self.notes: list[bytes] = []
        self.writes = count(1)
        #: Whether it only goes where it was before.
        self.is_replayed = False
        self._made = 0
        self._is_dead = False

    @property
    def account(self) -> Account:
        """Return the account, which all processes share."""
        return _account()

    def deadline(self, seconds: float) -> Deadline:
        """Return a deadline that begins now."""
        return Deadline(seconds, self.clock, self.sleep)

    def clock(self) -> float:
        """Return the time, in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._yield(Sleep(max(0.0, seconds)))

    def tell(self, *event: Any) -> None:
        """Tell the rules of an event."""
        self._yield(Told(event))

    def rest(self, *known: Any) -> None:
        """Say that all that the code can still read hangs on these objects: see ``rests``."""
        self._yield(_SOME_REST if self.is_replayed else rests.find_rest(self, *known))

    def ask(self, asked: Asked) -> Answer | Silence:
        """Send a request."""
        seen = self._yield(asked)
        assert seen is not None
        return seen

    def make(self, size: int) -> bytes:
        """Return bytes that no other call returns."""
        self._made += 1
        return f"{self.name}{self._made:x}".encode().ljust(size, b".")[:size]

    @property
    def remembered(self) -> tuple[Any, ...]:
        """List the facts that its next steps depend on, without the time."""
        return self.name, self.given, self._made

    def end(self) -> None:
        """Be killed: nothing that it sends from now on arrives."""
        self._is_dead = True

    def _yield(self, step: Step) -> Answer | Silence | None:
        if self._is_dead:
            raise Killed
        seen: Seen = getcurrent().parent.switch(step)
        self.now = seen[0]
        return seen[1]


class Node:
    """A process after one history, and its next step."""

    __slots__ = ("children", "live", "notes", "now", "number", "parent", "seen", "step")

    def __init__(self, number: int, step: Step, parent: "Node | None", seen: Any, live: "_Live | None") -> None:
        self.number = number
        self.step = step
        self.parent = parent
        #: What it was told last; of a root, its program and what it found.
        self.seen = seen
        self.live = live
        #: When that was, by its clock.
        self.now: float = seen[1] if parent is None else seen[0]
        #: The lines of its trace before this step.
        self.notes: tuple[bytes, ...] = ()
        self.children: dict[Seen, Node] = {}

    def history(self) -> "list[Node]":
        """Return the nodes from the root to this one."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found[::-1]


class _Live(NamedTuple):
    process: Process
    let: greenlet


class Player:
    """Plays programs, and remembers what they did."""

    def __init__(self, *, forgets: bool = True) -> None:
        #: Whether histories are not told apart that a process has forgotten.
        self.forgets = forgets
        self._rests: dict[Hashable, tuple[Node, int]] = {}
        self._ends: dict[Step, Node] = {}
        self._roots: dict[Any, Node] = {}
        self._kept: deque[Node] = deque()
        self.nodes = 0
        #: How many steps were played, those that were played again included.
        self.played = 0

    def begin(self, program: Program, now: float, given: Any) -> Node:
        """Return the first step of a program."""
        key = (program.name, now, given)
        if key not in self._roots:
            live, step = self._start(program, now, given)
            self._roots[key] = self._add(step, None, (program, now, given), live)
        return self._roots[key]

    def next(self, node: Node, seen: Seen) -> Node:
        """Return what follows when a process is told something."""
        found = node.children.get(seen)
        if found is None:
            live, node.live = node.live, None
            live = live or self._replay(node)
            found = node.children[seen] = self._add(self._go_on(live, seen), node, seen, live)
        return found

    def rest(self, name: str, node: Node, versions: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
        """Return the first node at which a process rested so, with the versions that are known there."""
        assert isinstance(node.step, Rest)
        if not self.forgets:
            return node, versions
        first, size = self._rests.setdefault((name, node.now, node.step.known), (node, len(versions)))
        assert isinstance(first.step, Rest)
        if first.live is None and (node.step.versions, len(versions)) == (first.step.versions, size):
            first.live, node.live = node.live, None
            self._kept.append(first)
        # What it has forgotten is none that it is told of.
        known = [""] * size
        for at, number in zip(first.step.versions, node.step.versions, strict=True):
            known[at] = versions[number]
        return first, tuple(known)

    def end(self, step: Ended) -> Node:
        """Return the node of all processes that ended so."""
        return self._ends.setdefault(step, Node(-1, step, None, (None, 0.0), None))

    def close(self) -> None:
        """End the processes that are kept."""
        while self._kept:
            self._drop(self._kept.popleft())

    def _add(self, step: Step, parent: Node | None, seen: Any, live: _Live) -> Node:
        self.nodes += 1
        node = Node(self.nodes, step, parent, seen, None if isinstance(step, Ended) else live)
        node.notes = tuple(live.process.notes)
        if node.live is not None:
            self._kept.append(node)
        if len(self._kept) > _MOST_LIVE:
            self._drop(self._kept.popleft())
        return node

    def _drop(self, node: Node) -> None:
        live, node.live = node.live, None
        if live is not None:
            live.process.end()
            with acting_as(live.process):
                live.let.throw(Killed)

    def _start(self, program: Program, now: float, given: Any) -> tuple[_Live, Step]:
        process = Process(program.name, now, given)
        live = _Live(process, greenlet(lambda: _run(program, process)))
        return live, self._go_on(live)

    def _go_on(self, live: _Live, *seen: Seen) -> Step:
        self.played += 1
        if self.played % _COLLECT_EVERY == 0:
            gc.collect(1)
        live.process.notes.clear()
        with acting_as(live.process):
            step: Step = live.let.switch(*seen)
        return step

    def _replay(self, node: Node) -> _Live:
        root, *rest = node.history()
        live, step = self._start(*root.seen)
        live.process.is_replayed = True
        assert step == root.step, f"{root.step} is now {step}"
        for each in rest:
            step = self._go_on(live, each.seen)
            assert step in (each.step, _SOME_REST), f"{each.step} is now {step}"
        live.process.is_replayed = False
        return live


def _run(program: Program, process: Process) -> Step:
    try:
        return Ended(0, program.main(process))
    except AzguardError as error:
        return Ended(error.exit_code, error.reason or error.kind)
    except Killed:
        return KILLED
    except Exception as error:  # noqa: BLE001  # a traceback is what no user should see
        return Ended(1, f"{type(error).__name__}: {error}")


_acting: Process | None = None
_accounts: list[Account] = []


def find_acting() -> Process | None:
    """Return the process whose code runs now."""
    return _acting


def _ask(asked: Asked) -> Answer | Silence:
    if _acting is None:
        # A generator that a killed process had left half done, which ends only now.
        raise Killed
    return _acting.ask(asked)


def _account() -> Account:
    if not _accounts:
        _accounts.append(wire.make_account(_ask))
    return _accounts[0]


@contextmanager
def acting_as(process: Process) -> Iterator[None]:
    """Let the code that runs now be that of one process."""
    global _acting  # noqa: PLW0603  # greenlets of one thread run one at a time
    before, _acting = _acting, process
    try:
        yield
    finally:
        _acting = before


class _Sources:
    """Times, pauses and ids: those of the process that is played, else the real ones."""

    def __init__(self) -> None:
        self._made, self._urandom, self._token = uuid.uuid4, os.urandom, secrets.token_hex
        self._monotonic, self._time, self._sleep, self._uniform = (
            time.monotonic,
            time.time,
            time.sleep,
            random.uniform,
        )
        self._boot = time.clock_gettime
        self._pool = futures.ThreadPoolExecutor
        # Not counted, so that what a process makes next does not depend on how often it has asked.
        self.of_requests = SimpleNamespace(uuid4=lambda: uuid.UUID(int=0))

    def make_id(self) -> uuid.UUID:
        return self._made() if _acting is None else uuid.UUID(bytes=_acting.make(16), version=4)

    def urandom(self, size: int) -> bytes:
        return self._urandom(size) if _acting is None else _acting.make(size)

    def token_hex(self, size: int | None = None) -> str:
        return self._token(size) if _acting is None else _acting.make(size or 32).hex()

    def monotonic(self) -> float:
        return self._monotonic() if _acting is None else _acting.now

    def clock_gettime(self, clock: int) -> float:
        return self._boot(clock) if _acting is None else _acting.now

    def time(self) -> float:
        return self._time() if _acting is None else EPOCH + _acting.now

    def sleep(self, seconds: float) -> None:
        self._sleep(seconds) if _acting is None else _acting.sleep(seconds)

    def uniform(self, a: float, b: float) -> float:
        return self._uniform(a, b) if _acting is None else b

    def open_pool(self, *given: Any) -> Any:
        return self._pool(*given) if _acting is None else _AtOnce()


class _AtOnce:
    """Does each job when it is given: a thread is no process here."""

    def submit(self, job: Callable[..., Any], *given: Any) -> futures.Future[Any]:
        done = futures.Future[Any]()
        try:
            done.set_result(job(*given))
        except Exception as error:  # noqa: BLE001  # it is raised where the result is asked for
            done.set_exception(error)
        return done

    def shutdown(self, **given: bool) -> None:
        """Nothing is under way."""


@contextmanager
def without_chance() -> Iterator[None]:
    """Take ids, times and pauses from the process that is played, where the core is not given them."""
    sources = _Sources()
    kept = [
        (uuid, "uuid4", sources.make_id),
        (os, "urandom", sources.urandom),
        (secrets, "token_hex", sources.token_hex),
        (time, "monotonic", sources.monotonic),
        (time, "clock_gettime", sources.clock_gettime),
        (time, "time", sources.time),
        (time, "sleep", sources.sleep),
        (random, "uniform", sources.uniform),
        (call, "uuid", sources.of_requests),
        (futures, "ThreadPoolExecutor", sources.open_pool),
        (put_blob, "SINGLE_BYTES", _SINGLE_BYTES),
    ]
    with ExitStack() as stack:
        instead = {getattr(module, name): made for module, name, made in kept if callable(made)}
        for function in _list_functions(frozenset(instead), len(sys.modules)):
            stack.enter_context(_replaced_defaults(function, instead))
        stack.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = partial(_report_unless_killed, sys.unraisablehook)
        for module, name, made in kept:
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, made)
        # What a killed process left half done ends between two steps, or here: not in the middle of a step of another
        # process, for whose request its own would be taken, nor of the test that comes next.
        if gc.isenabled():
            gc.disable()
            stack.callback(gc.enable)
        # What was there before is no part of that, and would take longer to look through than all that is.
        gc.freeze()
        stack.callback(gc.unfreeze)
        stack.callback(gc.collect)
        yield


def _report_unless_killed(report: Callable[[Any], object], found: Any) -> None:
    """Report what was raised where no one can catch it, but not that a process ended in the middle of a generator."""
    if not isinstance(found.exc_value, Killed):
        report(found)


@contextmanager
def _replaced_defaults(function: Any, instead: Mapping[Any, Any]) -> Iterator[None]:
    """Replace defaults of a function that were bound when it was defined, such as a clock."""
    before = function.__defaults__, function.__kwdefaults__
    function.__defaults__ = before[0] and tuple(_replace(each, instead) for each in before[0])
    function.__kwdefaults__ = before[1] and {name: _replace(each, instead) for name, each in before[1].items()}
    try:
        yield
    finally:
        function.__defaults__, function.__kwdefaults__ = before


def _replace(value: Any, instead: Mapping[Any, Any]) -> Any:
    return instead[value] if _is_among(value, instead) else value


def _is_among(value: Any, sources: Container[Any]) -> bool:
    return callable(value) and isinstance(value, Hashable) and value in sources


@lru_cache(maxsize=1)
def _list_functions(sources: frozenset[Any], modules: int) -> tuple[Any, ...]:
    """Return the functions of azguard that have such a default; they are others where more modules are imported."""
    own = [each for name, each in sys.modules.items() if each and name.partition(".")[0] == "azguard"]
    values = [value for module in own for value in vars(module).values()]
    members = [each for value in values for each in (vars(value).values() if isinstance(value, type) else (value,))]
    functions = dict.fromkeys(each for each in members if isinstance(each, FunctionType))
    return tuple(each for each in functions if any(_is_among(value, sources) for value in _list_defaults(each)))


def _list_defaults(function: FunctionType) -> list[Any]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
