"""Each rule finds the trace that breaks it, and nothing in the one that does not."""

from typing import Any

from azguard.requests.lineage import ABSENT, Lineage
from tests.support.cases import cases
from tests.traces.records import Event, Step
from tests.traces.rules import RULES, Checker

OP, OTHER = "op-of-this-write", "op-of-other-one_"
BLOB, ROW, QUEUE = "blob:c/x", "entity:once/#1", "queue:jobs"
Told = Step | Event


def said(step: str, address: str = BLOB, process: str = "1", **facts: Any) -> Step:
    """Return a step; its time is its place in the story."""
    if address == BLOB and not facts.keys() & {"lease", "write"}:
        facts = {"op": OP, **facts}
    return Step(0.0, process, 1, "safe-update", step, address, facts)


def did(what: str, etag: str = "", over: str | None = None, **facts: Any) -> Event:
    """Return what the service did; a write of an op has its lineage."""
    op = facts.get("op")
    lineage = facts.pop("lineage", Lineage(((op, over or ABSENT),)) if op else Lineage())
    committed = facts.pop("committed", what.startswith(("PUT", "DELETE")))
    status = 200 if facts.pop("ok", True) else 412
    return Event(
        0.0, 0.0, BLOB, what, committed, status, etag, over, lineage=lineage, transmission=f"{id(facts)}", **facts
    )


def check(story: list[Told], seconds: float = 1.0) -> list[str]:
    """Return the rules that a story breaks, which happens in its order, a step each second."""
    steps, events = [], []
    for place, told in enumerate(story):
        at = 100.0 + place * seconds
        if isinstance(told, Step):
            steps.append(Step(at, told.process, place, told.command, told.step, told.address, told.facts))
        else:
            facts = {**told.__dict__, "sent": at, "answered": at, "transmission": told.transmission or str(place)}
            events.append(Event(**facts))
    return [violation.rule for violation in Checker(steps, events).check()]


READ: list[Told] = [did("GET blob", "1"), said("read", version="1")]
SENDING = said("sending", over="1", guard="if-match")
WROTE = did("PUT blob", "2", "1", op=OP)
SILENT = said("sent", over="1", outcome="in doubt")
REFUSED = said("sent", over="1", outcome="refused", code="ConditionNotMet")
COMMITTED = said("sent", over="1", outcome="committed")
SETTLED = said("settled", outcome="committed", etag="2")
AGAIN: list[Told] = [did("GET blob", "2", lineage=Lineage(((OP, "1"),))), said("read", version="2")]
THEIRS = did("PUT blob", "3", "1", op=OTHER)
BESIDE: list[Told] = [did("GET blob", "3", lineage=Lineage(((OTHER, "1"),))), said("read", version="3")]
FREED = said("looked", over="1", version="3", found="never")
FOUND = said("looked", version="2", found="committed", where="lineage")
UNKNOWN = said("settled", outcome="unknown")
NOT_APPLIED = said("settled", outcome="not applied")
ASKING = said("asking", action="acquire", lease="a", seconds=15)
GRANTED = did("PUT lease:acquire", proposed="a")
HELD: list[Told] = [ASKING, GRANTED, said("acquired", lease="a"), said("held", lease="a", fence=1)]
NEXT: list[Told] = [
    said("asking", action="acquire", lease="b", seconds=15, process="2"),
    did("PUT lease:acquire", proposed="b"),
    said("acquired", lease="b", process="2"),
]
LEAVING: list[Told] = [
    said("asking", action="release", lease="a"),
    did("PUT lease:release", lease="a"),
    said("released", lease="a"),
]
CLAIMING = said("claiming", ROW, claim="k1", message="m", seconds=60)
CLAIMED: list[Told] = [CLAIMING, said("claimed", ROW, claim="k1", message="m")]
THEY_CLAIM: list[Told] = [
    said("claiming", ROW, "2", claim="k2", message="m2", seconds=60),
    said("claimed", ROW, "2", claim="k2", message="m2"),
]
DONE = said("done", ROW, claim="k1")
DELETED = said("deleted", QUEUE, message="m", key="d")

