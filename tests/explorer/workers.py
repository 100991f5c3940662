"""Workers of one queue that claim keys in a table: what ran beside what, how often, and what became of each message."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import LockLost, OutcomeUnknown
from azguard.processes.command_place import CommandEnd, CommandOrder
from azguard.processes.guardian_process import MARGIN_SECONDS
from azguard.requests.deadline import Deadline
from azguard.tables.writes import EntityWrite
from azguard.worker.once import OnceClaim, OnceTable
from azguard.worker.order import MessageReceipt, QueueInbox, Taken, Workplace
from azguard.worker.run import Worker
from azguard.worker.settings import WorkSettings
from tests.explorer import player
from tests.explorer.faults import Fault
from tests.explorer.player import Ended, Process, Program
from tests.explorer.queue_service import Message, QueueService
from tests.explorer.scenario import STOPPED_ALONE, STOPPED_BESIDE, Bound, Effect, Rules, Scenario, Services, Violation
from tests.explorer.table_service import TableService
from tests.explorer.updates import with_pair
from tests.explorer.wire import Asked

_QUEUE, _POISON, _TABLE = "jobs", "jobs-poison", "once"
# Shorter than a claim.
_VISIBILITY_SECONDS = 10
_COMMAND_SECONDS = 0.2
# The shortest claim.
_CLAIM_SECONDS = 30.0
#: How each command ends, by the key of its message.
_STATUSES = {"m1": 0, "m2": 0, "bad": 65}

# Writes by who sent them, and whether each was applied.
_Sent = tuple[tuple[str, tuple[Asked, bool]], ...]


class Ghost(NamedTuple):
    """What the rules remember."""

    #: Which commands run, by their workers: the key, and until when the claim lasts.
    running: tuple[tuple[str, tuple[str, float]], ...] = ()
    #: Keys whose command has succeeded, and those of which the table has said so.
    succeeded: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()
    #: The write that each worker has sent last, and whether it was applied; and those of which it has said that it does
    #: not know.
    sent: _Sent = ()
    doubted: _Sent = ()
    ends: tuple[tuple[str, Ended], ...] = ()
    #: When each worker was stopped while its command ran, until it sends something.
    paused: tuple[tuple[str, float], ...] = ()
    #: The last receipt that each worker was told when it hid its message for longer.
    receipts: tuple[tuple[str, str], ...] = ()


class WorkerRules(Rules):
    """No message is lost, no key runs beside itself, and none that was noted as done runs again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys

    def begin(self) -> Ghost:
        return Ghost()

    def see_stop(self, ghost: Ghost, who: str, now: float) -> Ghost:
        return ghost._replace(paused=with_pair(ghost.paused, who, now)) if who in dict(ghost.running) else ghost

    def see_sent(self, ghost: Ghost, who: str, asked: Asked, services: Services, now: float) -> Ghost:
        paused = dict(ghost.paused).get(who, now)
        ghost = ghost._replace(paused=with_pair(ghost.paused, who, None))
        if asked.path == f"{_POISON}/messages" and now > paused + _VISIBILITY_SECONDS:
            raise Violation(f"{who} copied a message that another may have")
        if asked.method == "GET" and asked.path == f"{_QUEUE}/messages":
            ghost = ghost._replace(receipts=with_pair(ghost.receipts, who, None))
        if (given := asked.asks("popreceipt")) is not None and given != dict(ghost.receipts).get(who, given):
            raise Violation(f"{who} sent another receipt than the last one that it was told")
        if not asked.changes or dict(ghost.sent).get(who, (None, False))[0] == asked:
            return ghost
        return ghost._replace(sent=with_pair(ghost.sent, who, (asked, False)))

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        for key in self._keys:
            was, row = _find_row(effect.before, key), _find_row(effect.after, key)
            _check_claim(effect, key, was, row)
            if row.get("state") == "done":
                if key not in ghost.succeeded:
                    raise Violation(f"{effect.who} noted {key} as done, which has not succeeded")
                ghost = ghost._replace(noted=ghost.noted | {key})
            is_gone = _is_in(effect.before, _QUEUE, key) and not _is_in(effect.after, _QUEUE, key)
            if is_gone and key not in ghost.succeeded and not _is_in(effect.after, _POISON, key):
                raise Violation(f"{effect.who} deleted {key}, which has not succeeded")
            if is_gone and key in ghost.succeeded and key not in ghost.noted:
                raise Violation(f"{effect.who} deleted {key} before it was noted as done")
        return ghost._replace(sent=_note(ghost.sent, effect), doubted=_note(ghost.doubted, effect))

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        if event[0] == "receipt":
            return ghost._replace(receipts=with_pair(ghost.receipts, who, event[1]))
        if event[0] == "doubts":
            sent = dict(ghost.sent)[who]
            return ghost._replace(doubted=with_pair(ghost.doubted, f"{who} {event[1]}", sent))
        if event[0] == "ends":
            _, key, status = event
            done = {key} if status == 0 else set()
            running = with_pair(ghost.running, who, None)
            return ghost._replace(running=running, succeeded=ghost.succeeded | done)
        _, key, ends = event
        if key in ghost.noted:
            raise Violation(f"{who} runs {key}, which is noted as done")
        beside = [other for other, (same, until) in ghost.running if same == key and now < until]
        if beside:
            raise Violation(f"{who} runs {key} beside {beside[0]}")
        return ghost._replace(running=with_pair(ghost.running, who, (key, ends)))

    def see_kill(self, ghost: Ghost, who: str) -> Ghost:
        running, receipts = (with_pair(each, who, None) for each in (ghost.running, ghost.receipts))
        return ghost._replace(running=running, receipts=receipts)

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if ended.status not in (0, 20, 53, 74):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        ghost = ghost._replace(sent=with_pair(ghost.sent, who, None), receipts=with_pair(ghost.receipts, who, None))
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        for key in self._keys:
            if key not in ghost.succeeded and not any(_is_in(services, each, key) for each in (_QUEUE, _POISON)):
                raise Violation(f"{key} is lost")

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        _, was_done = dict(ghost.doubted).get(f"{who} {what}", (None, False))
        return "applied" if was_done else "not applied"


