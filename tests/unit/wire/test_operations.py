"""The table of operations, held against the evidence in tests/data/semantics.yaml row by row."""

from collections.abc import Set as AbstractSet
from itertools import combinations

from azguard.wire.catalogue import ALL, why_not
from azguard.wire.operations import blobs, containers, queues, shares, tables
from azguard.wire.operations.blobs import (
    BLOB_APPEND_BLOCK,
    BLOB_COPY,
    BLOB_GET,
    BLOB_GET_PAGE_RANGES,
    BLOB_PUT_BLOCK_BLOB,
    BLOB_PUT_PAGE,
)
from azguard.wire.rows import FULL, Condition, Guard, Lease, Operation, Settlement, Write, list_contradictions
from tests.support.cases import cases
from tests.support.evidence import EVERY, EVIDENCE, EXPECTED, HEADERS, LEFT_OUT, ROWS, Expected, failures

# The evidence is not about them: they have no conditions.
LISTS = {"container.list", "queue.list", "share.list", "directory.list"}


def find_pair(operation: Operation, given: AbstractSet[Condition]) -> tuple[str, str] | None:
    """Return two conditions that must not stand together on an operation; None if all of them may."""
    names = {condition.argument for condition in given}
    return next(filter(None, (each.find(names) for each in list_contradictions(operation))), None)


def test_the_table_has_every_operation_of_the_evidence_and_no_other() -> None:
    assert set(ALL) - LISTS == set(ROWS)
    assert [name for name, row in ALL.items() if not row.http.method] == []


def test_the_evidence_knows_one_operation_that_does_not_exist() -> None:
    assert set(EVIDENCE["operations"]) - set(EVERY) == {"file.lease_renew"}


def test_every_constant_is_named_after_its_operation() -> None:
    services = (blobs, containers, queues, shares, tables)
    rows = [item for table in services for item in vars(table).items()]
    constants = {name: row.name for name, row in rows if isinstance(row, Operation) and row.noun != "account"}
    of_leases = {row.name for _, found in rows if isinstance(found, list) for row in found}
    assert constants == {name.upper().replace(".", "_"): name for name in ALL if name not in of_leases}


@cases("expected", *EXPECTED.values())
def test_a_row_says_what_the_evidence_says(expected: Expected) -> None:
    row, lease, pairs = ALL[expected.name], ROWS[expected.name]["lease"], list(combinations(Condition, 2))
    said = {
        "honours": {f"--{each}" for each in row.honours},
        "wildcards": {f"--{each}" for each in row.wildcards},
        "lease": row.lease.value,
        "a lease has a header": row.lease is not Lease.NONE,
        "names_lease": row.names_lease,
        "write": row.write.value,
        "writes": row.writes,
        "guarded": row.guarded,
        "overwrites": row.overwrites,
        "guard": row.guard.value,
        "fences": row.fences,
        "rest": row.rest,
        "pairs that do not stand together": {pair: find_pair(row, set(pair)) is not None for pair in pairs},
    }
    assert said == {
        "honours": expected.honours,
        "wildcards": expected.wildcards,
        "lease": expected.lease,
        "a lease has a header": lease["header"] is not None,
        "names_lease": expected.names_lease,
        "write": expected.write,
        "writes": expected.writes,
        "guarded": expected.guarded,
        "overwrites": expected.overwrites,
        "guard": expected.guard,
        "fences": expected.fences,
        "rest": ROWS[expected.name]["rest_doc"],
        "pairs that do not stand together": {
            pair: set(pair) <= row.honours and not expected.together(*(f"--{each}" for each in pair)) for pair in pairs
        },
    }


def test_the_evidence_says_by_itself_what_writes() -> None:
    """A GET that writes is the one that hides messages and gives them new receipts."""
    methods = {name: row["rest"].split()[0].split("|")[0] for name, row in ROWS.items()}
    reads = {name for name, method in methods.items() if method in ("GET", "HEAD")}
    assert {name for name, each in EXPECTED.items() if not each.writes} == reads - {"queue.get_messages"}


