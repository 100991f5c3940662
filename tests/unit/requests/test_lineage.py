"""The lineage: its spelling in the metadata, and what it proves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.requests.lineage import DEPTH, UNSEEN, Lineage, bare, drop_lineage, is_op, new_op, op_of_key

OPS = st.binary(min_size=12, max_size=12).map(new_op)
ETAGS = st.none() | st.text("0123456789ABCDEFabcdefx'W/:%-", min_size=1).map(lambda text: f'"0x{text}"')
A, B = new_op(b"a" * 12), new_op(b"b" * 12)


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


@pytest.mark.parametrize("text", [None, "", "nonsense", f"{A}.E1,nonsense", f"{A}.", f"{A[:15]}.E1", f"{A}.é"])
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


@pytest.mark.parametrize("name", ["azguardlineage", "Azguardlineage", "AZGUARDLINEAGE"])
def test_a_lineage_is_found_in_metadata_and_dropped_in_any_case(name: str) -> None:
    written = Lineage().after(new_op(b"x" * 12), None)
    metadata = {"Own": "1", name: str(written)}
    assert (Lineage.find(metadata), drop_lineage(metadata)) == (written, {"Own": "1"})
    assert (Lineage.find(None), drop_lineage(None)) == (Lineage(), {})
