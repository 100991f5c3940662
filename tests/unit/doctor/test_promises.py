"""What the doctor tries is what the rows of the operations say, and what it expects is what the evidence says."""

from azguard.doctor import promises
from azguard.doctor.plays import NOT_TRIED, PLAYS
from azguard.doctor.promises import LEASE_ID, NEW_ONLY, find_refusal
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Condition, Lease, Operation, Write
from tests.support.evidence import ROWS, answer_to

TRIALS = list(promises.list_trials())
# A malformed version is 400; a wrong one is that of its siblings.
_SAME = {"table.entity_delete": "table.entity_merge"}
# Its code is not recorded; that of the other conditions on the destination is.
_UNVERIFIED = {("blob.copy", Condition.IF_TAGS)}


def test_each_operation_is_tried_under_each_condition_that_it_honours() -> None:
    honoured = {(name, each) for name, row in ALL.items() for each in row.honours}
    leased = {(name, LEASE_ID) for name, row in ALL.items() if row.names_lease and row.noun != "directory"}
    creating = {(name, promises.CREATE_ONLY) for name, row in ALL.items() if row.write is Write.CREATES}
    new = {(name, NEW_ONLY) for name, row in ALL.items() if Condition.IF_NONE_MATCH in row.wildcards}
    wanted = {pair for pair in honoured | leased | creating | new if pair[0] not in NOT_TRIED}
    tried = {(each.operation.name, each.aspect) for each in TRIALS}
    # What is acquired has no id yet: another holder is refused. A receipt is no condition of the rows.
    others = {(name, LEASE_ID) for name in ALL if name.endswith("lease_acquire")}
    others |= {(f"queue.{verb}_message", promises.POP_RECEIPT) for verb in ("update", "delete")}
    assert (wanted - tried, tried - wanted) == (set(), others)


def test_what_is_not_tried_has_nothing_to_try_and_a_reason() -> None:
    assert ([name for name in NOT_TRIED if name in PLAYS], all(NOT_TRIED.values())) == ([], True)


def test_a_failed_condition_is_refused_as_the_evidence_says() -> None:
    expected = {}
    found = {}
    for trial in TRIALS:
        if trial.aspect not in list(Condition):
            continue
        key = trial.operation.name, Condition(trial.aspect)
        name = _SAME.get(trial.operation.name, trial.operation.name)
        told = answer_to(name, f"--{trial.aspect}", "").replace(
            "(code CannotVerifyCopySource)", "CannotVerifyCopySource"
        )
        expected[key] = find_refusal(*_row(key)) if key in _UNVERIFIED else " ".join(told.split()[:2])
        found[key] = find_refusal(*_row(key))
    assert found == expected


def _row(key: tuple[str, Condition]) -> tuple[Operation, Condition]:
    return ALL[key[0]], key[1]


def test_a_lease_that_is_not_named_is_refused_as_the_evidence_says() -> None:
    of_lease = [
        each.operation for each in TRIALS if each.aspect == LEASE_ID and each.operation.lease is not Lease.SUBJECT
    ]
    expected = {
        row.name: (
            "412 LeaseIdMissing" if row.lease is Lease.REQUIRED else None,
            str(ROWS[row.name]["lease"]["mismatch"]).removesuffix(" (inferred)"),
        )
        for row in of_lease
    }
    found = {
        row.name: (promises.LEASE_MISSING if row.lease is Lease.REQUIRED else None, promises.find_mismatch(row.noun))
        for row in of_lease
    }
    assert found == expected


def test_by_default_those_are_tried_that_most_commands_rest_on() -> None:
    basic = [str(each) for each in TRIALS if each.is_basic]
    assert (len(basic), "blob put block blob: if-match" in basic, "blob get: if-match" in basic) == (35, True, False)
