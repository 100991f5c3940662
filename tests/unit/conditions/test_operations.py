"""The table of operations, held against the evidence in tests/data/semantics.yaml row by row."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from azguard.conditions import operations
from azguard.conditions.operations import ALL, Condition, Guard, Lease, Operation, Write, rejected_together, why_not
from tests.support.places import REPOSITORY

EVIDENCE: dict[str, Any] = yaml.load(
    (REPOSITORY / "tests/data/semantics.yaml").read_text(encoding="utf-8"),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # the same answer, ten times faster where it is built
)
ROWS: dict[str, dict[str, Any]] = {
    name: row for name, row in EVIDENCE["operations"].items() if row.get("supported", True)
}
BY_HEADER = {condition.header: condition for condition in Condition}

# What the evidence lists as a condition and the table leaves out: (operation, as it is spelt there) → why.
NOT_A_FLAG = "no flag of the contract asks for it"
UNPROVEN = "known from the specification only, and the emulator ignores it"
ELSEWHERE = "it is a condition of something else: an argument, or the operations inside"
LEFT_OUT = {
    **{
        (f"blob.{verb}_tags", f"x-ms-blob-{condition}"): UNPROVEN
        for verb in ("get", "set")
        for condition in ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
    },
    ("blob.delete", "x-ms-access-tier-if-modified-since"): NOT_A_FLAG,
    ("blob.delete", "x-ms-access-tier-if-unmodified-since"): NOT_A_FLAG,
    ("file.put_range", "x-ms-source-if-match-crc64 (Put Range From URL only)"): NOT_A_FLAG,
    ("file.put_range", "x-ms-source-if-none-match-crc64 (Put Range From URL only)"): NOT_A_FLAG,
    ("table.batch", "If-Match per inner operation"): ELSEWHERE,
    ("queue.update_message", "popreceipt query parameter (acts as the ETag)"): ELSEWHERE,
    ("queue.delete_message", "popreceipt query parameter (acts as the ETag)"): ELSEWHERE,
}

# Writes that overwrite nothing, or name in their arguments what they may touch.
FREE = {
    *(name for name in ROWS if ".lease_" in name),
    "blob.snapshot",
    "share.snapshot",
    "blob.undelete",
    "blob.put_block",
    "blob.abort_copy",
    "file.abort_copy",
    "file.force_close_handles",
    "queue.put_message",
    "queue.get_messages",
    "queue.update_message",
    "queue.delete_message",
    "table.batch",
}

every_row = pytest.mark.parametrize("operation", ALL.values(), ids=ALL.keys())


def lease_of(use: str) -> Lease:
    """Return what a sentence of the evidence says, by how it begins."""
    for beginning, lease in (
        ("see lease_state_machine", Lease.SUBJECT),
        ("optional", Lease.OPTIONAL),
        ("accepted by swagger/SDK; whether live requires it", Lease.OPTIONAL),  # the tier of a blob
        ("required", Lease.REQUIRED),
        ("each required", Lease.REQUIRED),
        ("needed when the destination", Lease.REQUIRED),
        ("destination: required", Lease.REQUIRED),
        ("no lease header", Lease.NONE),
        ("the Table service has no leases", Lease.NONE),
        ("the Queue service has no leases", Lease.NONE),
    ):
        if use.startswith(beginning):
            return lease
    raise AssertionError(f"the evidence says something new about leases: {use}")


def failures(operation: Operation) -> dict[str, str]:
    """Return what the evidence says a failed condition, or a resource in the way, is answered with."""
    found: dict[str, str] = ROWS[operation.name]["errors_on_failed_condition"]["value"]
    return found


def test_the_table_has_every_operation_of_the_evidence_and_no_other() -> None:
    assert set(ALL) == set(ROWS)


def test_the_evidence_knows_one_operation_that_does_not_exist() -> None:
    assert set(EVIDENCE["operations"]) - set(ROWS) == {"file.lease_renew"}


def test_every_constant_is_named_after_its_operation() -> None:
    constants = {name: row.name for name, row in vars(operations).items() if isinstance(row, Operation)}
    assert constants == {name.upper().replace(".", "_"): name for name in ALL}


@every_row
def test_the_conditions_honoured_are_those_of_the_evidence(operation: Operation) -> None:
    listed = ROWS[operation.name]["service_conditions"]["value"]
    kept = {each for each in listed if (operation.name, each) not in LEFT_OUT}
    assert operation.honours == {BY_HEADER[each] for each in kept}


def test_every_condition_left_out_stands_in_the_evidence() -> None:
    listed = {(name, each) for name, row in ROWS.items() for each in row["service_conditions"]["value"]}
    assert set(LEFT_OUT) <= listed


def test_every_condition_is_honoured_somewhere() -> None:
    assert {each for row in ALL.values() for each in row.honours} == set(Condition)


@every_row
def test_the_lease_means_what_the_evidence_says(operation: Operation) -> None:
    lease = ROWS[operation.name]["lease"]
    assert operation.lease is lease_of(lease["use"])
    assert (operation.lease is Lease.NONE) == (lease["header"] is None)


@every_row
def test_a_write_without_the_lease_id_is_refused_where_the_lease_is_required(operation: Operation) -> None:
    missing = ROWS[operation.name]["lease"].get("missing")
    expected = {
        Lease.REQUIRED: ("412 LeaseIdMissing",),
        Lease.OPTIONAL: ("succeeds", "unverified live; Azurite 412 LeaseIdMissing"),
    }
    assert missing in expected.get(operation.lease, (None,))


@every_row
def test_the_lease_id_goes_into_the_header_of_the_evidence(operation: Operation) -> None:
    header = ROWS[operation.name]["lease"]["header"]
    if operation.lease in (Lease.OPTIONAL, Lease.REQUIRED):
        named = {each.strip() for each in header.partition("(")[0].split(",")}
        source = {"x-ms-source-lease-id"} if operation.source_lease else set()
        assert named == {operation.lease_header} | source


def test_a_lease_id_means_nothing_without_leases_and_to_acquiring_and_breaking() -> None:
    """The evidence: proposed to an acquire in another header, and ignored by a break."""
    subject = {row.name for row in ALL.values() if row.lease is Lease.SUBJECT and not row.names_lease}
    assert subject == {
        f"{kind}.lease_{verb}" for kind in ("blob", "container", "share", "file") for verb in ("acquire", "break")
    }
    assert [row.name for row in ALL.values() if row.lease is Lease.NONE and row.names_lease] == []


@every_row
def test_rest_is_the_page_of_the_evidence(operation: Operation) -> None:
    assert operation.rest == ROWS[operation.name]["rest_doc"]


@every_row
def test_what_writes_is_what_is_not_a_get(operation: Operation) -> None:
    method = ROWS[operation.name]["rest"].split()[0].split("|")[0]
    dequeues = operation.name == "queue.get_messages"  # hides the messages and gives them new receipts
    assert operation.writes == (method not in ("GET", "HEAD") or dequeues)


@every_row
def test_what_changes_an_etag_is_guarded(operation: Operation) -> None:
    if ROWS[operation.name]["changes_etag"]["value"] is True:
        assert operation.guarded or operation is operations.TABLE_BATCH


def test_the_writes_that_need_no_guard_are_these() -> None:
    assert {row.name for row in ALL.values() if row.writes and not row.guarded} == FREE


@every_row
def test_what_puts_can_be_told_to_create_only_by_a_header(operation: Operation) -> None:
    told = any(each.startswith("If-None-Match: *") for each in failures(operation))
    assert (operation.write is Write.PUTS) == told
    assert not told or Condition.IF_NONE_MATCH in operation.honours


@every_row
def test_what_creates_fails_by_itself_if_it_exists(operation: Operation) -> None:
    answers = [
        answer
        for case, answer in failures(operation).items()
        if case in ("exists", "exists, different metadata") or case == "destination exists and replace-if-exists false"
    ]
    assert (operation.write is Write.CREATES) == any(answer.startswith("409") for answer in answers)


@every_row
def test_etag_is_kept_by_if_match_wherever_a_write_honours_it(operation: Operation) -> None:
    honoured = operation.writes and Condition.IF_MATCH in operation.honours
    assert (operation.guard is Guard.IF_MATCH) == honoured


@every_row
def test_reads_have_no_guard_and_what_is_kept_by_a_lease_takes_a_lease_id(operation: Operation) -> None:
    if not operation.writes:
        assert operation.guard is Guard.NONE
    if operation.guard is Guard.LEASE:
        assert operation.lease in (Lease.REQUIRED, Lease.OPTIONAL)


@every_row
def test_a_fence_is_kept_only_where_tags_are_a_condition(operation: Operation) -> None:
    assert not operation.fences or (operation.guarded and Condition.IF_TAGS in operation.honours)


def test_a_fence_is_kept_on_these() -> None:
    assert {name for name, row in ALL.items() if row.fences} == {
        "blob.put_block_blob", "blob.put_block_list", "blob.delete",
    }  # fmt: skip


def test_etag_is_kept_by_comparing_only_where_nothing_holds_the_others_off() -> None:
    assert {row.name for row in ALL.values() if row.guard is Guard.COMPARE} == {
        "container.set_metadata",
        "container.set_acl",
        "table.set_acl",
        "queue.set_metadata",
        "queue.set_acl",
        "directory.delete",
        "directory.set_properties",
        "directory.set_metadata",
        "directory.rename",
    }


def test_last_writer_wins_changes_something_on_every_write_that_can_overwrite_and_on_nothing_else() -> None:
    renames = {"directory.rename", "file.rename"}  # told to replace, they overwrite their destination
    expected = {row.name for row in ALL.values() if row.write in (Write.PUTS, Write.CHANGES)} | renames
    assert {row.name for row in ALL.values() if row.overwrites} == expected


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


@pytest.mark.parametrize(
    "pair", list(combinations(sorted(operations.FULL), 2)), ids=lambda pair: f"{pair[0]}+{pair[1]}"
)
def test_two_standard_conditions_never_stand_together_on_a_write(pair: tuple[Condition, Condition]) -> None:
    found = rejected_together(operations.BLOB_PUT_BLOCK_BLOB, set(pair))
    assert found is not None
    assert set(found) == set(pair)


def test_a_read_that_combines_takes_them_all() -> None:
    assert rejected_together(operations.BLOB_GET, operations.FULL) is None


def test_a_read_that_is_not_documented_to_combine_takes_one() -> None:
    both = {Condition.IF_UNMODIFIED_SINCE, Condition.IF_MATCH}
    expected = (Condition.IF_MATCH, Condition.IF_UNMODIFIED_SINCE)
    assert rejected_together(operations.BLOB_GET_PAGE_RANGES, both) == expected


def test_source_and_destination_each_take_one_condition() -> None:
    one_each = {Condition.IF_NONE_MATCH, Condition.SOURCE_IF_MATCH}
    two = one_each | {Condition.SOURCE_IF_TAGS}
    assert rejected_together(operations.BLOB_COPY, one_each) is None
    assert rejected_together(operations.BLOB_COPY, two) == (
        Condition.SOURCE_IF_MATCH,
        Condition.SOURCE_IF_TAGS,
    )


def test_append_position_and_sequence_number_stand_beside_an_etag() -> None:
    append = {Condition.IF_MATCH, Condition.APPEND_POSITION, Condition.MAX_SIZE}
    page = {Condition.IF_MATCH, Condition.SEQUENCE_NUMBER_LE, Condition.SEQUENCE_NUMBER_EQ}
    assert rejected_together(operations.BLOB_APPEND_BLOCK, append) is None
    assert rejected_together(operations.BLOB_PUT_PAGE, page) is None


@every_row
def test_if_none_match_takes_a_star_only_where_it_means_create_only(operation: Operation) -> None:
    expected = {Condition.IF_MATCH} & operation.honours
    if operation.write is Write.PUTS:
        expected |= {Condition.IF_NONE_MATCH}
    assert operation.wildcards == expected


def test_flags_and_headers_are_those_of_the_contract_and_the_service() -> None:
    assert {condition.flag: condition.header for condition in Condition} == {
        "--if-match": "If-Match",
        "--if-none-match": "If-None-Match",
        "--if-modified-since": "If-Modified-Since",
        "--if-unmodified-since": "If-Unmodified-Since",
        "--if-tags": "x-ms-if-tags",
        "--source-if-match": "x-ms-source-if-match",
        "--source-if-none-match": "x-ms-source-if-none-match",
        "--source-if-modified-since": "x-ms-source-if-modified-since",
        "--source-if-unmodified-since": "x-ms-source-if-unmodified-since",
        "--source-if-tags": "x-ms-source-if-tags",
        "--if-append-position": "x-ms-blob-condition-appendpos",
        "--if-max-size": "x-ms-blob-condition-maxsize",
        "--if-sequence-number-le": "x-ms-if-sequence-number-le",
        "--if-sequence-number-lt": "x-ms-if-sequence-number-lt",
        "--if-sequence-number-eq": "x-ms-if-sequence-number-eq",
    }


@pytest.mark.parametrize(
    ("operation", "condition", "sentence"),
    [
        ("container.set_metadata", "if-match", "Set Container Metadata honours only --if-modified-since"),
        (
            "container.delete",
            "if-match",
            "Delete Container honours only --if-modified-since and --if-unmodified-since",
        ),
        ("blob.undelete", "if-match", "Undelete Blob honours no conditions"),
        ("blob.set_tags", "if-match", "Set Blob Tags honours only --if-tags"),
        ("blob.put_block", "if-match", "Put Block honours no conditions; Put Block List evaluates them"),
        ("blob.put_page", "source-if-tags", "only Copy Blob honours it"),
        ("blob.put_page", "if-max-size", "only Append Block and Append Block From URL honour it"),
        (
            "blob.put_block_blob",
            "source-if-match",
            "only Append Block From URL, Copy Blob and Put Page From URL honour it",
        ),
        (
            "container.create",
            "if-none-match",
            "Create Container never replaces anything, so it needs no create-only condition",
        ),
        (
            "table.entity_insert_or_merge",
            "if-none-match",
            "Insert Or Merge Entity honours no conditions; "
            "Update and Merge Entity keep a version, Insert Entity creates only",
        ),
        ("table.entity_update", "if-none-match", "Update Entity honours only --if-match"),
        ("file.create", "if-match", "Azure Files evaluates no conditions, neither on reads nor on writes"),
        (
            "queue.delete_message",
            "if-match",
            "the Queue service has no ETags and evaluates no conditions; the pop receipt takes their place",
        ),
    ],
)
def test_why_a_condition_is_not_honoured_is_said_in_one_sentence(operation: str, condition: str, sentence: str) -> None:
    assert why_not(ALL[operation], Condition(condition)) == sentence


def test_there_is_a_reason_for_every_condition_that_is_not_honoured() -> None:
    reasons = [why_not(row, each) for row in ALL.values() for each in set(Condition) - row.honours]
    assert all(reason and not reason.endswith(".") and "\n" not in reason for reason in reasons)


def test_the_table_needs_nothing_but_the_smallest_modules(tmp_path: Path) -> None:
    code = (
        "import sys, dataclasses, enum, functools; before = set(sys.modules)\n"
        "import azguard.conditions.operations; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["azguard", "azguard.conditions", "azguard.conditions.operations"]