def test_each_write_and_no_read_says_what_settles_it() -> None:
    assert [name for name, row in ALL.items() if row.writes is (row.settle is Settlement.NO)] == []


def test_what_changes_an_etag_is_guarded() -> None:
    changing = {name for name, row in ROWS.items() if row["changes_etag"]["value"] is True}
    assert {name for name in changing if not ALL[name].guarded} == {"table.batch"}


def test_what_puts_honours_the_header_that_makes_it_create_only() -> None:
    told = {name for name in ROWS if any(each.startswith("If-None-Match: *") for each in failures(name))}
    honouring = {name for name in told if Condition.IF_NONE_MATCH in ALL[name].honours}
    assert {name for name, row in ALL.items() if row.write is Write.PUTS} == told == honouring


def test_what_a_lease_keeps_takes_a_lease_id() -> None:
    kept = {row.lease for row in ALL.values() if row.guard is Guard.LEASE}
    assert kept == {Lease.REQUIRED, Lease.OPTIONAL}


def test_a_fence_is_kept_only_where_tags_are_a_condition_of_a_guarded_write() -> None:
    fenced = [row for row in ALL.values() if row.fences]
    assert [(row.guarded, Condition.IF_TAGS in row.honours) for row in fenced] == [(True, True)] * 5


def test_every_condition_left_out_stands_in_the_evidence() -> None:
    listed = {(name, each) for name, row in ROWS.items() for each in row["service_conditions"]["value"]}
    assert set(LEFT_OUT) <= listed


def test_every_condition_is_honoured_somewhere() -> None:
    assert {each for row in ALL.values() for each in row.honours} == set(Condition)


def test_a_write_without_the_lease_id_is_refused_where_the_lease_is_required() -> None:
    missing: dict[str, set[str | None]] = {}
    for name in ROWS:
        row = ALL[name]
        missing.setdefault(row.lease.value, set()).add(ROWS[name]["lease"].get("missing"))
    assert missing == {
        "required": {"412 LeaseIdMissing"},
        "optional": {"succeeds", "unverified live; Azurite 412 LeaseIdMissing"},
        "subject": {None},
        "none": {None},
    }


def test_the_lease_id_goes_into_the_header_of_the_evidence() -> None:
    rows = [row for row in ALL.values() if row.lease in (Lease.OPTIONAL, Lease.REQUIRED)]
    named = {
        row.name: {each.strip() for each in ROWS[row.name]["lease"]["header"].partition("(")[0].split(",")}
        for row in rows
    }
    source = {row.name: {"x-ms-source-lease-id"} if row.source_lease else set() for row in rows}
    assert {row.name: {row.lease_header} | source[row.name] for row in rows} == named


def test_a_lease_id_means_nothing_without_leases_and_to_acquiring_and_breaking() -> None:
    """The evidence: proposed to an acquire in another header, and ignored by a break."""
    subject = {row.name for row in ALL.values() if row.lease is Lease.SUBJECT and not row.names_lease}
    assert subject == {
        f"{kind}.lease_{verb}" for kind in ("blob", "container", "share", "file") for verb in ("acquire", "break")
    }
    assert [row.name for row in ALL.values() if row.lease is Lease.NONE and row.names_lease] == []


def test_what_overwrites_and_cannot_be_guarded_at_all_is_these() -> None:
    assert {row.name for row in ALL.values() if row.write is Write.CHANGES and row.guard is Guard.NONE} == {
        "table.delete",
        "table.entity_insert_or_replace",
        "table.entity_insert_or_merge",
        "queue.delete",
        "queue.clear_messages",
    }


def test_only_the_two_reads_that_are_documented_to_combine_do() -> None:
    rule = EVIDENCE["condition_rules"]["reads"]["value"]
    combining = {row.title for row in ALL.values() if row.combines}
    assert rule.startswith("Get Blob and Get Blob Properties (>= 2013-08-15): all may be combined")
    assert combining == {"Get Blob", "Get Blob Properties"}


