"""One state of everything, and the steps that lead out of it.

A step is: a process sends its request, which meets a fault or none; a program that is not azguard writes; a process is
killed, or stopped, or continued; a request that is under way arrives; time passes until the next process that waits
goes on. While a process has something to send, and is not stopped, no time passes but what makes it slow.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple, Protocol

from tests.explorer import faults, names, stories
from tests.explorer.faults import Fault
from tests.explorer.player import KILLED, LAST_BREATH, Ended, Node, Player, Sleep, Step, Told
from tests.explorer.rests import Rest
from tests.explorer.scenario import Bound, Effect, Scenario, Services
from tests.explorer.wire import Answer, Asked, Silence

#: The exit status of a process that does not know how its write ended.
UNKNOWN = 74
#: A process that was stopped goes on so much later, or earlier, after any step of another: longer than what a lease, a
#: claim, a record and a deadline last here.
STOP_SECONDS = 100.0


class ProcessState(NamedTuple):
    """A process in one state."""

    #: None before it begins.
    node: Node | None
    #: When it goes on; None while it has something to send, or has ended.
    wakes: float | None = None
    #: What it is told then.
    answer: Answer | Silence | None = None
    #: The versions that it was told of, in that order: see ``names``.
    versions: tuple[str, ...] = ()
    is_killed: bool = False
    is_stopped: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, or was killed."""
        return self.is_killed or (self.node is not None and isinstance(self.node.step, Ended))

    @property
    def is_ready(self) -> bool:
        """Return whether it is about to send a request."""
        if self.node is None or self.wakes is not None or self.is_killed:
            return False
        return isinstance(self.node.step, Asked)

    @property
    def asked(self) -> Asked:
        """Return the request that it is about to send."""
        assert self.node is not None
        assert isinstance(self.node.step, Asked)
        return names.to_service(self.node.step, self.versions)


class State(NamedTuple):
    """A state of everything."""

    services: Services
    now: float
    processes: tuple[ProcessState, ...]
    #: Requests that arrive later, with their senders.
    under_way: tuple[tuple[str, Asked], ...]
    left: Bound
    ghost: Any
    #: The process that acted last.
    active: int | None = None

    @property
    def key(self) -> int:
        """Return a digest."""
        services = tuple([each.key for each in self.services.values()])
        active = self.active is not None if self.left.switches is None else self.active
        return hash((services, self.now, self.processes, self.under_way, self.left, self.ghost, active))

    @property
    def has_begun(self) -> bool:
        """Return whether any process has acted."""
        return self.active is not None

    def is_switch(self, index: int) -> bool:
        """Return whether another process could go on that acted last."""
        active = self.active
        return active not in (None, index) and self.processes[active].is_ready

    @property
    def is_over(self) -> bool:
        """Return whether all processes have ended."""
        return all(each.is_over for each in self.processes)


class Choice(NamedTuple):
    """One step out of a state."""

    kind: str
    #: Of a process, or of what is under way.
    number: int = 0
    #: A fault, or the name of a foreign step.
    what: Any = None


class Watch(Protocol):
    """What is told of each request that a service answers, and of each step that a process takes."""

    def see_answer(self, who: str, asked: Asked, answer: Answer, now: float) -> None:
        """Take note of an answer, whether its sender receives it or not."""

    def see_step(self, who: str, node: Node, versions: tuple[str, ...], now: float) -> None:
        """Take note of a step, and of what the process did before it."""


