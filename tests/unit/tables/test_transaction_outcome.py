"""What is known of a transaction from its items: every combination of what they can say."""

from collections.abc import Iterator
from itertools import permutations

from azguard.requests.commits import Verdict
from azguard.tables.writes import ItemVerdict, verdict_from_items
from tests.support.cases import cases

COMMITTED, NEVER, NOT_YET, UNKNOWN = Verdict
# Every verdict on every class of items, by what it says about the transaction.
CLASSES: dict[str, list[ItemVerdict]] = {
    "committed": [ItemVerdict(COMMITTED, *item) for item in ((True, True), (False, True), (False, False))],
    "never": [ItemVerdict(NEVER, inserts=False, excludes_itself=True)],
    "untouched": [ItemVerdict(NOT_YET, inserts=False, excludes_itself=True)],
    "absent": [ItemVerdict(NOT_YET, inserts=True, excludes_itself=True)],
    "replaced": [ItemVerdict(UNKNOWN, *item) for item in ((True, True), (False, True))],
    "no condition": [ItemVerdict(verdict, False, False) for verdict in (NOT_YET, UNKNOWN)],
}
UNCERTAIN: dict[tuple[str, ...], Verdict] = {
    (): UNKNOWN,
    ("untouched",): NOT_YET,
    ("absent",): NOT_YET,
    ("replaced",): UNKNOWN,
    ("no condition",): UNKNOWN,
    ("untouched", "absent"): NOT_YET,
    ("untouched", "replaced"): NOT_YET,
    ("untouched", "no condition"): NOT_YET,
    ("absent", "replaced"): UNKNOWN,
    ("absent", "no condition"): NOT_YET,
    ("replaced", "no condition"): UNKNOWN,
    ("untouched", "absent", "replaced"): NOT_YET,
    ("untouched", "absent", "no condition"): NOT_YET,
    ("untouched", "replaced", "no condition"): NOT_YET,
    ("absent", "replaced", "no condition"): UNKNOWN,
    ("untouched", "absent", "replaced", "no condition"): NOT_YET,
}


def transactions(classes: tuple[str, ...]) -> Iterator[tuple[ItemVerdict, ...]]:
    """Yield the transactions, in every order, whose items say this."""
    yield from permutations([item for name in classes for item in CLASSES[name]])


@cases("classes", *UNCERTAIN, ids="+".join)
def test_uncertain_items_decide_by_their_evidence(classes: tuple[str, ...]) -> None:
    assert {verdict_from_items(items) for items in transactions(classes)} == {UNCERTAIN[classes]}


@cases(("name", "verdict"), ("committed", COMMITTED), ("never", NEVER))
@cases("classes", *UNCERTAIN, ids="+".join)
def test_what_is_certain_of_one_item_is_certain_of_all(classes: tuple[str, ...], name: str, verdict: Verdict) -> None:
    for certain in CLASSES[name]:
        items = [certain, *(item for each in classes for item in CLASSES[each][:1])]
        assert {verdict_from_items(order) for order in permutations(items)} == {verdict}


@cases("name", "committed", "never")
def test_no_item_after_a_certain_one_is_asked_for(name: str) -> None:
    items = iter([*CLASSES[name][:1], *CLASSES["replaced"]])
    verdict_from_items(items)
    assert list(items) == CLASSES["replaced"]