ALLOWED: dict[str, list[Told]] = {
    "committed": [*READ, SENDING, WROTE, COMMITTED, SETTLED],
    "answer lost, then found": [*READ, SENDING, WROTE, SILENT, *AGAIN, FOUND, SETTLED],
    "never came": [*READ, SENDING, SILENT, THEIRS, *BESIDE, FREED, NOT_APPLIED],
    "refused and looked at": [*READ, THEIRS, SENDING, REFUSED, *BESIDE, NOT_APPLIED],
    "second copy refused": [*READ, SENDING, WROTE, REFUSED, *AGAIN, FOUND, SETTLED],
    "fenced": [
        *READ,
        SENDING,
        SILENT,
        *READ,
        said("fencing", over="1"),
        said("fenced", over="1", outcome="committed"),
        NOT_APPLIED,
    ],
    "unknown": [*READ, SENDING, SILENT, UNKNOWN],
    "killed": [*READ, SENDING, WROTE],
    "one holder after another": [*HELD, *LEAVING, *NEXT, said("held", lease="b", fence=2, process="2")],
    "broken": [*HELD, did("PUT lease:break"), *NEXT, said("held", lease="b", fence=2, process="2")],
    "a claim and its end": [*CLAIMED, DONE, DELETED],
    "a claim that was given up": [*CLAIMED, said("failed", ROW, claim="k1"), *THEY_CLAIM],
    "a copy of a message": [*CLAIMED, said("copied", "queue:jobs-poison", message="m"), DELETED],
}
BROKEN: dict[str, list[Told]] = {
    "another version": [did("GET blob", "0"), said("read", version="0"), SENDING, WROTE, COMMITTED, SETTLED],
    "applied already": [*AGAIN, said("sending", over="2"), UNKNOWN],
    "beside a doubt": [
        *READ,
        SENDING,
        SILENT,
        did("GET blob", "3"),
        said("read", version="3"),
        said("sending", over="3"),
        UNKNOWN,
    ],
    "not looked": [*READ, SENDING, SILENT, SENDING, UNKNOWN],
    "answer of another": [*READ, SENDING, COMMITTED],
    "false never": [
        *READ,
        SENDING,
        SILENT,
        did("GET blob", "3", lineage=Lineage(((OTHER, "2"),))),
        said("read", version="3"),
        FREED,
        NOT_APPLIED,
    ],
    "false commit": [*READ, SENDING, SILENT, *READ, SETTLED],
    "false refusal": [*READ, SENDING, WROTE, said("sent", over="1", outcome="refused", code="X"), NOT_APPLIED],
    "left in doubt": [*READ, SENDING, SILENT, *READ, NOT_APPLIED],
    "known doubt": [*READ, SENDING, said("sent", over="1", outcome="not sent"), UNKNOWN],
    "applied twice": [
        *READ,
        SENDING,
        WROTE,
        COMMITTED,
        did("GET blob", "4"),
        said("read", version="4"),
        said("sending", over="4"),
        did("PUT blob", "5", "4", op=OP),
        said("sent", over="4", outcome="committed"),
        said("settled", outcome="committed", etag="5"),
    ],
    "sent by itself": [
        *READ,
        SENDING,
        WROTE,
        did("PUT blob", "", "1", op=OP, ok=False, committed=False),
        COMMITTED,
        SETTLED,
    ],
    "unconditional": [*READ, SENDING, did("PUT blob", "2", None, op=OP), SILENT, UNKNOWN],
    "asked unsaid": [*HELD, *LEAVING, did("PUT lease:acquire", proposed="c")],
    "id used again": [*HELD, *LEAVING, ASKING],
    "false hold": [ASKING, said("acquired", lease="a")],
    "two holders": [*HELD, *NEXT, said("held", lease="b", fence=2, process="2")],
    "fence fell": [*HELD, *LEAVING, *NEXT, said("held", lease="b", fence=1, process="2")],
    "claimed beside": [*CLAIMED, *THEY_CLAIM],
    "done again": [*CLAIMED, DONE, *THEY_CLAIM],
    "deleted undone": [*CLAIMED, DELETED],
}


@cases("story", *list(ALLOWED))
def test_what_the_protocol_does_is_allowed(story: str) -> None:
    assert check(ALLOWED[story]) == []


def test_each_rule_has_a_story_that_breaks_it() -> None:
    assert set(BROKEN) == set(RULES)


@cases("rule", *list(BROKEN))
def test_a_story_that_breaks_a_rule_is_found(rule: str) -> None:
    assert check(BROKEN[rule]) == [rule]


def test_a_holder_may_follow_one_whose_time_is_over() -> None:
    assert check([*HELD, *NEXT, said("held", lease="b", fence=2, process="2")], seconds=20) == []


def test_a_step_that_is_not_allowed_is_shown_with_its_neighbours() -> None:
    steps = [said("read", version="1"), Step(2.0, "1", 2, "safe-update", "sending", BLOB, {"op": OP, "over": "0"})]
    (violation, *_) = Checker(steps, []).check()
    assert str(violation).splitlines() == [
        "another version, but not here: an update is sent over the version that it read last",
        f"    0.000 1 1 safe-update: read {BLOB} op={OP} version=1",
        f"    > 2.000 1 2 safe-update: sending {BLOB} op={OP} over=0",
    ]
