"""``safe-update -v`` tells the story of an update: each of its steps in the core, the time on the command line."""

import json
import re
from collections.abc import Callable
from typing import IO, Any

from azguard.emulators.azurite_process import Azurite
from azguard.requests.deadline import Deadline
from azguard.updates.local_runs import LocalQueue
from tests.azurite.safe_update.test_command import address, first_write, through
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.fake_resource import Fault, Store
from tests.support.faultproxy import proxy
from tests.support.update_case import Case, others_update, stored

__all__ = ["address"]
NONE, LOST, RESET, REFUSED, LATE = Fault.NONE, Fault.LOST, Fault.RESET, Fault.REFUSED, Fault.LATE
WRITING = 'attempt 1: writing 1 byte over "E1"'
NO_ANSWER = "attempt 1: in doubt (no answer)"
ASKING = "doubt 1: reading again in 0.028 s"
DONE = 'done: committed as "E2" (1 attempt, 0 conflicts, 0 doubts)'


def met_another(store: Store) -> Case:
    return Case(store, others={2: others_update(store)})


def lost_to_another(store: Store) -> Case:
    return Case(store, (RESET,), others={3: others_update(store)})


def met_a_lease(store: Store) -> Case:
    store.acquire('"E1"', "theirs", 2)
    return Case(store)


STORIES: dict[str, tuple[Callable[[Store], Case], dict[str, Any], list[str]]] = {
    "undisturbed": (Case, {}, ['read "E1"', WRITING, DONE]),
    "conflict": (
        met_another,
        {},
        [
            'read "E1"',
            WRITING,
            "attempt 1: refused (ConditionNotMet)",
            'conflict 1: another writer wrote over "E1"; starting over in 0.000 s',
            'read "E2"',
            'attempt 2: writing 1 byte over "E2"',
            'done: committed as "E3" (2 attempts, 1 conflict, 0 doubts)',
        ],
    ),
    "lost answer": (
        lambda store: Case(store, (LOST,)),
        {},
        [
            'read "E1"',
            WRITING,
            NO_ANSWER,
            ASKING,
            'read "E2"',
            "settled: our write is in the lineage",
            'done: committed as "E2" (1 attempt, 0 conflicts, 1 doubt)',
        ],
    ),
    "lost request": (
        lambda store: Case(store, (RESET,)),
        {},
        [
            'read "E1"',
            WRITING,
            NO_ANSWER,
            ASKING,
            'read "E1"',
            'still open: "E1" is current, so writing over it again is safe',
            'attempt 2: writing 1 byte over "E1"',
            'done: committed as "E2" (2 attempts, 0 conflicts, 1 doubt)',
        ],
    ),
    "lost request and another writer": (
        lost_to_another,
        {},
        [
            'read "E1"',
            WRITING,
            NO_ANSWER,
            ASKING,
            'read "E2"',
            'settled: another write replaced "E1", so ours over it can never land',
            'attempt 2: writing 1 byte over "E2"',
            'done: committed as "E3" (2 attempts, 0 conflicts, 1 doubt)',
        ],
    ),
    "no connection": (
        lambda store: Case(store, (REFUSED,)),
        {},
        [
            'read "E1"',
            WRITING,
            "attempt 1: not sent (no connection)",
            "asking again in 0.028 s",
            'read "E1"',
            WRITING,
            DONE,
        ],
    ),
    "giving up in doubt": (
        lambda store: Case(store, (LATE,)),
        {"max_attempts": 1},
        [
            'read "E1"',
            WRITING,
            NO_ANSWER,
            ASKING,
            'read "E1"',
            'still open: "E1" is current, so writing over it again is safe',
            "leaving, but first: settling the write in doubt",
            'still open: "E1" is current, so writing over it again is safe',
            'settled: "E1" is fenced off, so our write over it can never land',
        ],
    ),
    "lost answer under a lease": (
        lambda store: Case(store, (NONE, LOST)),
        {"guard_by_lease": True},
        [
            'read "E1"',
            'lease: acquiring it on "E1" for 30 s',
            "lease: ours",
            WRITING,
            NO_ANSWER,
            'settled: no other writer could write under our lease, so "E2" is ours',
            'done: committed as "E2" (1 attempt, 0 conflicts, 1 doubt)',
            "lease: released",
        ],
    ),
    "another holder's lease": (
        met_a_lease,
        {},
        [
            'read "E1", leased',
            WRITING,
            "attempt 1: refused (LeaseIdMissing)",
            'lease: not ours, on "E1"; waiting until it is free',
            'read "E1"',
            'attempt 2: writing 1 byte over "E1"',
            'done: committed as "E2" (2 attempts, 0 conflicts, 0 doubts)',
        ],
    ),
}


@cases("name", *STORIES)
def test_every_step_of_an_update_is_told(name: str) -> None:
    make, plan, story = STORIES[name]
    case = make(stored())
    case.outcome(**plan)
    assert case.told == story


def test_an_update_done_before_says_so() -> None:
    store = stored()
    Case(store).end()
    case = Case(store)
    case.end()
    assert case.told == [
        'read "E2"',
        "the lineage has this op: it was done before",
        "done: applied_before (0 attempts, 0 conflicts, 0 doubts)",
    ]


# On the command line


def events(lines: list[str]) -> list[str]:
    """Return the events of a story, each with its number, and check that every line has the time elapsed, in order.

    The requests and pauses between them are told too; they are tested elsewhere.
    """
    found = [re.fullmatch(r" *(\d+\.\d{3}) s  (.+)", line) for line in lines]
    assert all(found), lines
    times = [float(each[1]) for each in found if each]
    assert times == sorted(times)
    between = ("GET http", "PUT http", "waiting ")
    return [re.split(r"[:\"(]", each[2])[0].strip() for each in found if each and not each[2].startswith(between)]


def test_a_lost_answer_is_told_in_time_and_counted_in_the_result(cli: CliWorld, address: str, azurite: Azurite) -> None:
    with proxy.running(azurite.ports["blob"], first_write()) as running:
        ran = cli.call("safe-update", address, "--increment", "n", "-v", env=through(azurite, running.port))
    told = events(ran.err.splitlines())
    counts = {key: ran.json[key] for key in ("attempts", "conflicts", "doubts", "outcome")}
    assert (told, counts) == (
        ["read", "attempt 1", "attempt 1", "doubt 1", "read", "settled", "done"],
        {"attempts": 1, "conflicts": 0, "doubts": 1, "outcome": "committed"},
    )


def test_without_v_an_update_tells_no_story(cli: CliWorld, address: str) -> None:
    ran = cli.call("safe-update", address, "--increment", "n")
    assert (ran.code, ran.err) == (0, "")


def test_waiting_for_a_turn_is_told_while_it_lasts(cli: CliWorld, address: str, azurite: Azurite) -> None:
    queues = cli.root / ".cache" / "queues"
    with LocalQueue(queues, f"{azurite.blob_endpoint.rstrip('/')} {address}", Deadline(60)):
        process = cli.begin_fork("safe-update", address, "--increment", "n", "-v")
        first = _line(process.stderr)
    out, rest = process.communicate(timeout=60)
    told = events([first, *rest.decode().splitlines()])
    assert (told, json.loads(out)["outcome"]) == (
        ["local queue", "local queue", "read", "attempt 1", "done"],
        "committed",
    )


def _line(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.readline().decode().rstrip("\n")
