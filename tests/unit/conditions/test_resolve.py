"""What was asked for → what is sent: for every operation and every condition of all four services."""

import re
from dataclasses import replace
from typing import Any

import pytest

from azguard.accounts.account import emulator
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions import operations, resolve
from azguard.conditions.operations import ALL, Condition, Guard, Operation, Write
from azguard.conditions.resolve import Conditions, RequestedConditions
from azguard.conditions.seen import Remembered, SeenVersion
from azguard.errors import AzguardError, Changed, UsageError

ETAG, NEWER = '"0x8DC1234567890AB"', '"0x8DDFFFFFFFFFFFF"'
ENTITY_ETAG = "W/\"datetime'2026-11-21T10%3A00%3A00.0000000Z'\""
LEASE = "0f3c1111-2222-3333-4444-555566667777"
DATE, HTTP_DATE = "2026-11-21T10:00:00Z", "Sat, 21 Nov 2026 10:00:00 GMT"
ADDRESSES = {
    "blob": Address(Kind.BLOB, ("site", "a")),
    "container": Address(Kind.CONTAINER, ("site",)),
    "table": Address(Kind.ENTITY, ("jobs", "p", "r")),
    "queue": Address(Kind.QUEUE, ("work",)),
    "share": Address(Kind.SHARE, ("docs",)),
    "directory": Address(Kind.DIR, ("docs", "may")),
    "file": Address(Kind.FILE, ("docs", "a.txt")),
}
BLOB = Target(emulator(), ADDRESSES["blob"])
EVERY = [pytest.param(operation, id=name) for name, operation in ALL.items()]


def target(operation: Operation) -> Target:
    return Target(emulator(), ADDRESSES[operation.name.partition(".")[0]])


def value(operation: Operation, condition: Condition) -> tuple[str, str]:
    """Return what is typed for a condition, and what is sent for it."""
    if condition.endswith("-match"):
        etag = ENTITY_ETAG if operation.name.startswith("table.") else ETAG
        return etag, etag
    if condition.endswith("-since"):
        return DATE, HTTP_DATE
    return ("\"env\" = 'dev'",) * 2 if condition.endswith("if-tags") else ("7", "7")


def asked(**given: Any) -> RequestedConditions:
    return RequestedConditions(**{name.replace("-", "_"): each for name, each in given.items()})


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize("condition", list(Condition))
def test_a_condition_is_sent_as_its_header_if_the_service_honours_it_and_refused_by_name_if_not(
    operation: Operation, condition: Condition
) -> None:
    typed, sent = value(operation, condition)
    wanted = asked(**{condition: typed})
    if condition in operation.honours:
        assert resolve.resolve(operation, wanted, target(operation)).headers == {condition.header: sent}
        return
    with pytest.raises(UsageError) as caught:
        resolve.resolve(operation, wanted, target(operation))
    assert (caught.value.exit_code, condition.flag in caught.value.message) == (2, True)


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize("name", [*Condition, "etag", "lease-id", "fence"])
@pytest.mark.parametrize("empty", ["", " ", "\t"])
def test_an_empty_value_is_refused_on_every_operation(operation: Operation, name: str, empty: str) -> None:
    with pytest.raises(UsageError, match=f"--{name} is empty"):
        resolve.resolve(operation, asked(**{name: empty}), target(operation), Remembered(SeenVersion(ETAG)))


@pytest.mark.parametrize("operation", EVERY)
def test_a_wildcard_is_taken_where_it_means_something(operation: Operation) -> None:
    for condition in (Condition.IF_MATCH, Condition.IF_NONE_MATCH):
        wanted = asked(**{condition: "*"})
        if condition in operation.wildcards:
            found = resolve.resolve(operation, wanted, target(operation))
            assert (found.headers, found.expected_etag) == ({condition.header: "*"}, None)
        else:
            with pytest.raises(UsageError, match=condition.flag):
                resolve.resolve(operation, wanted, target(operation))