def _note(
    sent: tuple[tuple[str, tuple[Asked, bool]], ...], effect: Effect
) -> tuple[tuple[str, tuple[Asked, bool]], ...]:
    """Note that a write was applied."""
    return tuple((name, (asked, was_done or asked == effect.asked)) for name, (asked, was_done) in sent)


def _find_row(services: Services, key: str) -> dict[str, Any]:
    found = services["table"].entities.get(f"{_TABLE}(PartitionKey='{_QUEUE}',RowKey='{key}')")
    return {} if found is None else {**found.values, "written": found.written}


def _is_in(services: Services, queue: str, key: str) -> bool:
    return any(each.text == key for each in services["queue"].queues.get(queue, ()))


def _check_claim(effect: Effect, key: str, was: dict[str, Any], row: dict[str, Any]) -> None:
    """See that no claim is taken over before its time is over, but by the worker whose it is."""
    is_taken_over = was.get("state") == "claimed" and row.get("claim") != was["claim"] and row.get("by") != was["by"]
    if is_taken_over and effect.now < was["written"] + was["seconds"]:
        raise Violation(f"{effect.who} took over the claim of {key} before its end")
    if was.get("state") == "done" and row.get("state") != "done":
        raise Violation(f"{effect.who} forgot that {key} is done")


class _Place(Workplace):
    """Where a command seems to run."""

    is_gone = False

    def __init__(self, process: Process) -> None:
        self._process = process
        self._key = ""
        self._left = 0.0

    def start(self, order: CommandOrder) -> None:
        if self._process.now >= order.ends - order.grace - MARGIN_SECONDS:
            raise LockLost("the claim is about to end")
        self._key, self._left = order.stdin.decode(), _COMMAND_SECONDS
        self._process.tell("starts", self._key, order.ends)

    def wait(self, seconds: float) -> CommandEnd | None:
        self._process.sleep(min(seconds, self._left))
        self._left -= seconds
        if self._left > 0:
            return None
        self._process.tell("ends", self._key, _STATUSES[self._key])
        return CommandEnd(_STATUSES[self._key])

    def extend(self, ends: float) -> None:
        """It ends before."""

    def end(self) -> None:
        self._left = 0.0


@contextmanager
def _doubting(what: str) -> Iterator[None]:
    """Tell of a write whose outcome the worker does not know."""
    try:
        yield
    except OutcomeUnknown:
        _tell("doubts", f"{what} at {_find_process().now:.2f} s")
        raise


def _find_process() -> Process:
    process = player.find_acting()
    assert process is not None
    return process


def _tell(*event: object) -> None:
    _find_process().tell(*event)


class _Inbox(QueueInbox):
    def hide(self, message: Taken, receipt: MessageReceipt, seconds: int) -> MessageReceipt:
        hidden = super().hide(message, receipt, seconds)
        _tell("receipt", hidden.text)
        return hidden

    def delete(self, message: Taken, receipt: MessageReceipt) -> None:
        with _doubting(f"the delete of {message.id}"):
            super().delete(message, receipt)

    def send_to_poison(self, message: Taken) -> str:
        with _doubting(f"the copy of {message.id}"):
            return super().send_to_poison(message)