class World:
    """The steps of a scenario."""

    def __init__(self, scenario: Scenario, bound: Bound, player: Player, watch: Watch | None = None) -> None:
        self.scenario = scenario
        self._watch = watch
        self.bound = bound
        self._player = player
        self._has_own_clocks = scenario.has_own_clocks and not bound.stops
        self._names = [each.name for each in scenario.programs]
        #: What services, by their digests, answered at a time, and what they are then; None is unchanged.
        self._answers: dict[tuple[int, Asked, float], tuple[Any, Answer]] = {}
        #: The faults that a request can meet: by its process, whether it changes something, and is the first.
        self._faults = {
            (index, changes, is_first): self._list_faults(index, changes=changes, is_first=is_first)
            for index, changes, is_first in product(range(len(self._names)), (False, True), (False, True))
        }

    def begin(self) -> State:
        """Return the first state."""
        waiting = tuple(ProcessState(None) for _ in self.scenario.programs)
        state = State(self.scenario.services, 0.0, waiting, (), self.bound, self.scenario.rules.begin())
        return self._settle(state)

    def choices(self, state: State) -> Iterator[Choice]:
        """Yield the steps that can be taken."""
        ready = [index for index, each in enumerate(state.processes) if each.is_ready]
        if self.scenario.is_symmetric and not state.has_begun:
            ready = ready[:1]
        for index in ready:
            if state.left.switches != 0 or not state.is_switch(index):
                yield from self._requests(state, index)
        yield from (Choice("arrives", index) for index in range(len(state.under_way)))
        if not ready and state.is_over:
            return
        if state.left.kills:
            yield from (Choice("killed", index) for index in range(len(state.processes)) if self._lingers(state, index))
        if state.left.foreign:
            yield from (Choice("foreign", what=name) for name in self.scenario.foreign)
        yield from self._pauses(state, is_idle=not ready)

    def _pauses(self, state: State, *, is_idle: bool) -> Iterator[Choice]:
        """Yield what can be done about the processes that wait."""
        wakes = {index: each.wakes for index, each in enumerate(state.processes) if each.wakes is not None}
        if not wakes:
            return
        soon = min(wakes.values())
        if is_idle or soon - state.now <= self.scenario.slow_seconds:
            yield Choice("time")
        for index, when in wakes.items():
            process = state.processes[index]
            if process.is_stopped and when - state.now < STOP_SECONDS:
                yield Choice("continues", index)
            if state.left.stops and when == soon and process.node is not None and not process.is_stopped:
                yield Choice("stopped", index, False)

    def _lingers(self, state: State, index: int) -> bool:
        node = state.processes[index].node
        is_done = node is not None and isinstance(node.step, Sleep) and node.step == LAST_BREATH
        return is_done and not state.processes[index].is_over and self.scenario.programs[index].lingers

    def _requests(self, state: State, index: int) -> Iterator[Choice]:
        yield Choice("sends", index)
        asked = state.processes[index].asked
        if state.left.faults:
            yield from self._faults[index, asked.changes, state.left.faults == self.bound.faults]
        if state.left.kills and (self.scenario.mortal is None or self._names[index] in self.scenario.mortal):
            yield Choice("killed", index, False)
            if asked.changes:
                yield Choice("killed", index, True)
        if state.left.stops:
            yield from (Choice("stopped", index, is_sent) for is_sent in (False, True))

    def _list_faults(self, index: int, *, changes: bool, is_first: bool) -> tuple[Choice, ...]:
        alphabet = self.scenario.alphabet
        if not is_first:
            alphabet = tuple(each for each in alphabet if each not in faults.ALIKE)
        return tuple(Choice("sends", index, each) for each in faults.possible(alphabet, changes=changes))

    def take(self, state: State, choice: Choice) -> State | None:
        """Return the state after a step; None if nothing happens.

        Raises:
            Violation: something is not true any more.
        """
        match choice.kind:
            case "sends":
                return self._send(state, choice.number, choice.what)
            case "arrives":
                who, asked = state.under_way[choice.number]
                rest = state.under_way[: choice.number] + state.under_way[choice.number + 1 :]
                return self._apply(state._replace(under_way=rest), who, asked)[0]
            case "foreign":
                changed = self.scenario.foreign[choice.what](state.services, state.now)
                left = state.left._replace(foreign=state.left.foreign - 1)
                if changed is None:
                    return None
                ghost = self.scenario.rules.see_foreign(state.ghost, state.services, changed)
                return state._replace(services=changed, left=left, ghost=ghost)
            case "killed":
                return self._kill(state, choice.number, is_sent=choice.what)
            case "stopped":
                return self._stop(state, choice.number, is_sent=choice.what)
            case "continues":
                return self._wake(state, choice.number)
        return self._pass_time(state)

    def describe(self, state: State, choice: Choice, after: State) -> str:
        """Return a step as a line of a story."""
        match choice.kind:
            case "sends" | "killed" | "stopped":
                return self._describe_request(state, choice, after)
            case "continues":
                return f"{self._names[choice.number]}: continued"
            case "arrives":
                who, asked = state.under_way[choice.number]
                return f"{who}: {stories.describe(asked)} arrives late → {self._last_answer(state, who, asked)}"
            case "foreign":
                return f"another program {choice.what}"
        return f"{after.now - state.now:.2f} s pass"

    def _describe_request(self, state: State, choice: Choice, after: State) -> str:
        if not state.processes[choice.number].is_ready:
            rest = "killed before it has ended" if choice.kind == "killed" else "stopped while it waits"
            return f"{self._names[choice.number]}: {rest}"
        who, asked = self._names[choice.number], state.processes[choice.number].asked
        if choice.kind != "sends":
            return f"{who}: {stories.describe(asked)} → " + (
                f"applied; {choice.kind}" if choice.what else f"{choice.kind} before it is sent"
            )
        node = after.processes[choice.number].node
        assert node is not None
        told = self._last_answer(state, who, asked) if choice.what is None else choice.what.value
        return f"{who}: {stories.describe(asked)} → {told}{stories.describe_end(node)}"

    def _last_answer(self, state: State, who: str, asked: Asked) -> str:
        _, answer = state.services[asked.service].answer(asked, state.now)
        return answer.code if answer.status >= 300 else f"{answer.status} {answer.header('ETag') or ''}".strip()

    def _send(self, state: State, index: int, fault: Fault | None) -> State:
        state, told = self._deliver(state, index, fault)
        process = state.processes[index]
        if told is None:
            return state
        if told is Silence.TIMEOUT or fault is Fault.DELAYED:
            patience = process.asked.patience
            seconds = min(patience, faults.DELAY_SECONDS) if fault is Fault.DELAYED else patience
            if seconds == patience:
                told = Silence.TIMEOUT
            return _put(state, index, process._replace(wakes=state.now + seconds, answer=told))
        return self._go_on(state, index, told)

    def _deliver(self, state: State, index: int, fault: Fault | None) -> tuple[State, Answer | Silence | None]:
        """Deliver a request under a fault, and return its answer; None if only a copy came ahead of it."""
        who, process = self._names[index], state.processes[index]
        asked = process.asked
        assert process.node is not None
        left = state.left
        if left.switches is not None and state.is_switch(index):
            left = left._replace(switches=left.switches - 1)
        if fault is not None:
            left = left._replace(faults=left.faults - 1)
        ghost = self.scenario.rules.see_sent(state.ghost, who, asked, state.services, state.now)
        state = state._replace(left=left, active=index, ghost=ghost)
        if fault is Fault.AHEAD:
            return self._apply(state, who, asked)[0], None
        answer: Answer | None = None
        for _ in range(faults.times_applied(fault)):
            state, answer = self._apply(state, who, asked)
        if faults.is_under_way(fault):
            state = state._replace(under_way=(*state.under_way, (who, asked)))
        stored = _find_stored(process.node, asked) if fault is Fault.STORED else None
        told = faults.spoil(fault, answer, stored, state.now)
        if isinstance(told, Answer) and fault is not Fault.STORED:
            told, versions = names.to_process(told, process.versions, self.scenario.programs[index].own)
            state = _put(state, index, process._replace(versions=versions))
        return state, told

    def _apply(self, state: State, who: str, asked: Asked) -> tuple[State, Answer]:
        service, answer = self._ask(state, asked)
        if self._watch is not None:
            self._watch.see_answer(who, asked, answer, state.now)
        if service is None:
            return state, answer
        services = {**state.services, asked.service: service}
        effect = Effect(who, asked, state.services, services, state.now)
        return state._replace(services=services, ghost=self.scenario.rules.see_effect(state.ghost, effect)), answer

    def _ask(self, state: State, asked: Asked) -> tuple[Any, Answer]:
        service = state.services[asked.service]
        known = (service.key, asked, state.now)
        found = self._answers.get(known)
        if found is None:
            after, answer = service.answer(asked, state.now)
            found = self._answers[known] = None if after is service else after, answer
        return found

    def _kill(self, state: State, index: int, *, is_sent: bool) -> State:
        process = state.processes[index]
        active = index if state.active is None else state.active
        state = state._replace(left=state.left._replace(kills=state.left.kills - 1), active=active)
        if is_sent:
            state, _ = self._apply(state, self._names[index], process.asked)
        state = state._replace(ghost=self.scenario.rules.see_kill(state.ghost, self._names[index]))
        node = self._player.end(KILLED) if self._player.forgets else process.node
        return self._settle(_put(state, index, ProcessState(node, is_killed=True)))

    def _stop(self, state: State, index: int, *, is_sent: bool) -> State:
        """Let a process go on so much later, before it sends its request or before it hears the answer, or waits."""
        told = state.processes[index].answer
        if is_sent:
            state, told = self._deliver(state, index, None)
        process = state.processes[index]
        wakes = round((state.now if process.wakes is None else process.wakes) + STOP_SECONDS, 6)
        ghost = self.scenario.rules.see_stop(state.ghost, self._names[index], state.now)
        state = state._replace(left=state.left._replace(stops=state.left.stops - 1), ghost=ghost)
        return _put(state, index, process._replace(wakes=wakes, answer=told, is_stopped=True))

    def _pass_time(self, state: State) -> State:
        state = state._replace(now=min(each.wakes for each in state.processes if each.wakes is not None))
        for index, each in enumerate(state.processes):
            if each.wakes is not None and each.wakes <= state.now:
                state = self._wake(state, index)
        return state

    def _wake(self, state: State, index: int) -> State:
        process = state.processes[index]
        if process.node is not None:
            if isinstance(process.node.step, Asked) and process.answer is None:
                return _put(state, index, process._replace(wakes=None, is_stopped=False))
            return self._go_on(state, index, process.answer)
        program = self.scenario.programs[index]
        given, versions = names.spell(self.scenario.rules.find_given(state.ghost, program), ())
        state = _put(state, index, state.processes[index]._replace(versions=versions))
        now = 0.0 if self._has_own_clocks else state.now
        return self._arrive(state, index, self._player.begin(program, now, given))

    def _go_on(self, state: State, index: int, told: Answer | Silence | None) -> State:
        node = state.processes[index].node
        assert node is not None
        return self._arrive(state, index, self._player.next(node, (self._find_time(state, node), told)))

    def _find_time(self, state: State, node: Node) -> float:
        """Return the time that a process is told."""
        if not self._has_own_clocks:
            return state.now
        waited = node.step.seconds if isinstance(node.step, Sleep) else 0.0
        return round(node.now + waited, 6)

    def _arrive(self, state: State, index: int, node: Node) -> State:
        """Let a process go on until it has something to send, waits, or ends."""
        who, step, versions = self._names[index], node.step, state.processes[index].versions
        self._tell_watch(who, node, versions, state.now)
        while isinstance(step, (Told, Rest)) or (isinstance(step, Sleep) and not step.seconds):
            if isinstance(step, Rest):
                node, versions = self._player.rest(who, node, versions)
            if isinstance(step, Told):
                event = names.unspell(step.event, versions)
                state = state._replace(ghost=self.scenario.rules.see_told(state.ghost, who, event, state.now))
            node = self._player.next(node, (self._find_time(state, node), None))
            self._tell_watch(who, node, versions, state.now)
            step = node.step
        if isinstance(step, Sleep):
            # To the microsecond, so that sums are the same in whatever order.
            return _put(state, index, ProcessState(node, round(state.now + step.seconds, 6), versions=versions))
        if isinstance(step, Ended) and self._is_forgotten(node):
            node, versions = self._player.end(step), ()
        state = _put(state, index, ProcessState(node, versions=versions))
        if isinstance(step, Ended):
            ghost = self.scenario.rules.see_end(state.ghost, who, step, state.services, state.now)
            return self._settle(state._replace(ghost=ghost))
        return state

    def _is_forgotten(self, node: Node) -> bool:
        """Return whether nothing asks any more what a process was told."""
        is_judged = self.scenario.judges_doubts and any(name_doubt(each.step) is not None for each in node.history())
        return self._player.forgets and not is_judged

    def _tell_watch(self, who: str, node: Node, versions: tuple[str, ...], now: float) -> None:
        if self._watch is not None:
            self._watch.see_step(who, node, versions, now)

    def _settle(self, state: State) -> State:
        """Begin the processes whose turn it is."""
        over = {None} | {name for name, each in zip(self._names, state.processes, strict=True) if each.is_over}
        for index, each in enumerate(state.processes):
            program = self.scenario.programs[index]
            if each.node is None and each.wakes is None and program.after in over:
                if program.begins:
                    state = _put(state, index, each._replace(wakes=state.now + program.begins))
                else:
                    state = self._wake(state, index)
        return state


def name_doubt(step: Step) -> str | None:
    """Name the write that a process is in doubt about: empty for its only one, None without a doubt."""
    if isinstance(step, Told) and step.event[0] == "doubts":
        return str(step.event[1])
    return "" if isinstance(step, Ended) and step.status == UNKNOWN else None


def _put(state: State, index: int, process: ProcessState) -> State:
    return state._replace(processes=(*state.processes[:index], process, *state.processes[index + 1 :]))


def _find_stored(node: Node, asked: Asked) -> Answer | None:
    """Return the last answer that a process was given to such a request, or if there is none, to any."""
    history = node.history()
    given = [
        (before.step, after.seen[1])
        for before, after in pairwise(history)
        if isinstance(before.step, Asked) and isinstance(after.seen[1], Answer) and not after.seen[1].is_of_another
    ]
    alike = [answer for step, answer in given if (step.action, step.path) == (asked.action, asked.path)]
    return next(reversed([*(answer for _, answer in given), *alike]), None)