@pytest.mark.parametrize("operation", EVERY)
def test_a_lease_id_goes_along_with_the_guard_that_the_write_would_have_without(operation: Operation) -> None:
    where, (etag, _) = target(operation), value(operation, Condition.IF_MATCH)
    if not operation.names_lease:
        with pytest.raises(UsageError, match="--lease-id"):
            resolve.resolve(operation, asked(lease_id=LEASE), where)
        return
    for known in (Remembered(), Remembered(SeenVersion(etag)), Remembered(SeenVersion(NEWER), SeenVersion(etag))):
        try:
            without = resolve.resolve(operation, asked(allow_race=True), where, known)
        except AzguardError as refusal:
            with pytest.raises(type(refusal), match=re.escape(refusal.message)):
                resolve.resolve(operation, asked(lease_id=LEASE, allow_race=True), where, known)
            continue
        found = resolve.resolve(operation, asked(lease_id=LEASE, allow_race=True), where, known)
        guard = "lease" if without.guard == "none" else without.guard
        assert found == replace(without, lease_id=LEASE, guard=guard)


@pytest.mark.parametrize("operation", [each for each in ALL.values() if each.guarded and each.names_lease])
def test_last_writer_wins_leaves_the_version_out_and_the_lease_id_in(operation: Operation) -> None:
    wanted = asked(lease_id=LEASE, last_writer_wins=True)
    found = resolve.resolve(operation, wanted, target(operation), Remembered(SeenVersion(ETAG)))
    assert found == Conditions(guard="lease", lease_id=LEASE)


@pytest.mark.parametrize("held", [None, LEASE])
def test_what_was_never_read_is_refused_with_a_lease_id_too_and_the_hint_says_how_to_rely_on_it(
    held: str | None,
) -> None:
    with pytest.raises(Changed) as caught:
        resolve.resolve(operations.BLOB_DELETE, asked(lease_id=held), BLOB)
    assert ("--lease-id" in str(caught.value.hint), "the lease alone" in str(caught.value.hint)) == (
        False,
        held is not None,
    )


@pytest.mark.parametrize("operation", EVERY)
def test_the_portable_guard_is_kept_by_what_the_table_says_or_refused(operation: Operation) -> None:
    etag, _ = value(operation, Condition.IF_MATCH)
    where = target(operation)
    if not operation.writes or operation.guard is Guard.NONE:
        with pytest.raises(UsageError, match="--etag"):
            resolve.resolve(operation, asked(etag=etag), where)
        return
    if operation.guard is Guard.COMPARE:
        with pytest.raises(UsageError, match="atomically") as caught:
            resolve.resolve(operation, asked(etag=etag), where)
        assert "--allow-race" in (caught.value.hint or "")
    found = resolve.resolve(operation, asked(etag=etag, allow_race=operation.guard is Guard.COMPARE), where)
    headers = {"If-Match": etag} if operation.guard is Guard.IF_MATCH else {}
    assert found == Conditions(headers, operation.guard.value, etag)


@pytest.mark.parametrize("operation", EVERY)
def test_without_any_condition_a_write_is_guarded_by_what_was_last_read(operation: Operation) -> None:
    etag, _ = value(operation, Condition.IF_MATCH)
    known = Remembered(SeenVersion(etag, lineage="op.parent"))
    if operation.write is Write.CHANGES and operation.guard is Guard.NONE:
        with pytest.raises(UsageError, match="nothing in the service can guard"):
            resolve.resolve(operation, asked(), target(operation), known)
        return
    race = operation.guard is Guard.COMPARE
    found = resolve.resolve(operation, asked(allow_race=race), target(operation), known)
    if operation.guarded and operation.guard is not Guard.NONE:
        headers = {"If-Match": etag} if operation.guard is Guard.IF_MATCH else {}
        assert found == Conditions(headers, operation.guard.value, etag, lineage="op.parent")
    else:
        assert found.expected_etag is None


@pytest.mark.parametrize("operation", EVERY)
def test_what_was_never_read_is_created_only_or_not_touched(operation: Operation) -> None:
    where = target(operation)
    if operation.write is Write.CHANGES and operation.guard is not Guard.NONE:
        with pytest.raises(Changed) as caught:
            resolve.resolve(operation, asked(), where)
        ways = ("--etag ETAG", "--last-writer-wins")
        assert (caught.value.exit_code, [way in (caught.value.hint or "") for way in ways]) == (42, [True] * len(ways))
        return
    if operation.write is Write.CHANGES:
        with pytest.raises(UsageError, match="nothing in the service can guard"):
            resolve.resolve(operation, asked(), where)
        return
    headers = {"If-None-Match": "*"} if operation.write is Write.PUTS else {}
    assert resolve.resolve(operation, asked(), where).headers == headers


