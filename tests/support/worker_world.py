"""Fakes for tests of the worker: a queue in memory, and places where commands only seem to run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError
from azguard.processes.command_place import CommandEnd, CommandOrder
from azguard.queues.message_format import Body, MessageReceived, Received
from azguard.worker.order import MessageReceipt, Taken
from azguard.worker.settings import WorkSettings

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def target(name: str = "jobs") -> Target:
    """Return a queue that no one asks for."""
    return Target(account.emulator({"queue": 1}), Address(Kind.QUEUE, (name,)))


def settings(**changes: Any) -> WorkSettings:
    """Return settings of a worker."""
    return WorkSettings(**{"queue": target(), "poison": target("jobs-poison"), "command": ["handle"], **changes})


def taken(number: int = 1, dequeue_count: int = 1, text: str = "work", at: float = 0.0) -> Taken:
    """Return a message that was received."""
    shown = MessageReceived(
        address=f"message:jobs/m{number}",
        id=f"m{number}",
        pop_receipt="r0",
        content=text,
        encoding="text",
        is_base64=False,
        insertion_time=BEGAN,
        expiration_time=BEGAN + timedelta(days=7),
        time_next_visible=BEGAN + timedelta(seconds=60),
        dequeue_count=dequeue_count,
    )
    return Taken(Received(target(), Body.of(text), shown), at, at + 7 * 86_400)


@dataclass
class FakeInbox:
    """A queue in memory. What each request is to raise is given by its name, in order; None is nothing."""

    messages: list[Taken] = field(default_factory=list)
    raises: dict[str, list[AzguardError | None]] = field(default_factory=dict)
    #: What was asked for: the request, and its argument.
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    last_hidden_until: datetime | None = None

    def receive(self, number: int, seconds: int) -> list[Taken]:
        self._note("receive", number)
        received, self.messages = self.messages[:number], self.messages[number:]
        return received

    def find_asked_seconds(self) -> float:
        return 0.0

    def hide(self, message: Taken, receipt: MessageReceipt, seconds: int) -> MessageReceipt:
        self._note("hide", receipt.text, seconds)
        return MessageReceipt(f"r{int(receipt.text[1:]) + 1}", BEGAN)

    def delete(self, message: Taken, receipt: MessageReceipt) -> None:
        self._note("delete", receipt.text)
        self.last_hidden_until = receipt.hidden_until

    def send_to_poison(self, message: Taken) -> str:
        self._note("poison")
        return "copy"

    def _note(self, *asked: Any) -> None:
        self.asked.append(asked)
        planned = self.raises.get(asked[0], [])
        error = planned.pop(0) if planned else None
        if error is not None:
            raise error


@dataclass
class FakeClock:
    """A clock that only waiting moves."""

    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds


@dataclass
class FakePlace:
    """A place where a command ends after so many seconds of a clock, or soon after it is told to end."""

    clock: FakeClock = field(default_factory=FakeClock)
    end_after: float = 0.0
    ends: CommandEnd = field(default_factory=lambda: CommandEnd(0))
    raises: AzguardError | None = None
    is_gone: bool = False
    orders: list[CommandOrder] = field(default_factory=list)
    extended: list[float] = field(default_factory=list)
    told_to_end: int = 0
    on_wait: Callable[[], None] = lambda: None
    _until: float = 0.0

    def start(self, order: CommandOrder) -> None:
        self.orders.append(order)
        if self.raises is not None:
            raise self.raises
        self._until = self.clock.seconds + self.end_after

    def wait(self, seconds: float) -> CommandEnd | None:
        self.on_wait()
        if self.clock.seconds >= self._until:
            return self.ends
        self.clock.seconds += max(0.01, seconds)
        return None

    def extend(self, ends: float) -> None:
        self.extended.append(ends)

    def end(self) -> None:
        self.told_to_end += 1
        self._until = self.clock.seconds
        self.ends = CommandEnd(143)


def lines(path: Path) -> Sequence[str]:
    """Return the lines of a file."""
    return path.read_text().splitlines()
