"""What the processes of a scenario note in their traces, checked by the rules of ``tests/traces`` and by nothing else.

The core notes each step as it does with ``AZGUARD_TRACE``, and the answers of the services in memory stand for the
log of the service. So the rules are tried on every schedule, and not only on those that a race of real processes draws.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any
from urllib.parse import quote, urlencode

from azguard.requests import trace
from tests.explorer import names, player
from tests.explorer.player import EPOCH, Node
from tests.explorer.scenario import Bound, Scenario, Services, Violation
from tests.explorer.search import Report, Search
from tests.explorer.wire import ECHO, Answer, Asked
from tests.explorer.world import State, World
from tests.support.faultproxy.faults import Fault, ProxiedAnswer, Request
from tests.traces import records
from tests.traces.records import Event, Step
from tests.traces.rules import RULES, Checker

# Steps of one moment stand this far apart, in their order.
_BETWEEN_SECONDS = 1e-6
_HELD = {"blob": "blobs", "file": "files"}
_PART = re.compile(rb"HTTP/1.1 (\d+)")


class TraceSearch(Search):
    """Visits every state, as ``Search`` does, and has the trace of each schedule checked instead of its rules.

    Of many schedules it takes the first, which are the shortest.
    """

    # A trace has all that a process was told.
    forgets = False

    def __init__(self, scenario: Scenario, bound: Bound, *, most: int = 3, schedules: float = inf) -> None:
        silent: Any = _Silent(scenario.rules)
        super().__init__(replace(scenario, rules=silent, judges_doubts=False), bound, most=most)
        self._left = schedules

    def run(self) -> Report:
        """Visit all states, with the steps of the processes noted."""
        with _recorded():
            return super().run()

    def _has_enough(self) -> bool:
        return not self._left or super()._has_enough()

    def _check_over(self, key: int, state: State) -> None:
        if state.under_way or not self._left:
            return
        self._left -= 1
        log = _Log()
        world = World(self._world.scenario, self._world.bound, self._player, log)
        now = world.begin()
        for choice in self._find_choices(key):
            before, now = now, world.take(now, choice) or now
            if choice.kind == "foreign":
                log.see_foreign(before.services, now.services, now.now)
        for violation in Checker(log.steps, log.events).check():
            self._tell(f"{violation.rule}: {RULES[violation.rule]}", key, None)


class _Silent:
    """The rules of a scenario, which say nothing."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a rule that leaves what is remembered as it is, where it would be violated."""
        rule = getattr(self._rules, name)

        def ask(ghost: Any = None, *more: Any) -> Any:
            try:
                return rule(ghost, *more) if name != "begin" else rule()
            except Violation:
                return ghost

        return ask


class _Log:
    """The trace of one schedule, and the log of its services."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._answers: dict[str, list[ProxiedAnswer]] = {}
        self._sent: Counter[tuple[str, Asked]] = Counter()
        self._ticks = 0

    @property
    def events(self) -> list[Event]:
        """Return what the services did, other programs included."""
        return [event for name, log in self._answers.items() for event in records.to_events(log, name)]

    def see_step(self, who: str, node: Node, versions: tuple[str, ...], now: float) -> None:
        """Add the lines of a process before a step of it."""
        for line in node.notes:
            named = {name: _name(value, versions) for name, value in json.loads(line).items()}
            self.steps.append(records.to_step({**named, "at": self._tick(now), "process": who, "n": self._ticks}))
        if isinstance(node.step, Asked):
            self._sent[who, names.to_service(node.step, versions)] += 1

    def see_answer(self, who: str, asked: Asked, answer: Answer, now: float) -> None:
        """Add an answer, as a proxy before the service notes it; a copy of a request has the id of the first."""
        number = self._sent[who, asked]
        query = urlencode([pair for pair in asked.query if pair[0] != "sig"])
        headers = {**dict(asked.headers), ECHO: f"{who} {asked.method} {asked.path} {number}"}
        self._add(asked.service, Request(asked.method, f"/acc/{quote(asked.path)}?{query}", headers), answer, now)

    def see_foreign(self, before: Services, after: Services, now: float) -> None:
        """Add what another program did to blobs and files: nothing tells a checker of entities who wrote them."""
        for name, attribute in _HELD.items():
            was, held = (getattr(each.get(name), attribute, {}) for each in (before, after))
            for path in was.keys() | held.keys():
                for asked in _list_foreign(was.get(path), held.get(path)):
                    made = Answer(200, (("ETag", held[path].etag),) if path in held else ())
                    request = Request(asked.method, f"/acc/{path}?{asked.path}", dict(asked.headers))
                    self._add(name, request, made, now)

    def _add(self, service: str, request: Request, answer: Answer, now: float) -> None:
        at = self._tick(now)
        self._answers.setdefault(service, []).append(
            ProxiedAnswer(
                request=request,
                fault=Fault.NONE,
                status=answer.status,
                etag=answer.header("ETag"),
                sent=at,
                answered=at,
                headers={name.lower(): value for name, value in answer.headers},
                parts=tuple(map(int, _PART.findall(answer.body))) if "$batch" in request.path else (),
            )
        )

    def _tick(self, now: float) -> float:
        self._ticks += 1
        return EPOCH + now + self._ticks * _BETWEEN_SECONDS


def _name(value: Any, versions: tuple[str, ...]) -> Any:
    return names.unspell((value,), versions)[0].strip('"') if isinstance(value, str) else value


def _list_foreign(before: Any, after: Any) -> Iterator[Request]:
    """Yield the requests with which another program could have made one version of a blob or file into another."""
    if after is None:
        yield Request("DELETE", "", {})
    elif before is None or before.etag != after.etag:
        # Over a version: so it shows that the newest op which it left in the lineage is not its own.
        over = {} if before is None else {"if-match": before.etag}
        yield Request("PUT", "", {**over, **{f"x-ms-meta-{name}": value for name, value in after.metadata}})
    elif before.lease != after.lease:
        yield Request("PUT", "comp=lease", {"x-ms-lease-action": "break"})


class _Recorder(trace._Trace):
    """Gives each line to the process whose code runs."""

    def __init__(self) -> None:
        super().__init__("/nowhere", "explorer", lambda text: None)
        self._process = os.getpid(), ""

    @property
    def writes(self) -> Any:
        """Return the numbers of the writes of a process."""
        acting = player.find_acting()
        return iter(()) if acting is None else acting.writes

    @writes.setter
    def writes(self, numbers: Any) -> None:
        """Leave them to the processes."""


def _append(path: str, line: bytes, opened: int | None) -> None:
    acting = player.find_acting()
    if acting is not None:
        acting.notes.append(line)


@contextmanager
def _recorded() -> Iterator[None]:
    """Have the core note its steps."""
    before = trace._trace, trace._append
    trace._trace, trace._append = _Recorder(), _append
    try:
        yield
    finally:
        trace._trace, trace._append = before