@pytest.mark.parametrize("operation", EVERY)
def test_last_writer_wins_sends_no_condition(operation: Operation) -> None:
    wanted = asked(last_writer_wins=True)
    if not operation.overwrites:
        with pytest.raises(UsageError, match="--last-writer-wins changes nothing here: "):
            resolve.resolve(operation, wanted, target(operation), Remembered(SeenVersion(ETAG)))
        return
    # An entity without If-Match would be inserted where it is missing: that is upsert, another operation.
    headers = {"If-Match": "*"} if operation.honours == operations.ETAG else {}
    found = resolve.resolve(operation, wanted, target(operation), Remembered(SeenVersion(ETAG)))
    assert found == Conditions(headers, "none")


@pytest.mark.parametrize("operation", EVERY)
def test_a_race_is_allowed_only_where_there_is_one(operation: Operation) -> None:
    wanted = asked(allow_race=True)
    if operation.guard is Guard.COMPARE:
        resolve.check(operation, wanted)
    else:
        with pytest.raises(UsageError, match="--allow-race changes nothing here: "):
            resolve.check(operation, wanted)


@pytest.mark.parametrize("operation", EVERY)
def test_two_conditions_go_together_only_where_the_service_evaluates_both(operation: Operation) -> None:
    for first in operation.honours:
        for second in operation.honours - {first}:
            wanted = asked(**{first: value(operation, first)[0], second: value(operation, second)[0]})
            pair = operations.rejected_together(operation, {first, second})
            if pair is None:
                found = resolve.resolve(operation, wanted, target(operation))
                assert set(found.headers) == {first.header, second.header}
            else:
                with pytest.raises(UsageError) as caught:
                    resolve.resolve(operation, wanted, target(operation))
                assert all(each.flag in caught.value.message for each in pair)


@pytest.mark.parametrize("flag", [Condition.IF_MATCH, Condition.IF_NONE_MATCH, Condition.IF_TAGS])
def test_the_portable_guard_and_a_condition_do_not_go_together(flag: Condition) -> None:
    wanted = asked(etag=ETAG, **{flag: ETAG})
    with pytest.raises(UsageError, match=f"--etag and {flag.flag}"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, wanted, BLOB)


@pytest.mark.parametrize("given", [{"etag": ETAG}, {"if_match": ETAG}, {"if_none_match": "*"}, {"if_tags": "a"}])
def test_last_writer_wins_contradicts_every_guard(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--last-writer-wins and --"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(last_writer_wins=True, **given), BLOB)


def test_the_default_guard_is_the_version_of_the_file_and_last_is_the_last_read() -> None:
    known = Remembered(last=SeenVersion(NEWER, "newer"), copy=SeenVersion(ETAG, "older"))
    put = operations.BLOB_PUT_BLOCK_BLOB
    assert resolve.resolve(put, asked(), BLOB, known) == Conditions({"If-Match": ETAG}, "if-match", ETAG, None, "older")
    newer = Conditions({"If-Match": NEWER}, "if-match", NEWER, None, "newer")
    assert resolve.resolve(put, asked(etag="@last"), BLOB, known) == newer
    assert resolve.resolve(put, asked(if_match="@last"), BLOB, known) == newer


@pytest.mark.parametrize("given", [{"etag": "@last"}, {"if_match": "@last"}, {"if_none_match": "@last"}])
def test_last_of_something_never_read_is_refused_before_any_request(given: dict[str, str]) -> None:
    with pytest.raises(Changed) as caught:
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(**given), BLOB)
    assert (caught.value.exit_code, caught.value.http_status) == (42, None)


def test_last_is_no_version_of_a_source() -> None:
    with pytest.raises(UsageError, match="--source-if-match"):
        resolve.resolve(operations.BLOB_COPY, asked(source_if_match="@last"), BLOB, Remembered(SeenVersion(ETAG)))


