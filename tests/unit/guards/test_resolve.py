"""What was asked for → what is sent: for every operation and every condition of all four services."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.cli.words.hints import in_words
from azguard.errors import AzguardError, Changed, UsageError
from azguard.guards import requested, resolve
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.wire.catalogue import ALL
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_COPY, BLOB_DELETE, BLOB_GET, BLOB_PUT_BLOCK_BLOB
from azguard.wire.operations.tables import TABLE_ENTITY_UPDATE, TABLE_SET_ACL
from azguard.wire.rows import FULL, Condition, Operation
from tests.support.cases import cases
from tests.support.evidence import EXPECTED, FENCED, HEADERS, Expected

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
BLOB, ENTITY = (Target(emulator(), ADDRESSES[each]) for each in ("blob", "table"))
NOTHING_GUARDS = "nothing in the service can guard"
# What results call the guard of a condition; the others are "conditions".
GUARDS = {"--if-match": "if-match", "--if-none-match": "if-none-match"}

Pair = tuple[Any, Any]


def target(expected: Expected) -> Target:
    return Target(emulator(), ADDRESSES[expected.name.partition(".")[0]])


def value(expected: Expected, condition: Condition) -> tuple[str, str]:
    """Return what is typed for a condition, and what is sent for it."""
    if condition.endswith("-match"):
        etag = ENTITY_ETAG if expected.name.startswith("table.") else ETAG
        return etag, etag
    if condition.endswith("-since"):
        return DATE, HTTP_DATE
    return ("\"env\" = 'dev'",) * 2 if condition.endswith("if-tags") else ("7", "7")


def expected_etag(condition: Condition, sent: str) -> str | None:
    return sent if condition is Condition.IF_MATCH else None


def outcome(
    expected: Expected,
    wanted: RequestedConditions,
    known: Remembered | None = None,
    flags: Sequence[str] = (),
    ways: Sequence[str] = (),
) -> Conditions | tuple[str, int, list[str]]:
    """Return what is sent; or the kind of refusal, its exit status, and what is told: see ``described``."""
    try:
        return resolved(ALL[expected.name], wanted, target(expected), known)
    except AzguardError as refusal:
        return described(refusal, flags, ways)


def described(refusal: AzguardError, flags: Sequence[str], ways: Sequence[str] = ()) -> tuple[str, int, list[str]]:
    """Return the kind of refusal, its exit status, and which flags its message names and which ways out its hint."""
    told = [flag for flag in flags if flag in refusal.message] + [way for way in ways if way in (refusal.hint or "")]
    return type(refusal).__name__, refusal.exit_code, told


def said(expected: Expected, wanted: RequestedConditions, known: Remembered) -> Conditions | tuple[str, str]:
    """Return what is sent; or the kind of refusal and its message."""
    try:
        return resolved(ALL[expected.name], wanted, target(expected), known)
    except AzguardError as refusal:
        return type(refusal).__name__, refusal.message


def unguarded(expected: Expected) -> Conditions | tuple[str, int, list[str]]:
    """Return how an operation with no condition ends where no version guards it."""
    if expected.write == "changes":
        return "UsageError", 2, [NOTHING_GUARDS]
    if expected.write == "puts":
        return Conditions({"If-None-Match": "*"}, "if-none-match", never_read=True)
    return Conditions(guard="if-none-match", never_read=True) if expected.write == "creates" else Conditions()


def resolved(*arguments: Any) -> Conditions:
    """Return what is sent, or raise the refusal in the words of the command line."""
    try:
        return resolve.resolve(*arguments)
    except AzguardError as error:
        raise in_words(error) from error


def checked(*arguments: Any) -> None:
    try:
        requested.check(*arguments)
    except AzguardError as error:
        raise in_words(error) from error


def asked(**given: Any) -> RequestedConditions:
    return RequestedConditions(**{name.replace("-", "_"): each for name, each in given.items()})


# What each kind of condition comes to, as a pair: what azguard says, and what the evidence says. Of a refusal that is
# its kind, its exit status, and which of some words it has.


def a_condition_is_sent_as_its_header_if_honoured_and_refused_by_name_if_not(expected: Expected) -> Pair:
    found, right = {}, {}
    for condition in Condition:
        typed, sent = value(expected, condition)
        found[f"--{condition}"] = outcome(expected, asked(**{condition: typed}), flags=(f"--{condition}",))
        right[f"--{condition}"] = (
            guarded_by(expected, condition, sent)
            if f"--{condition}" in expected.honours
            else ("UsageError", 2, [f"--{condition}"])
        )
    return found, right


def guarded_by(expected: Expected, condition: Condition, sent: str) -> Conditions | tuple[str, int, list[str]]:
    """Return what an operation sends for a condition of its own, or for one on the source of a copy.

    That one guards nothing of what is written, which is guarded as without it.
    """
    header = {HEADERS[f"--{condition}"]: sent}
    if not condition.startswith("source-"):
        return Conditions(header, GUARDS.get(f"--{condition}", "conditions"), expected_etag(condition, sent))
    without = outcome(expected, asked())
    return replace(without, headers={**without.headers, **header}) if isinstance(without, Conditions) else without


def an_empty_value_is_refused(expected: Expected) -> Pair:
    known = Remembered(SeenVersion(ETAG))
    names, empties = [*Condition, "etag", "lease-id", "fence"], ("", " ", "\t")
    found = {
        (name, empty): outcome(expected, asked(**{name: empty}), known, flags=(f"--{name} is empty",))
        for name in names
        for empty in empties
    }
    return found, {(name, empty): ("UsageError", 2, [f"--{name} is empty"]) for name in names for empty in empties}


def a_wildcard_is_taken_where_it_means_something(expected: Expected) -> Pair:
    flags = ("--if-match", "--if-none-match")
    found = {flag: outcome(expected, asked(**{flag.removeprefix("--"): "*"}), flags=(flag,)) for flag in flags}
    return found, {
        flag: Conditions({HEADERS[flag]: "*"}, GUARDS[flag])
        if flag in expected.wildcards
        else ("UsageError", 2, [flag])
        for flag in flags
    }


def a_lease_id_goes_along_with_the_guard_that_the_write_would_have_without(expected: Expected) -> Pair:
    etag, _ = value(expected, Condition.IF_MATCH)
    if not expected.names_lease:
        refused = outcome(expected, asked(lease_id=LEASE), flags=("--lease-id",))
        return refused, ("UsageError", 2, ["--lease-id"])
    race = expected.guard == "compare"
    found, right = [], []
    for known in (Remembered(), Remembered(SeenVersion(etag)), Remembered(SeenVersion(NEWER), SeenVersion(etag))):
        without = said(expected, asked(allow_race=race), known)
        if isinstance(without, Conditions):
            guard = "lease" if without.guard == "none" else without.guard
            without = replace(without, lease_id=LEASE, guard=guard)
        found.append(said(expected, asked(lease_id=LEASE, allow_race=race), known))
        right.append(without)
    return found, right


def last_writer_wins_leaves_the_version_out_and_the_lease_id_in(expected: Expected) -> Pair:
    found = outcome(expected, asked(lease_id=LEASE, last_writer_wins=True), Remembered(SeenVersion(ETAG)))
    right = Conditions(guard="lease", lease_id=LEASE)
    return found, right if expected.overwrites and expected.names_lease else ("UsageError", 2, [])


def the_portable_guard_is_kept_by_what_the_evidence_allows_or_refused(expected: Expected) -> Pair:
    etag, _ = value(expected, Condition.IF_MATCH)
    plain = outcome(expected, asked(etag=etag), flags=("--etag", "only compare"), ways=("--allow-race",))
    if not expected.writes or expected.guard == "none":
        return plain, ("UsageError", 2, ["--etag"])
    headers = {"If-Match": etag} if expected.guard == "if-match" else {}
    kept = Conditions(headers, expected.guard, etag)
    if expected.guard != "compare":
        return plain, kept
    racing = outcome(expected, asked(etag=etag, allow_race=True))
    return (plain, racing), (("UsageError", 2, ["--etag", "only compare", "--allow-race"]), kept)


def without_any_condition_a_write_is_guarded_by_what_was_last_read(expected: Expected) -> Pair:
    etag, _ = value(expected, Condition.IF_MATCH)
    known = Remembered(SeenVersion(etag, lineage="op.parent"))
    found = outcome(expected, asked(allow_race=expected.guard == "compare"), known, flags=(NOTHING_GUARDS,))
    headers = {"If-Match": etag} if expected.guard == "if-match" else {}
    guarded = expected.guarded and expected.guard != "none"
    return found, Conditions(headers, expected.guard, etag, lineage="op.parent") if guarded else unguarded(expected)


def what_was_never_read_is_created_only_or_appended_to_or_not_touched(expected: Expected) -> Pair:
    if expected.write == "changes" and expected.guard != "none":
        ways = ("--etag ETAG", "--last-writer-wins")
        return outcome(expected, asked(), ways=ways), ("Changed", 42, list(ways))
    if expected.write == "appends":
        return outcome(expected, asked()), Conditions({}, "position")
    return outcome(expected, asked(), flags=(NOTHING_GUARDS,)), unguarded(expected)


def last_writer_wins_sends_no_condition(expected: Expected) -> Pair:
    refused = "--last-writer-wins changes nothing here: "
    found = outcome(expected, asked(last_writer_wins=True), Remembered(SeenVersion(ETAG)), flags=(refused,))
    # An entity without If-Match would be inserted where it is missing: that is upsert, another operation.
    headers = {"If-Match": "*"} if expected.name.startswith("table.") and "--if-match" in expected.honours else {}
    return found, Conditions(headers, "none") if expected.overwrites else ("UsageError", 2, [refused])


def a_race_is_allowed_only_where_there_is_one(expected: Expected) -> Pair:
    refused = "--allow-race changes nothing here: "
    found = None
    try:
        checked(ALL[expected.name], asked(allow_race=True))
    except AzguardError as refusal:
        found = described(refusal, (refused,))
    return found, None if expected.guard == "compare" else ("UsageError", 2, [refused])


def two_conditions_go_together_only_where_the_service_evaluates_both(expected: Expected) -> Pair:
    found, right = {}, {}
    honoured = [each for each in Condition if f"--{each}" in expected.honours]
    for first, second in permutations(honoured, 2):
        (typed, sent), (typed_too, sent_too) = value(expected, first), value(expected, second)
        flags = [f"--{first}", f"--{second}"]
        ended = outcome(expected, asked(**{first: typed, second: typed_too}), flags=flags)
        found[first, second] = dict(ended.headers) if isinstance(ended, Conditions) else ended
        right[first, second] = (
            {HEADERS[f"--{first}"]: sent, HEADERS[f"--{second}"]: sent_too}
            if expected.together(f"--{first}", f"--{second}")
            else ("UsageError", 2, flags)
        )
    return found, right


WALKS: tuple[Callable[[Expected], Pair], ...] = (
    a_condition_is_sent_as_its_header_if_honoured_and_refused_by_name_if_not,
    an_empty_value_is_refused,
    a_wildcard_is_taken_where_it_means_something,
    a_lease_id_goes_along_with_the_guard_that_the_write_would_have_without,
    last_writer_wins_leaves_the_version_out_and_the_lease_id_in,
    the_portable_guard_is_kept_by_what_the_evidence_allows_or_refused,
    without_any_condition_a_write_is_guarded_by_what_was_last_read,
    what_was_never_read_is_created_only_or_appended_to_or_not_touched,
    last_writer_wins_sends_no_condition,
    a_race_is_allowed_only_where_there_is_one,
    two_conditions_go_together_only_where_the_service_evaluates_both,
)


@cases("expected", *EXPECTED.values())
def test_an_operation_does_with_every_condition_what_the_evidence_says(expected: Expected) -> None:
    pairs = {walk.__name__: walk(expected) for walk in WALKS}
    assert {name: found for name, (found, _) in pairs.items()} == {name: right for name, (_, right) in pairs.items()}


@cases("held", None, LEASE)
def test_what_was_never_read_is_refused_with_a_lease_id_too_and_the_hint_says_how_to_rely_on_it(
    held: str | None,
) -> None:
    with pytest.raises(Changed) as caught:
        resolved(BLOB_DELETE, asked(lease_id=held), BLOB)
    assert ("--lease-id" in str(caught.value.hint), "only the lease" in str(caught.value.hint)) == (
        False,
        held is not None,
    )


@cases("flag", Condition.IF_MATCH, Condition.IF_NONE_MATCH, Condition.IF_TAGS)
def test_the_portable_guard_and_a_condition_do_not_go_together(flag: Condition) -> None:
    wanted = asked(etag=ETAG, **{flag: ETAG})
    with pytest.raises(UsageError, match=f"--etag and --{flag}"):
        resolved(BLOB_PUT_BLOCK_BLOB, wanted, BLOB)


@cases("given", {"etag": ETAG}, {"if_match": ETAG}, {"if_none_match": "*"}, {"if_tags": "a"})
def test_last_writer_wins_contradicts_every_guard(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--last-writer-wins and --"):
        resolved(BLOB_PUT_BLOCK_BLOB, asked(last_writer_wins=True, **given), BLOB)


def test_the_default_guard_is_the_version_of_the_file_and_last_is_the_last_read() -> None:
    known = Remembered(last=SeenVersion(NEWER, "newer"), copy=SeenVersion(ETAG, "older"))
    put = BLOB_PUT_BLOCK_BLOB
    assert resolved(put, asked(), BLOB, known) == Conditions({"If-Match": ETAG}, "if-match", ETAG, None, "older")
    newer = Conditions({"If-Match": NEWER}, "if-match", NEWER, None, "newer")
    assert resolved(put, asked(etag="@last"), BLOB, known) == newer
    assert resolved(put, asked(if_match="@last"), BLOB, known) == newer


@cases("given", {"etag": "@last"}, {"if_match": "@last"}, {"if_none_match": "@last"})
def test_last_of_something_never_read_is_refused_before_any_request(given: dict[str, str]) -> None:
    with pytest.raises(Changed) as caught:
        resolved(BLOB_PUT_BLOCK_BLOB, asked(**given), BLOB)
    assert (caught.value.exit_code, caught.value.http_status) == (42, None)


def test_a_condition_on_the_source_stands_beside_every_guard_of_the_destination() -> None:
    source, sent = {"source_if_match": NEWER}, {"x-ms-source-if-match": NEWER}
    given: dict[str, dict[str, Any]] = {
        "etag": {"etag": ETAG},
        "last": {"last_writer_wins": True},
        "fence": {"fence": "7"},
    }
    found = {name: resolved(BLOB_COPY, asked(**each, **source), BLOB) for name, each in given.items()}
    without = {name: resolved(BLOB_COPY, asked(**each), BLOB) for name, each in given.items()}
    assert {name: (each.source_headers, each.without_source()) for name, each in found.items()} == {
        name: (sent, each) for name, each in without.items()
    }


def test_last_is_no_version_of_a_source() -> None:
    with pytest.raises(UsageError, match="--source-if-match"):
        resolved(BLOB_COPY, asked(source_if_match="@last"), BLOB, Remembered(SeenVersion(ETAG)))


def test_held_is_the_lease_of_this_scope() -> None:
    known = Remembered(SeenVersion(ETAG), lease=LEASE)
    found = resolved(BLOB_PUT_BLOCK_BLOB, asked(lease_id="@held"), BLOB, known)
    assert found == Conditions({"If-Match": ETAG}, "if-match", ETAG, LEASE)


def test_held_without_a_lease_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="@held"):
        resolved(BLOB_PUT_BLOCK_BLOB, asked(lease_id="@held"), BLOB)


@cases("lease_id", "mine", LEASE[:-1], LEASE + "0", "@last", "{" + LEASE + "}")
def test_a_lease_id_that_is_no_guid_is_a_usage_error(lease_id: str) -> None:
    with pytest.raises(UsageError, match="--lease-id"):
        resolved(BLOB_PUT_BLOCK_BLOB, asked(lease_id=lease_id), BLOB)


def test_a_lease_and_an_etag_are_both_sent() -> None:
    found = resolved(BLOB_PUT_BLOCK_BLOB, asked(lease_id=LEASE, etag=ETAG), BLOB)
    assert found == Conditions({"If-Match": ETAG}, "if-match", ETAG, LEASE)


@cases("typed", ETAG, ETAG.strip('"'), f" {ETAG} ")
def test_a_blob_etag_is_taken_quoted_or_bare_and_sent_quoted(typed: str) -> None:
    found = resolved(BLOB_PUT_BLOCK_BLOB, asked(etag=typed), BLOB)
    assert found.headers == {"If-Match": ETAG}


@cases("typed", '"', '""', '"0x1', '0x1"', "0x1 0x2", '"0x1","0x2"', "W/0x1", 'W/"0x1"', "@lst", "0x1\n", "é", "'0x1'")
@cases("name", "etag", "if_match", "if_none_match")
def test_what_is_no_etag_is_a_usage_error(typed: str, name: str) -> None:
    if typed == "0x1\n":
        typed = "0x1\n2"
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')}"):
        resolved(BLOB_PUT_BLOCK_BLOB, asked(**{name: typed}), BLOB)


def test_a_wildcard_is_no_version_for_the_portable_guard() -> None:
    with pytest.raises(UsageError, match="--etag"):
        resolved(BLOB_PUT_BLOCK_BLOB, asked(etag="*"), BLOB)


def test_an_entity_etag_is_sent_byte_for_byte() -> None:
    operation = TABLE_ENTITY_UPDATE
    found = resolved(operation, asked(etag=ENTITY_ETAG), ENTITY)
    assert found.headers == {"If-Match": ENTITY_ETAG}


@cases("typed", "0x1", ENTITY_ETAG.strip('"'), f" {ENTITY_ETAG}", "W/''", "*", 'W/"*"', '"*"', '"0x1"')
def test_what_is_no_entity_etag_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="entity"):
        resolved(TABLE_ENTITY_UPDATE, asked(etag=typed), ENTITY)


def test_the_version_of_a_tables_policies_is_told_from_that_of_an_entity() -> None:
    table, policies = Target(emulator(), Address(Kind.TABLE, ("Orders",))), '"acl-4f53cda18c2baa0c0354bb5f9a3ecbe5"'
    found = resolved(TABLE_SET_ACL, asked(etag=policies, allow_race=True), table)
    assert found.expected_etag == policies
    with pytest.raises(UsageError, match="policies"):
        resolved(TABLE_SET_ACL, asked(etag=ENTITY_ETAG, allow_race=True), table)


@cases("typed", DATE, "2026-11-21T12:00:00+02:00", "2026-11-21 10:00", HTTP_DATE)
def test_times_are_iso_or_http_dates_and_sent_as_http_dates(typed: str) -> None:
    found = resolved(BLOB_GET, asked(if_modified_since=typed), BLOB)
    assert found.headers == {"If-Modified-Since": HTTP_DATE}


@cases("typed", "yesterday", "2026-13-01", "12:00", "0")
def test_what_is_no_time_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="--if-modified-since"):
        resolved(BLOB_GET, asked(if_modified_since=typed), BLOB)


@cases(("typed", "sent"), ("12", "12"), ("4KiB", "4096"), ("1GB", "1000000000"))
def test_sizes_are_typed_with_units_and_sent_in_bytes(typed: str, sent: str) -> None:
    found = resolved(BLOB_APPEND_BLOCK, asked(append_position=typed, max_size=typed), BLOB)
    assert found.headers == {"x-ms-blob-condition-appendpos": sent, "x-ms-blob-condition-maxsize": sent}


@cases("typed", "-1", "1.5", "many", "1" * 20, "9000000TiB")
def test_what_is_no_position_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="--append-position"):
        resolved(BLOB_APPEND_BLOCK, asked(append_position=typed), BLOB)


def test_the_lineage_goes_with_the_version_it_was_read_with_and_no_other() -> None:
    known = Remembered(SeenVersion(ETAG, "op.parent"))
    put = BLOB_PUT_BLOCK_BLOB
    assert [resolved(put, asked(etag=each), BLOB, known).lineage for each in (ETAG, NEWER)] == ["op.parent", None]


def test_a_file_that_two_versions_go_with_guards_nothing_and_both_are_named() -> None:
    known = Remembered(last=SeenVersion(NEWER), copy=SeenVersion(NEWER), other=SeenVersion(ETAG, "op.parent"))
    put = BLOB_PUT_BLOCK_BLOB
    with pytest.raises(Changed) as caught:
        resolved(put, asked(), BLOB, known)
    said = " ".join(caught.value.detail)
    assert (NEWER in said, ETAG in said, "--etag ETAG" in str(caught.value.hint)) == (True, True, True)
    named = resolved(put, asked(etag=ETAG), BLOB, known)
    assert named == Conditions({"If-Match": ETAG}, "if-match", ETAG, None, "op.parent")


@cases("remembered", "*", '"*"', '"0x1","0x2"', "0x1", 'W/"0x1"', '"@last"', '""', '"0x1"\n', ENTITY_ETAG)
@cases("given", {}, {"lease_id": LEASE}, {"etag": "@last"}, {"if_match": "@last"}, {"if_none_match": "@last"})
def test_what_is_remembered_and_is_no_etag_is_never_sent(remembered: str, given: dict[str, str]) -> None:
    for known in (Remembered(SeenVersion(remembered)), Remembered(SeenVersion(remembered), SeenVersion(remembered))):
        with pytest.raises(Changed, match="is no ETag") as caught:
            resolved(BLOB_PUT_BLOCK_BLOB, asked(**given), BLOB, known)
        assert "azguard cache forget blob:site/a" in str(caught.value.hint)


@cases("remembered", "*", ETAG, 'W/"*"', "W/\"datetime'*'\"", ENTITY_ETAG.strip('"'))
def test_what_is_remembered_and_is_no_etag_of_an_entity_is_never_sent(remembered: str) -> None:
    operation = TABLE_ENTITY_UPDATE
    with pytest.raises(Changed, match="is no ETag"):
        resolved(operation, asked(), ENTITY, Remembered(SeenVersion(remembered)))


# Fences

fenced = pytest.mark.parametrize("operation", [pytest.param(ALL[name], id=name) for name in sorted(FENCED)])
FENCE = {"x-ms-if-tags": "\"fence\" <= '0000000000000000042'"}


@fenced
@cases("lease", None, LEASE)
def test_a_fence_is_the_one_condition_whatever_was_read_here(operation: Operation, lease: str | None) -> None:
    wanted = asked(fence="42", lease_id=lease)
    for known in (Remembered(), Remembered(SeenVersion(ETAG)), Remembered(SeenVersion(ETAG), SeenVersion(NEWER))):
        found = resolved(operation, wanted, BLOB, known)
        assert found == Conditions(FENCE, "fence", lease_id=lease, fence=42)


def test_a_fence_is_refused_where_it_is_not_kept() -> None:
    refused, known = "--fence is not enforced here", Remembered(SeenVersion(ETAG))
    others = {name: each for name, each in EXPECTED.items() if name not in FENCED}
    found = {name: outcome(each, asked(fence="42"), known, flags=(refused,)) for name, each in others.items()}
    assert found == dict.fromkeys(others, ("UsageError", 2, [refused]))


@fenced
@cases("name", *sorted(FULL), "etag", "last-writer-wins")
def test_a_fence_stands_beside_no_other_condition(operation: Operation, name: str) -> None:
    special: dict[str, Any] = {"last-writer-wins": True, "etag": ETAG}
    other = special[name] if name in special else value(EXPECTED[operation.name], Condition(name))[0]
    with pytest.raises(UsageError) as caught:
        resolved(operation, asked(**{"fence": "42", name: other}), BLOB, Remembered(SeenVersion(ETAG)))
    # One that is not honoured at all is refused for that.
    named = (f"--{name}",) if name in FULL - operation.honours else ("--fence", f"--{name}")
    assert [flag for flag in named if flag not in caught.value.message] == []


def test_a_snapshot_has_no_fence_to_compare() -> None:
    snapshot = Target(emulator(), Address(Kind.BLOB, ("site", "a"), snapshot="2026-11-21T10:00:00.0000000Z"))
    with pytest.raises(UsageError, match="--fence"):
        resolved(BLOB_DELETE, asked(fence="42"), snapshot)


@cases("text", "\"städt\" = '1'", "\"a\" =\n'1'", " \"a\" = '1'")
def test_a_tags_condition_that_no_header_can_carry_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolved(BLOB_DELETE, asked(if_tags=text), BLOB)
    assert (caught.value.exit_code, caught.value.message.startswith("--if-tags: ")) == (2, True)
