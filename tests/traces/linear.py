"""Whether a history of one key is linearizable: whether each call can have happened at one moment between its begin and
its end, so that all answers are those of one register, or one counter, that is used by one caller at a time.

It is the algorithm of Wing and Gong with the memory of Lowe, as Porcupine has it: from the first calls on, each is
tried that no other call has ended before, and a state that was reached with the same calls is not tried again.

A call that never ended, because its caller was killed or told that its outcome is unknown, may have happened at any
moment after its begin, or never.

Source: https://anishathalye.com/testing-distributed-systems-for-linearizability/
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

# With more states than these the search ends without a verdict, which fails a test as well.
_MOST_STATES = 1_000_000
# What a model returns for a call that cannot have had its answer in a state.
IMPOSSIBLE = object()


@dataclass(frozen=True)
class Call:
    """A call of one key. ``ended`` is infinite where no answer came; an ``answer`` of None was not told."""

    what: str
    began: float
    ended: float = inf
    value: Any = None
    answer: Any = None
    by: str = ""

    def __str__(self) -> str:
        """Return it as a line of a report."""
        return f"{self.began:.3f} to {self.ended:.3f} {self.by} {self.what} {self.value} -> {self.answer}"


@dataclass(frozen=True)
class Model:
    """What a key does by itself: from a state and a call to the next state, or to ``IMPOSSIBLE``."""

    start: Any
    step: Callable[[Any, Call], Any]


def _step_counter(state: int, call: Call) -> Any:
    if call.what == "write":
        return call.value
    after = state if call.what == "read" else state + call.value
    return after if call.answer in (None, after) else IMPOSSIBLE


def _step_register(state: Any, call: Call) -> Any:
    if call.what == "write":
        return call.value
    after = state if call.what == "read" else (*state, call.value)
    return after if call.answer in (None, after) else IMPOSSIBLE


#: ``read``, ``write``, and ``add``, whose answer is the sum.
COUNTER = Model(0, _step_counter)
#: ``read``, ``write``, and ``append``, whose answer is all that was appended.
REGISTER = Model((), _step_register)


@dataclass(eq=False)
class _Entry:
    """A begin or an end in the order of time, as a list that entries are taken out of and put back into."""

    call: Call
    #: That of its call; below 0 it is an end.
    number: int
    end: "_Entry | None" = None
    before: "_Entry | None" = None
    after: "_Entry | None" = None

    def take_out(self) -> None:
        for each in (self, *filter(None, [self.end])):
            assert each.before is not None
            each.before.after = each.after
            if each.after is not None:
                each.after.before = each.before

    def put_back(self) -> None:
        for each in (*filter(None, [self.end]), self):
            assert each.before is not None
            each.before.after = each
            if each.after is not None:
                each.after.before = each


class _Search:
    """The search for an order. Calls that never ended are tried last, where nothing else goes on."""

    def __init__(self, history: Sequence[Call], model: Model) -> None:
        self._model, self._state, self._taken = model, model.start, 0
        self._head, self._open = _link(history)
        #: What was taken, with the state before, and where a call that never ended was tried, the end that was met.
        self._order: list[tuple[_Entry, Any, _Entry | None]] = []
        self._seen: set[tuple[int, Any]] = set()
        self.best: list[Call] = []
        self.obstacle: Call | None = None

    def run(self) -> bool:
        """Return whether there is an order; if not, ``best`` is the longest part of one, and ``obstacle`` is next."""
        entry = self._head.after
        while entry is not None and len(self._seen) < _MOST_STATES:
            if entry.number < 0:
                entry = self._take_open(entry, 0) or self._go_back(entry)
                if entry is None:
                    return False
            elif self._take(entry, None):
                entry.take_out()
                entry = self._head.after
            else:
                entry = entry.after
        return entry is None

    def _take(self, entry: _Entry, met: _Entry | None) -> bool:
        after, taken = self._model.step(self._state, entry.call), self._taken | 1 << entry.number
        if after is IMPOSSIBLE or (taken, after) in self._seen:
            return False
        self._seen.add((taken, after))
        self._order.append((entry, self._state, met))
        self._state, self._taken = after, taken
        return True

    def _take_open(self, met: _Entry, first: int) -> _Entry | None:
        """Take a call that never ended before the end that was met; return where to go on, None if none can be."""
        tried: set[tuple[str, Any]] = set()
        for entry in self._open[first:]:
            kind = entry.call.what, entry.call.value
            # Of those that are alike, the first can stand for the others.
            if self._taken >> entry.number & 1 or entry.call.began > met.call.ended or kind in tried:
                continue
            tried.add(kind)
            if self._take(entry, met):
                return self._head.after
        return None

    def _go_back(self, met: _Entry) -> _Entry | None:
        """Undo the last step that leaves another; return where to go on, None if there is none."""
        if len(self._order) >= len(self.best):
            self.best, self.obstacle = [entry.call for entry, *_ in self._order], met.call
        while self._order:
            entry, self._state, at = self._order.pop()
            self._taken ^= 1 << entry.number
            if at is None:
                entry.put_back()
                return entry.after
            if (further := self._take_open(at, self._open.index(entry) + 1)) is not None:
                return further
        return None


def _link(history: Sequence[Call]) -> tuple[_Entry, list[_Entry]]:
    """Return the begins and ends in the order of time behind a head, and the begins of calls that never ended."""
    entries: list[tuple[float, bool, int, _Entry]] = []
    never: list[_Entry] = []
    for number, call in enumerate(history):
        begin = _Entry(call, number)
        if call.ended == inf:
            never.append(begin)
            continue
        begin.end = _Entry(call, -1)
        entries += [(call.began, False, number, begin), (call.ended, True, number, begin.end)]
    head = last = _Entry(Call("", 0), -1)
    for *_, each in sorted(entries, key=lambda entry: entry[:3]):
        last.after, each.before = each, last
        last = each
    return head, sorted(never, key=lambda entry: entry.call.began)


def describe(history: Sequence[Call], model: Model) -> tuple[str, ...] | None:
    """Return the call that fits nowhere, with what was found to come before it; None if there is an order."""
    search = _Search(history, model)
    if search.run():
        return None
    best, obstacle = search.best, search.obstacle
    if obstacle is None:
        return (f"no order was found in {_MOST_STATES} states",)
    beside = [call for call in history if call.began < obstacle.ended and call not in best and call is not obstacle]
    return (*map(str, best[-4:]), f"> {obstacle}", *(f"beside it: {call}" for call in beside[:4]))
