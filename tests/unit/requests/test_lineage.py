"""The lineage: its spelling in the metadata, and what it proves."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from azguard.requests.lineage import (
    DEPTH,
    KEY,
    MOST_IN_ENTITY,
    MOST_IN_METADATA,
    UNSEEN,
    AppliedKey,
    AppliedKeys,
    Lineage,
    bare,
    drop_lineage,
    is_op,
    new_op,
    op_of_key,
    with_lineage,
)
from tests.support.cases import cases

OPS = st.binary(min_size=12, max_size=12).map(new_op)
ETAGS = st.none() | st.text("0123456789ABCDEFabcdefx'W/:%-", min_size=1).map(lambda text: f'"0x{text}"')
A, B = new_op(b"a" * 12), new_op(b"b" * 12)
NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def with_keys(count: int, most: int = MOST_IN_METADATA, lineage: Lineage | None = None) -> Lineage:
    """Return a lineage with so many keys, of which each was applied in a write of its own."""
    lineage = lineage or Lineage()
    for number in range(count):
        op = new_op(b"%06d" % number * 2)
        lineage = lineage.after(op, '"0x8DE2C3F4A5B6C7D"').with_key(op, b"abc", NOON, most)
    return lineage


@given(st.lists(st.tuples(OPS, ETAGS), max_size=40))
def test_a_lineage_is_read_back_as_it_was_written(writes: list[tuple[str, str | None]]) -> None:
    lineage = Lineage()
    for op, parent in writes:
        lineage = lineage.after(op, parent)
    assert Lineage.parse(str(lineage)) == lineage
    assert len(lineage.entries) == min(len(writes), DEPTH)


@given(
    st.lists(st.tuples(OPS, ETAGS), min_size=1, max_size=DEPTH, unique_by=(lambda pair: pair[0], lambda pair: pair[1]))
)
def test_every_successor_is_found_and_no_other(writes: list[tuple[str, str | None]]) -> None:
    lineage = Lineage()
    for op, parent in writes:
        lineage = lineage.after(op, parent)
    assert [lineage.successor(parent) for _, parent in writes] == [op for op, _ in writes]
    assert lineage.successor('"never seen"') is None


def test_the_longest_lineage_leaves_room_in_the_metadata() -> None:
    lineage = Lineage()
    for number in range(100):
        lineage = lineage.after(new_op(bytes([number]) * 12), '"0x8DE2C3F4A5B6C7D"')
    assert len(str(lineage)) < 8 * 1024 / 10


@cases("text", None, "", "nonsense", f"{A}.E1,nonsense", f"{A}.", f"{A[:15]}.E1", f"{A}.é")
def test_what_is_missing_or_damaged_counts_as_no_history(text: str | None) -> None:
    assert Lineage.parse(text) == Lineage()


def test_a_history_reaches_the_creation_only_if_it_begins_there() -> None:
    created = Lineage().after(A, None)
    begun_later = [Lineage().after(A, parent) for parent in (UNSEEN, '"0x1"', '"+"', '"--"')]
    assert [each.reaches_creation for each in (created, created.after(B, '"1"'))] == [True, True]
    assert [each.reaches_creation for each in (Lineage(), *begun_later)] == [False] * 5


def test_a_history_that_was_cut_does_not_reach_the_creation() -> None:
    lineage = Lineage().after(A, None)
    for number in range(DEPTH):
        lineage = lineage.after(B, f'"{number}"')
    assert (lineage.reaches_creation, A in lineage) == (False, False)


def test_an_op_id_is_sixteen_characters_of_which_none_separates_entries() -> None:
    assert [is_op(text) for text in (A, A[:15], f"{A}A", f"{A[:15]}.", f"{A[:15]},", "")] == [True] + [False] * 5


@given(st.text(), st.text())
def test_a_key_of_the_users_own_gives_the_same_op_id_each_time(key: str, address: str) -> None:
    key, address = (text.encode("utf-8", "replace").decode() for text in (key, address))
    ops = [op_of_key(key, *where) for where in (("e", address), ("e", address), ("e", address + "x"), ("f", address))]
    assert (is_op(ops[0]), ops[0] == ops[1], len(set(ops))) == (True, True, 3)


def test_that_the_tier_was_chosen_is_carried_on_and_no_part_of_the_history() -> None:
    tiered = Lineage.parse(f"{A}.0x1,tier")
    assert (tiered.tiered, str(tiered.after(B, '"0x2"')), tiered == Lineage.parse(f"{A}.0x1")) == (
        True,
        f"{B}.0x2,{A}.0x1,tier",
        True,
    )


def test_a_lineage_has_the_ops_that_wrote_and_none_that_sorts_beside_them() -> None:
    before, written, after = sorted(new_op(bytes([number]) * 12) for number in (40, 80, 120))
    lineage = Lineage().after(written, '"0x5"')
    assert [op in lineage for op in (before, written, after)] == [False, True, False]
    assert [lineage.successor(f'"0x{number}"') for number in (4, 5, 6)] == [None, written, None]


def test_an_etag_is_kept_bare_and_that_of_an_entity_as_its_time() -> None:
    entity = "W/\"datetime'2026-11-21T10%3A00%3A00.0000000Z'\""
    assert [bare(each) for each in (None, '"0x5"', entity)] == ["-", "0x5", "2026-11-21T10:00:00.0000000Z"]


@given(st.lists(st.tuples(OPS, st.binary(min_size=3, max_size=3), st.integers(0, 10**7)), max_size=20))
def test_keys_are_read_back_as_they_were_written_to_the_minute(keys: list[tuple[str, bytes, int]]) -> None:
    lineage = Lineage(tiered=True, has_all_keys=True)
    for op, change, minutes in keys:
        lineage = lineage.with_key(op, change, NOON + timedelta(minutes=minutes), MOST_IN_METADATA)
    read = Lineage.parse(str(lineage))
    assert (read.keys, read.tiered, read.has_all_keys, str(read)) == (lineage.keys, True, True, str(lineage))
    assert all(op in read for op, *_ in keys)


@cases(
    ("at", "read"),
    (NOON + timedelta(seconds=59), NOON),
    (datetime(1999, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)),
    (datetime(2100, 1, 1, tzinfo=UTC), datetime(2051, 11, 24, 20, 15, tzinfo=UTC)),
)
def test_the_time_of_a_key_is_kept_as_far_as_it_can_be(at: datetime, read: datetime) -> None:
    found = Lineage.parse(str(Lineage().with_key(A, b"abc", at, 1))).find_key(A)
    assert found is not None
    assert found.at == read


def test_of_more_keys_than_are_remembered_the_oldest_are_forgotten_and_that_shows() -> None:
    ops = [new_op(b"%06d" % number * 2) for number in range(130)]
    full, over = (with_keys(count, lineage=Lineage().after(A, None)) for count in (128, 130))
    assert ([op in full for op in (ops[0], ops[127])], full.has_all_keys) == ([True, True], True)
    assert ([op in over for op in (ops[1], ops[2], ops[129])], over.has_all_keys) == ([False, True, True], False)


def test_a_key_that_is_used_again_takes_no_second_place() -> None:
    lineage = with_keys(3).with_key(new_op(b"000000" * 2), b"new", NOON, 4)
    found = lineage.find_key(new_op(b"000000" * 2))
    assert (len(lineage.keys), found, lineage.find_key(B)) == (3, AppliedKey(b"new", NOON), None)


@cases(
    ("lineage", "knows"),
    (Lineage().after(A, None), True),
    (Lineage().after(A, None).after(B, '"1"'), True),
    (Lineage().after(A, None).after(B, UNSEEN), False),
    (Lineage().after(A, '"1"'), False),
    (Lineage().after(A, UNSEEN), False),
)
def test_all_keys_are_known_only_while_each_write_knew_the_one_before(lineage: Lineage, knows: bool) -> None:
    assert (lineage.has_all_keys, Lineage.parse(str(lineage)).has_all_keys) == (knows, knows)


@cases(("most", "longest"), (MOST_IN_METADATA, 3 * 1024), (MOST_IN_ENTITY, 32 * 1024))
def test_the_longest_keys_have_room(most: int, longest: int) -> None:
    lineage = with_keys(most + 1, most)
    assert (len(lineage.keys), len(str(lineage)) < longest) == (most, True)


def test_the_oldest_keys_leave_room_for_the_metadata_of_the_user() -> None:
    lineage = with_keys(128, lineage=Lineage().after(A, None))
    few = with_lineage({"own": "x" * 7_000, "AzguardLineage": "old"}, lineage)
    none = with_lineage({"own": "x" * 8_180}, lineage)
    kept = Lineage.find(few)
    assert (sum(map(len, [*few, *few.values()])) <= 8192, list(few), len(kept.keys)) == (True, ["own", KEY], 32)
    assert (kept.keys, kept == lineage, lineage.has_all_keys, kept.has_all_keys) == (
        lineage.keys.keep(32), True, True, False,
    )  # fmt: skip
    assert (Lineage.find(none).keys, Lineage.find(none) == lineage) == (AppliedKeys(), True)
    assert with_lineage({"own": "1"}, Lineage()) == {"own": "1"}


def test_a_lineage_that_just_fits_stays_whole() -> None:
    whole = with_keys(3, lineage=Lineage().after(A, None))
    assert [str(whole.fit(len(str(whole)) + more)) for more in (0, 1)] == [str(whole)] * 2


@cases("keys", "keys:é", "keys:A", "keys:AAAA", "keys:AAAA=", "keys:AAAAAAAAAAAAAAAAAAA*")
def test_damaged_keys_are_no_history_at_all(keys: str) -> None:
    assert Lineage.parse(f"{A}.0x1,{keys}") == Lineage()


@cases("name", "azguardlineage", "Azguardlineage", "AZGUARDLINEAGE")
def test_a_lineage_is_found_in_metadata_and_dropped_in_any_case(name: str) -> None:
    written = Lineage().after(new_op(b"x" * 12), None)
    others = {"Aaa": "1", "Own": "1"}
    metadata = {"Aaa": "1", name: str(written), "Own": "1"}
    assert (Lineage.find(metadata), drop_lineage(metadata)) == (written, others)
    assert (Lineage.find(None), drop_lineage(None)) == (Lineage(), {})
