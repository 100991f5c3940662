"""Each request of ``queue work`` meets each fault: nothing is lost, and nothing deleted that was not done.

A row is the request that is spoilt. The proxy's log says which writes the service has committed.
"""

import re
import threading
from dataclasses import dataclass

import pytest

from tests.support import queue_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.faultproxy.proxy import Chosen

RECEIVE, HIDE, DELETE, POISON, CREATE = "receive", "hide", "delete", "poison", "create"
FAULTS = [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.HALF, Fault.FAIL_BEFORE, Fault.REPLAYED, Fault.LATE]
_POISON_FAULTS = [Fault.DROP, Fault.RESET, Fault.FAIL_AFTER]
# What each request is needed for, as the body that the command ends by, and how long it runs.
_STATUS = {RECEIVE: "0", HIDE: "0", DELETE: "0", POISON: "65", CREATE: "65"}


def kind(request: Request) -> str:
    path = request.path
    if request.method == "GET":
        return RECEIVE
    if request.method == "DELETE":
        return DELETE
    if request.method == "POST":
        return POISON
    return HIDE if re.search(r"/messages/", path) else CREATE


@dataclass(frozen=True)
class Played:
    """What a worker left, and what was really done."""

    ran: Ran
    #: How often the command ran.
    runs: int
    #: The messages of the queue and of its poison queue, hidden ones included.
    left: int
    poisoned: int

    @property
    def is_kept(self) -> bool:
        """Return whether the message is handled, or is still somewhere."""
        return self.runs > 0 or self.left + self.poisoned > 0


def play(cli: CliWorld, what: str, fault: Fault) -> Played:
    """Have a worker handle one message, and spoil the first request of a kind."""
    queue = queue_world.queue(cli, "work")
    met = threading.Event()

    def decide(request: Request) -> Chosen:
        if kind(request) != what or met.is_set():
            return Chosen(Fault.NONE)
        met.set()
        return Chosen(fault)

    script = f'echo >> "$LOG"; {"sleep 3;" if what == HIDE else ""} exit {_STATUS[what]}'
    # Only a message that is hidden for long can be known to be deleted by us.
    hidden = "60s" if what == DELETE else "2s"
    options = ("--max-messages", "1", "--visibility-timeout", hidden, "--retry-visibility", "0")
    with proxy.running(queue_world.port(cli), decide) as between:
        world = queue_world.through(cli, between.port)
        env = {"LOG": str(cli.root / "log")}
        ran = world.fork("queue", "work", queue, *options, "-o", "json", "--", "sh", "-c", script, env=env)
    assert met.is_set()
    log = cli.root / "log"
    runs = len(log.read_text().splitlines()) if log.exists() else 0
    return Played(ran, runs, _count(cli, queue), _count(cli, f"{queue}-poison"))


def _count(cli: CliWorld, queue: str) -> int:
    from azure.core.exceptions import ResourceNotFoundError

    try:
        return int(queue_world.sdk(cli, queue).get_queue_properties().approximate_message_count)
    except ResourceNotFoundError:
        return 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_receive_that_is_lost_hides_the_message_for_a_while(cli: CliWorld, fault: Fault) -> None:
    played = play(cli, RECEIVE, fault)
    assert (played.ran.code, played.runs, played.left, played.ran.json["done"]) == (0, 1, 0, 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_delete_whose_answer_is_lost_is_settled(cli: CliWorld, fault: Fault) -> None:
    played = play(cli, DELETE, fault)
    assert (played.ran.code, played.runs, played.left, played.ran.json["done"]) == (0, 1, 0, 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_update_whose_answer_is_lost_loses_no_message(cli: CliWorld, fault: Fault) -> None:
    played = play(cli, HIDE, fault)
    found = played.ran.json
    # With the answer the new receipt is lost: then the message comes again.
    is_lost = fault.reaches
    assert (played.ran.code, played.runs, found["lost"], found["done"]) == (
        20 * is_lost,
        1,
        int(is_lost),
        int(not is_lost),
    )
    assert played.left == int(is_lost)


@pytest.mark.parametrize("what", [POISON, CREATE])
@pytest.mark.parametrize("fault", _POISON_FAULTS)
def test_a_message_on_its_way_to_the_poison_queue_is_never_lost(cli: CliWorld, what: str, fault: Fault) -> None:
    played = play(cli, what, fault)
    assert played.is_kept
    assert played.left + played.poisoned >= 1
