"""Which processes run in a scenario, what else may happen, and what must be true of it."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tests.explorer import faults
from tests.explorer.faults import Fault
from tests.explorer.player import Ended, Program
from tests.explorer.wire import Answer, Asked


class Service(Protocol):
    """A service in memory."""

    @property
    def key(self) -> int:
        """Return a digest."""

    def answer(self, asked: Asked, now: float) -> "tuple[Any, Answer]":
        """Return the service after a request, with its answer."""


Services = Mapping[str, Any]


class Violation(Exception):
    """Something that must be true is not."""


class Bound(NamedTuple):
    """How much may happen in one schedule, besides what the processes do."""

    faults: int = 0
    foreign: int = 0
    kills: int = 0
    #: How often a process is stopped, and continued later.
    stops: int = 0
    #: How often another process goes on although the one that acted last could go on itself; None is without a bound.
    switches: int | None = None

    def __str__(self) -> str:
        words = zip(("fault", "foreign step", "kill", "stop"), self[:4], strict=True)
        said = [_pluralize(count, word) for word, count in words if count]
        said += [] if self.switches is None else [_pluralize(self.switches, "switch")]
        return ", ".join(said) or "no fault"


#: Bounds with a stop: of one process, or two whose steps are few; of two; and of two that do not take turns.
STOPPED = Bound(faults=1, kills=1, stops=1)
STOPPED_BESIDE = Bound(kills=1, stops=1)
STOPPED_ALONE = Bound(kills=1, stops=1, switches=0)


def _pluralize(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 'es' if word.endswith('h') else 's'}"


class Effect(NamedTuple):
    """A request that a service has done."""

    who: str
    asked: Asked
    before: Services
    after: Services
    now: float


class Rules(Protocol):
    """What must be true of a scenario; ``ghost`` is what they remember, a value."""

    def begin(self) -> Hashable:
        """Return what is remembered at the begin."""

    def find_given(self, ghost: Any, program: Program) -> tuple[tuple[str, str], ...]:
        """Return what a process finds on its machine at its begin: names, and texts."""
        return ()

    def see_sent(self, ghost: Any, who: str, asked: Asked, services: Services, now: float) -> Any:
        """Take note of a request before the services have it, whatever becomes of it."""
        return ghost

    def see_effect(self, ghost: Any, effect: Effect) -> Any:
        """Take note of a request that was done."""

    def see_foreign(self, ghost: Any, before: Services, after: Services) -> Any:
        """Take note of what a program did that is not azguard."""
        return ghost

    def see_told(self, ghost: Any, who: str, event: tuple[Any, ...], now: float) -> Any:
        """Take note of what a process told."""

    def see_kill(self, ghost: Any, who: str) -> Any:
        """Take note that a process was killed."""
        return ghost

    def see_stop(self, ghost: Any, who: str, now: float) -> Any:
        """Take note that a process was stopped."""
        return ghost

    def see_end(self, ghost: Any, who: str, ended: Ended, services: Services, now: float) -> Any:
        """Take note of the end of a process."""

    def check_over(self, ghost: Any, services: Services, now: float) -> None:
        """Check the state when all processes have ended."""

    def find_truth(self, ghost: Any, who: str, what: str) -> Hashable:
        """Return the truth about what a process says that it does not know; empty is all that it does."""


#: Writes as a program that is not azguard does; None where it would do nothing.
Foreign = Callable[[Services, float], "Services | None"]


@dataclass(frozen=True)
class Scenario:
    """Which processes run, what else may happen, and what must be true."""

    name: str
    #: Returns the processes; called once for each search.
    programs: tuple[Program, ...]
    services: Services
    rules: Rules
    #: That of ``--thorough``, and of a run of nothing else, if ``deep`` is None.
    bound: Bound
    #: That of the short tests; None leaves it to walks at random.
    short: Bound | None
    #: That of ``pytest -m thorough`` and of ``python -m tests.explorer``, beside ``stopped``.
    deep: Bound | None = None
    #: That in which a process is stopped and continued; None where another scenario has the same.
    stopped: Bound | None = STOPPED
    foreign: Mapping[str, Foreign] = field(default_factory=dict)
    #: What other programs may do that a doubt is judged by; None is what they do here.
    beyond: Mapping[str, Foreign] | None = None
    alphabet: tuple[Fault, ...] = faults.USUAL
    #: How far time may move while a process has something to send, which is then slow.
    slow_seconds: float = 1.0
    #: Whether a doubt is a violation that only one truth explains: see ``doubts``.
    judges_doubts: bool = True
    #: Which processes can be killed; None is each.
    mortal: tuple[str, ...] | None = None
    #: Whether the first two processes differ in their names alone: then the first one is the first to act.
    is_symmetric: bool = False
    #: Whether each process counts its own pauses alone, and so is not told for how long it was slow: for what goes by
    #: versions, which is then the same at any time. Where processes are stopped, they are told.
    has_own_clocks: bool = False

    @property
    def bounds(self) -> list[Bound]:
        """Return all bounds that ``pytest -m thorough`` and ``python -m tests.explorer`` exhaust."""
        return [each for each in (self.deep or self.bound, self.stopped) if each is not None]