def test_two_standard_conditions_never_stand_together_on_a_write() -> None:
    pairs = list(combinations([each for each in Condition if each in FULL], 2))
    assert [find_pair(BLOB_PUT_BLOCK_BLOB, set(pair)) for pair in pairs] == [
        tuple(each.argument for each in pair) for pair in pairs
    ]


def test_a_read_that_combines_takes_them_all() -> None:
    assert find_pair(BLOB_GET, FULL) is None


def test_a_read_that_is_not_documented_to_combine_takes_one() -> None:
    both = {Condition.IF_UNMODIFIED_SINCE, Condition.IF_MATCH}
    expected = ("if_match", "if_unmodified_since")
    assert find_pair(BLOB_GET_PAGE_RANGES, both) == expected


def test_source_and_destination_each_take_one_condition() -> None:
    one_each = {Condition.IF_NONE_MATCH, Condition.SOURCE_IF_MATCH}
    two = one_each | {Condition.SOURCE_IF_TAGS}
    assert find_pair(BLOB_COPY, one_each) is None
    assert find_pair(BLOB_COPY, two) == ("source_if_match", "source_if_tags")


def test_append_position_and_sequence_number_stand_beside_an_etag() -> None:
    append = {Condition.IF_MATCH, Condition.APPEND_POSITION, Condition.MAX_SIZE}
    page = {Condition.IF_MATCH, Condition.SEQUENCE_NUMBER_LE, Condition.SEQUENCE_NUMBER_EQ}
    assert find_pair(BLOB_APPEND_BLOCK, append) is None
    assert find_pair(BLOB_PUT_PAGE, page) is None


def test_flags_and_headers_are_those_of_the_contract_and_the_service() -> None:
    assert {f"--{condition}": condition.header for condition in Condition} == HEADERS


@cases(
    ("operation", "condition", "sentence"),
    ("container.set_metadata", "if-match", "Set Container Metadata honours only if-modified-since"),
    ("container.delete", "if-match", "Delete Container honours only if-modified-since and if-unmodified-since"),
    ("blob.undelete", "if-match", "Undelete Blob honours no conditions"),
    ("blob.set_tags", "if-match", "Set Blob Tags honours only if-tags"),
    ("blob.put_block", "if-match", "Put Block honours no conditions; Put Block List evaluates them"),
    ("blob.put_page", "source-if-tags", "only Copy Blob honours it"),
    ("blob.put_page", "max-size", "only Append Block and Append Block From URL honour it"),
    ("blob.put_block_blob", "source-if-match", "only Append Block From URL, Copy Blob and Put Page From URL honour it"),
    ("container.create", "if-none-match",
     "Create Container never replaces anything, so it needs no create-only condition"),
    (
        "table.entity_insert_or_merge",
        "if-none-match",
        "Insert Or Merge Entity honours no conditions; "
        "Update and Merge Entity keep a version, Insert Entity creates only",
    ),
    ("table.entity_update", "if-none-match", "Update Entity honours only if-match"),
    ("file.create", "if-match", "Azure Files evaluates no conditions, neither on reads nor on writes"),
    ("queue.delete_message", "if-match",
     "the Queue service has no ETags and evaluates no conditions; the pop receipt takes their place"),
)  # fmt: skip
def test_why_a_condition_is_not_honoured_is_said_in_one_sentence(operation: str, condition: str, sentence: str) -> None:
    assert why_not(ALL[operation], Condition(condition)) == sentence


def test_there_is_a_reason_for_every_condition_that_is_not_honoured() -> None:
    reasons = [why_not(row, each) for row in ALL.values() for each in set(Condition) - row.honours]
    assert all(reason and not reason.endswith(".") and "\n" not in reason for reason in reasons)
