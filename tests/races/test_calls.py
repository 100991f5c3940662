"""What callers were told of one blob has an order, or it is found that it has none."""

from typing import Any

from azguard.requests.lineage import Lineage
from tests.races import calls
from tests.races.chain import Final, Kind, Write
from tests.races.history import End, Told
from tests.races.job import COUNT, LINES, How
from tests.races.log import FOREIGN
from tests.support.cases import cases


def told(op: str, began: float, value: Any = None, end: End = End.COMMITTED, how: How = How.INCREMENT) -> Told:
    """Return what the caller of an update, or a read, was told, a second after it began."""
    blob = LINES if how is How.APPEND or isinstance(value, list) else COUNT
    return Told(op, blob, "worker1.1", end, how=how, began=began, ended=began + 1, value=value)


def read(began: float, value: Any, how: How = How.READ) -> Told:
    return told("", began, value, how=how)


KILLED, APPLIED = told("a", 0, end=End.KILLED), told("a", 2)
ADDED, AGAIN = told("a", 0, 1), told("b", 2, 2)


@cases(
    ("updates", "reads", "final", "orders"),
    ([ADDED, AGAIN], [read(4, 2)], Final("E", count=2), True),
    ([ADDED, AGAIN], [read(4, 1)], Final("E", count=2), False),
    ([ADDED, AGAIN], [], Final("E", count=1), False),
    ([ADDED, told("b", 2, 1)], [], Final("E", count=2), False),
    ([KILLED, APPLIED], [read(1, 1)], Final("E", count=1), True),
    ([KILLED, APPLIED], [read(4, 0)], Final("E", count=1), False),
    ([ADDED, told("b", 2, end=End.UNKNOWN)], [read(4, 1), read(6, 2)], Final("E", count=2), True),
    ([ADDED, told("b", 2, end=End.REFUSED)], [], Final("E", count=2), False),
    ([told("a", 0, ["a"], how=How.APPEND)], [read(2, ["a"])], Final("E", lines=("a",)), True),
    ([told("a", 0, ["a"], how=How.APPEND)], [read(2, [])], Final("E", lines=("a",)), False),
    ([told("a", 0, 1, how=How.METADATA)], [read(2, 0, How.READ_METADATA)], Final("E", hits=1), False),
)
def test_a_history_has_an_order_or_is_found(updates: list[Told], reads: list[Told], final: Final, orders: bool) -> None:
    blob = updates[0].blob
    found = calls.check(updates, reads, {blob: final})
    assert [each.rule for each in found] == ([] if orders else ["no order"])


@cases(
    ("sent", "kind", "lineage", "orders"),
    (1.5, Kind.METADATA, "", True),
    (1.5, Kind.CONTENT, "", True),
    (4.0, Kind.METADATA, "", False),
    (1.5, Kind.PROPERTIES, "", False),
    (1.5, Kind.CONTENT, "aaaaaaaaaaaaaaaa.E0", False),
)
def test_a_wipe_of_the_metadata_begins_them_anew(sent: float, kind: Kind, lineage: str, orders: bool) -> None:
    stamped = Lineage.parse(lineage)
    wipe = Write(COUNT, "E2", "E1", None, f"{FOREIGN}.1", kind, stamped=stamped, sent=sent, answered=sent + 0.4)
    updates = [told("a", 0, 1, how=How.METADATA), told("b", 3, 1, how=How.METADATA)]
    found = calls.check(updates, [read(2, 0, How.READ_METADATA)], {}, calls.list_wipes([wipe]))
    assert [each.rule for each in found] == ([] if orders else ["no order"])