def test_held_is_the_lease_of_this_scope() -> None:
    known = Remembered(SeenVersion(ETAG), lease=LEASE)
    found = resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(lease_id="@held"), BLOB, known)
    assert found == Conditions({"If-Match": ETAG}, "if-match", ETAG, LEASE)


def test_held_without_a_lease_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="@held"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(lease_id="@held"), BLOB)


@pytest.mark.parametrize("lease_id", ["mine", LEASE[:-1], LEASE + "0", "@last", "{" + LEASE + "}"])
def test_a_lease_id_that_is_no_guid_is_a_usage_error(lease_id: str) -> None:
    with pytest.raises(UsageError, match="--lease-id"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(lease_id=lease_id), BLOB)


def test_a_lease_and_an_etag_are_both_sent() -> None:
    found = resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(lease_id=LEASE, etag=ETAG), BLOB)
    assert found == Conditions({"If-Match": ETAG}, "if-match", ETAG, LEASE)


@pytest.mark.parametrize("typed", [ETAG, ETAG.strip('"'), f" {ETAG} "])
def test_a_blob_etag_is_taken_quoted_or_bare_and_sent_quoted(typed: str) -> None:
    found = resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(etag=typed), BLOB)
    assert found.headers == {"If-Match": ETAG}


@pytest.mark.parametrize(
    "typed", ['"', '""', '"0x1', '0x1"', "0x1 0x2", '"0x1","0x2"', "W/0x1", 'W/"0x1"', "@lst", "0x1\n", "é", "'0x1'"]
)
@pytest.mark.parametrize("name", ["etag", "if_match", "if_none_match"])
def test_what_is_no_etag_is_a_usage_error(typed: str, name: str) -> None:
    if typed == "0x1\n":
        typed = "0x1\n2"
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')}"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(**{name: typed}), BLOB)


def test_a_wildcard_is_no_version_for_the_portable_guard() -> None:
    with pytest.raises(UsageError, match="--etag"):
        resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(etag="*"), BLOB)


def test_an_entity_etag_is_sent_byte_for_byte() -> None:
    operation = operations.TABLE_ENTITY_UPDATE
    found = resolve.resolve(operation, asked(etag=ENTITY_ETAG), target(operation))
    assert found.headers == {"If-Match": ENTITY_ETAG}


@pytest.mark.parametrize("typed", ["0x1", ENTITY_ETAG.strip('"'), f" {ENTITY_ETAG}", "W/''", "*", 'W/"*"', '"*"'])
def test_what_is_no_entity_etag_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="entity"):
        resolve.resolve(operations.TABLE_ENTITY_UPDATE, asked(etag=typed), target(operations.TABLE_ENTITY_UPDATE))


@pytest.mark.parametrize("typed", [DATE, "2026-11-21T12:00:00+02:00", "2026-11-21 10:00", HTTP_DATE])
def test_times_are_iso_or_http_dates_and_sent_as_http_dates(typed: str) -> None:
    found = resolve.resolve(operations.BLOB_GET, asked(if_modified_since=typed), BLOB)
    assert found.headers == {"If-Modified-Since": HTTP_DATE}


@pytest.mark.parametrize("typed", ["yesterday", "2026-13-01", "12:00", "0"])
def test_what_is_no_time_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="--if-modified-since"):
        resolve.resolve(operations.BLOB_GET, asked(if_modified_since=typed), BLOB)


@pytest.mark.parametrize("typed", ["-1", "1.5", "many", "1" * 20])
def test_what_is_no_position_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="--if-append-position"):
        resolve.resolve(operations.BLOB_APPEND_BLOCK, asked(if_append_position=typed), BLOB)


def test_the_lineage_goes_with_the_version_it_was_read_with_and_no_other() -> None:
    known = Remembered(SeenVersion(ETAG, "op.parent"))
    put = operations.BLOB_PUT_BLOCK_BLOB
    assert [resolve.resolve(put, asked(etag=each), BLOB, known).lineage for each in (ETAG, NEWER)] == [
        "op.parent",
        None,
    ]