class _Once(OnceTable):
    def _write(self, key: str, made: EntityWrite, deadline: Deadline) -> OnceClaim:
        with _doubting(f"the row of {key}"):
            return super()._write(key, made, deadline)


class _Crew:
    """Handles each message at once, in the greenlet of the worker, instead of in a thread."""

    busy, free, is_gone, failure = 0, 1, False, None

    def __init__(self, worker: Worker, place: _Place) -> None:
        self._worker, self._place = worker, place

    def give(self, taken: Taken) -> None:
        self._worker._handle(taken, self._place)


class _Bell:
    def __init__(self, process: Process) -> None:
        self.wait = process.sleep


def _worker(name: str, *, begins: float = 0.0) -> Program:
    def main(process: Process) -> str:
        def at(kind: Kind, *parts: str) -> Target:
            return Target(process.account, Address(kind, parts))

        queue, poison = at(Kind.QUEUE, _QUEUE), at(Kind.QUEUE, _POISON)
        once = _Once(at(Kind.TABLE, _TABLE), name)
        settings = WorkSettings(
            queue=queue,
            poison=poison,
            command=["handle"],
            visibility=_VISIBILITY_SECONDS,
            drain=True,
            claims=once,
            choose_key=lambda body, message_id: body.decode(),
        )
        worker = Worker(settings, _Inbox(queue, poison, "text"), ())
        worker._bell.close()
        worker._crew, worker._bell = _Crew(worker, _Place(process)), _Bell(process)  # type: ignore[assignment]  # in one thread
        once.check(process.deadline(20))
        worker._work()
        return str(worker._end().status)

    return Program(name, main, begins=begins)


# Each has a kill in its other bound.
_STOPPED = Bound(faults=1, stops=1, switches=0)
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.STORED)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of workers."""
    both = _worker("A"), _worker("B")
    alike: dict[str, Any] = {"is_symmetric": True}
    turns: dict[str, Any] = {"deep": Bound(faults=1, kills=1, switches=1), "stopped": STOPPED_BESIDE, **alike}
    yield _scenario("workers", ("m1", "m2"), *both, bound=Bound(faults=1, kills=1, switches=0), **turns)
    one = ("workers, one message", ("m1",), *both)
    yield _scenario(*one, bound=Bound(faults=1, kills=1), short=Bound(kills=1), stopped=_STOPPED, **alike)
    yield _scenario(
        "workers, one stopped",
        ("m1",),
        _worker("A"),
        _worker("B", begins=_VISIBILITY_SECONDS + 1.0),
        bound=Bound(faults=1, kills=1, switches=0),
        short=Bound(faults=1, kills=1, switches=0),
        stopped=_STOPPED,
        alphabet=(Fault.LOST_AFTER, Fault.LATE, Fault.DATE_AHEAD),
    )
    # So long that its claim is over when another takes the message, and it goes on while that one runs.
    yield _scenario(
        "workers, one stopped for long",
        ("m1",),
        _worker("A"),
        _worker("B", begins=_CLAIM_SECONDS + 5.0),
        bound=Bound(faults=1, kills=1, switches=1),
        short=Bound(stops=1, switches=1),
        stopped=_STOPPED,
        alphabet=(Fault.LOST_AFTER, Fault.LATE),
    )
    # After the message can be received again, and before the claim of one that was killed has ended.
    early_bounds: dict[str, Any] = {"bound": Bound(kills=1), "short": Bound(kills=1), "stopped": STOPPED_BESIDE}
    early = _worker("A"), _worker("B", begins=_CLAIM_SECONDS - 10.0)
    yield _scenario("workers, before the end of a claim", ("m1",), *early, **early_bounds)
    untimed = {"table": TableService(tells_time=False)}
    yield _scenario("workers, not told the time", ("m1",), *early, **early_bounds, services=untimed)
    yield _scenario(
        "worker, poison",
        ("bad",),
        _worker("A"),
        _worker("B", begins=35.0),
        bound=Bound(faults=1, kills=1),
        stopped=STOPPED_ALONE,
    )


def _scenario(
    name: str,
    keys: tuple[str, ...],
    *programs: Program,
    bound: Bound,
    short: Bound | None = None,
    alphabet: tuple[Fault, ...] = _ALPHABET,
    services: Services | None = None,
    **more: Any,
) -> Scenario:
    messages = tuple(Message(f"m{number}", key) for number, key in enumerate(keys, 1))
    return Scenario(
        name=name,
        programs=programs,
        services={"queue": QueueService({_QUEUE: messages}), **(services or {"table": TableService()})},
        rules=WorkerRules(keys),
        bound=bound,
        short=short,
        alphabet=alphabet,
        **more,
    )