def test_a_file_that_two_versions_go_with_guards_nothing_and_both_are_named() -> None:
    known = Remembered(last=SeenVersion(NEWER), copy=SeenVersion(NEWER), other=SeenVersion(ETAG, "op.parent"))
    put = operations.BLOB_PUT_BLOCK_BLOB
    with pytest.raises(Changed) as caught:
        resolve.resolve(put, asked(), BLOB, known)
    said = " ".join(caught.value.detail)
    assert (NEWER in said, ETAG in said, "--etag ETAG" in str(caught.value.hint)) == (True, True, True)
    named = resolve.resolve(put, asked(etag=ETAG), BLOB, known)
    assert named == Conditions({"If-Match": ETAG}, "if-match", ETAG, None, "op.parent")


@pytest.mark.parametrize(
    "remembered", ["*", '"*"', '"0x1","0x2"', "0x1", 'W/"0x1"', '"@last"', '""', '"0x1"\n', ENTITY_ETAG]
)
@pytest.mark.parametrize(
    "given", [{}, {"lease_id": LEASE}, {"etag": "@last"}, {"if_match": "@last"}, {"if_none_match": "@last"}]
)
def test_what_is_remembered_and_is_no_etag_is_never_sent(remembered: str, given: dict[str, str]) -> None:
    for known in (Remembered(SeenVersion(remembered)), Remembered(SeenVersion(remembered), SeenVersion(remembered))):
        with pytest.raises(Changed, match="is no ETag") as caught:
            resolve.resolve(operations.BLOB_PUT_BLOCK_BLOB, asked(**given), BLOB, known)
        assert "azguard cache forget blob:site/a" in str(caught.value.hint)


@pytest.mark.parametrize("remembered", ["*", ETAG, 'W/"*"', "W/\"datetime'*'\"", ENTITY_ETAG.strip('"')])
def test_what_is_remembered_and_is_no_etag_of_an_entity_is_never_sent(remembered: str) -> None:
    operation = operations.TABLE_ENTITY_UPDATE
    with pytest.raises(Changed, match="is no ETag"):
        resolve.resolve(operation, asked(), target(operation), Remembered(SeenVersion(remembered)))


# Fences

FENCED = [pytest.param(operation, id=name) for name, operation in ALL.items() if operation.fences]
FENCE = {"x-ms-if-tags": "\"fence\" <= '0000000000000000042'"}


@pytest.mark.parametrize("operation", FENCED)
@pytest.mark.parametrize("lease", [None, LEASE])
def test_a_fence_is_the_one_condition_whatever_was_read_here(operation: Operation, lease: str | None) -> None:
    wanted = asked(fence="42", lease_id=lease)
    for known in (Remembered(), Remembered(SeenVersion(ETAG)), Remembered(SeenVersion(ETAG), SeenVersion(NEWER))):
        found = resolve.resolve(operation, wanted, BLOB, known)
        assert found == Conditions(FENCE, "fence", lease_id=lease, fence=42)


@pytest.mark.parametrize("operation", [pytest.param(each, id=name) for name, each in ALL.items() if not each.fences])
def test_a_fence_is_refused_where_it_is_not_kept(operation: Operation) -> None:
    with pytest.raises(UsageError, match="--fence is not enforced here"):
        resolve.resolve(operation, asked(fence="42"), target(operation), Remembered(SeenVersion(ETAG)))


@pytest.mark.parametrize("operation", FENCED)
@pytest.mark.parametrize("name", [*sorted(operations.FULL), "etag", "last-writer-wins"])
def test_a_fence_stands_beside_no_other_condition(operation: Operation, name: str) -> None:
    other = True if name == "last-writer-wins" else ETAG if name == "etag" else value(operation, Condition(name))[0]
    with pytest.raises(UsageError) as caught:
        resolve.resolve(operation, asked(**{"fence": "42", name: other}), BLOB, Remembered(SeenVersion(ETAG)))
    assert [flag for flag in ("--fence", f"--{name}") if flag not in caught.value.message] == []


def test_a_snapshot_has_no_fence_to_compare() -> None:
    snapshot = Target(emulator(), Address(Kind.BLOB, ("site", "a"), snapshot="2026-11-21T10:00:00.0000000Z"))
    with pytest.raises(UsageError, match="--fence"):
        resolve.resolve(operations.BLOB_DELETE, asked(fence="42"), snapshot)
