"""The record of who holds a lease: written under that lease, and shown as what it is of."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Changed, Locked, OutcomeUnknown, UsageError
from azguard.leases import owner_records, owners
from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner, PresentLease, TerraformLock
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, new_op
from azguard.wire.connections import Reply
from tests.support.answering_client import Asked
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import ETAG, Answer, Scripted, now_is, scripted

SINCE = datetime(2026, 11, 25, 8, tzinfo=UTC)
RECORD = Owner("alice", "build1", 7, "sh", SINCE.isoformat())
RUN, ENDLESS = RECORD.tie_to_lease("a", 60), RECORD.tie_to_lease("a", None)
ALONE = replace(RECORD, pid=None).tie_to_lease("a", 15)
TERRAFORM = TerraformLock("a", "apply", "ci@runner", "1.9", "", "", "")
FIXED, INFINITE = PresentLease("fixed"), PresentLease("infinite")


@cases(
    ("written", "shown"),
    ("release 1.2", "release 1.2"),
    ("\x1b[2J", "\\x1b[2J"),
    # Azure Pipelines takes it for a command of the job, wherever it stands in a line.
    ("see ##vso[task.setvariable variable=PATH]/tmp", "see # #vso[task.setvariable variable=PATH]/tmp"),
    ("##VSO[task.complete]", "# #VSO[task.complete]"),
    ("##[error]", "# #[error]"),
    # GitHub Actions does, at the beginning of a line.
    ("::add-mask::x", ": :add-mask::x"),
    ("  ::stop-commands::x", ": :stop-commands::x"),
    ("C::D", "C::D"),
    ("issue ##12", "issue ##12"),
)
def test_the_words_of_others_drive_neither_a_terminal_nor_a_ci_runner(written: str, shown: str) -> None:
    record = Owner(who="root", host="vm", pid=1, command="x", since=None, reason=written).as_metadata()
    found = owners.read_owner({owners.OWNER: record})

    assert found is not None
    assert found.reason == shown


@cases(
    ("record", "held", "doubt"),
    (RUN, FIXED, None),
    (ENDLESS, INFINITE, None),
    # Of a lease that is free, or being broken, the service does not tell the kind.
    (RUN, PresentLease(None), None),
    (RUN, INFINITE, "that lease had a term of 60 s, and this one has none"),
    (ENDLESS, FIXED, "that lease had no term, and this one has one"),
    (RUN.end(), FIXED, "that lease is over"),
    (RUN.end(), PresentLease(None), "that lease is over"),
    (RECORD, FIXED, "the record of an earlier version of azguard does not say of which lease it is"),
    (RUN, PresentLease("fixed", lease_id="A"), None),
    (RUN, PresentLease("fixed", lease_id="b"), "that was another lease"),
    # A process renews its lease; nothing renews that of a command that has ended.
    (RUN, PresentLease("fixed", SINCE + timedelta(hours=1)), None),
    (ALONE, PresentLease("fixed", SINCE + timedelta(seconds=15)), None),
    (
        ALONE,
        PresentLease("fixed", SINCE + timedelta(seconds=17)),
        "that lease had a term of 15 s, and has ended unless it was renewed since",
    ),
    (TERRAFORM, INFINITE, None),
    (TERRAFORM, FIXED, "that lease had no term, and this one has one"),
    (TERRAFORM, PresentLease("infinite", lease_id="b"), "that was another lease"),
)
def test_a_record_speaks_for_its_own_lease_alone(
    record: Owner | TerraformLock, held: PresentLease, doubt: str | None
) -> None:
    assert record.find_doubt(held) == doubt


def test_a_record_can_be_read_and_does_not_tell_the_id_of_its_lease() -> None:
    for record in (RUN, ENDLESS, ALONE, RUN.end()):
        assert owners.read_owner({owners.OWNER: record.as_metadata()}) == record
    lease_id = "aaaaaaaa-0000-4000-8000-000000000000"
    assert lease_id not in RECORD.tie_to_lease(lease_id, 60).as_metadata()


LEASE = "aaaaaaaa-0000-4000-8000-000000000000"
ALICE = Owner("alice", "build1", 7, "deploy.sh", "2026-11-21T03:00:00Z")
SERVICE_TIME = "Sat, 21 Nov 2026 12:00:00 GMT"
EARLIER = Lineage().after(new_op(bytes(12)), '"0"')
OURS = {"team": "web", "AzguardOwner": "alice", KEY: str(EARLIER)}
DONE: Answer = (200, None, {"etag": '"2"', "last-modified": SERVICE_TIME})
CHANGED: Answer = (412, "ConditionNotMet", {})
LOST: Answer = (412, "LeaseIdMismatchWithBlobOperation", {})
BUSY: Answer = (500, "OperationTimedOut", {})
Act = Callable[[Target, Deadline], object]
ACTS: dict[str, Act] = {
    "leave": lambda target, deadline: owner_records.leave(target, LEASE, ALICE, deadline),
    "remove": lambda target, deadline: owner_records.remove(target, LEASE, deadline),
}


def found(metadata: dict[str, str] | None = None, etag: str = ETAG) -> Answer:
    return now_is("leased", metadata, etag=etag, Date=SERVICE_TIME)


def written(service: Scripted, request: int = -1) -> dict[str, str]:
    prefix = "x-ms-meta-"
    sent = service.headers[request]
    return {name.removeprefix(prefix): value for name, value in sent.items() if name.startswith(prefix)}


def test_a_record_is_written_under_the_lease_and_over_the_version_that_was_read() -> None:
    target, service = scripted(Kind.BLOB, found(OURS), DONE)
    moved = owner_records.leave(target, LEASE, ALICE, Clock().deadline())
    assert (service.headers[0]["x-ms-lease-id"], service.headers[1]["x-ms-lease-id"]) == (LEASE, LEASE)
    assert (service.headers[1]["if-match"], moved.before, moved.after) == (ETAG, ETAG, '"2"')


def test_a_record_replaces_an_earlier_one_and_leaves_other_metadata() -> None:
    target, service = scripted(Kind.BLOB, found(OURS), DONE)
    moved = owner_records.leave(target, LEASE, ALICE, Clock().deadline())
    metadata = written(service)
    assert set(metadata) == {"team", OWNER, KEY}
    assert (metadata["team"], json.loads(metadata[OWNER])["who"]) == ("web", "alice")
    assert Lineage.parse(metadata[KEY]).entries[1:] == EARLIER.entries
    assert (Lineage.parse(metadata[KEY]).entries[0][1], metadata[KEY]) == (ETAG.strip('"'), moved.lineage)


@cases(
    ("answer", "writes"),
    (found(), 1),
    (now_is("leased", Date="Sat, 21 Nov 2026 11:59:01 GMT"), 1),
    # Of a gateway whose clock is wrong, or of one that tells none: when it was written, the service says.
    (now_is("leased", Date="Sat, 21 Nov 2026 10:00:00 GMT"), 2),
    (now_is("leased", Date="Sat, 21 Nov 2026 14:00:00 GMT"), 2),
    (now_is("leased"), 2),
)
def test_the_time_of_a_record_is_about_the_services_when_it_was_written(answer: Answer, writes: int) -> None:
    target, service = scripted(Kind.BLOB, answer, DONE, found(etag='"2"'), (*DONE[:2], {**DONE[2], "etag": '"3"'}))
    moved = owner_records.leave(target, LEASE, ALICE, Clock().deadline())
    record = json.loads(written(service)[OWNER])
    off = datetime.fromisoformat(record["since"]) - datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert (abs(off) < timedelta(minutes=1), record["clock"]) == (True, SERVICE_CLOCK)
    assert (moved.before, moved.after, len(service.asked)) == (ETAG, f'"{writes + 1}"', 2 * writes)


def test_a_write_under_the_same_lease_that_came_between_is_not_overwritten() -> None:
    target, service = scripted(
        Kind.BLOB, found({"team": "web"}), CHANGED, found({"team": "db"}, '"2"'), found({"team": "db"}, '"2"'), DONE
    )
    owner_records.leave(target, LEASE, ALICE, Clock().deadline())
    assert (service.headers[-1]["if-match"], written(service)["team"]) == ('"2"', "db")


@cases("act", *ACTS.values())
def test_writes_that_come_between_to_the_end_of_the_time_leave_no_record(act: Act) -> None:
    target, service = scripted(Kind.BLOB, found(OURS), CHANGED, found(OURS, '"2"'))
    with pytest.raises(Changed):
        act(target, Clock().deadline(0))
    assert [method for method, _ in service.asked].count("PUT") == 1


@cases("act", *ACTS.values())
def test_a_lease_that_is_lost_writes_nothing(act: Act) -> None:
    target, service = scripted(Kind.BLOB, LOST)
    with pytest.raises(Locked):
        act(target, Clock().deadline())
    assert [method for method, _ in service.asked] == ["HEAD"]


def test_a_record_is_removed_whatever_the_case_of_its_key_and_other_metadata_stay() -> None:
    target, service = scripted(Kind.BLOB, found(OURS), DONE)
    moved = owner_records.remove(target, LEASE, Clock().deadline())
    assert moved is not None
    assert (set(written(service)), service.headers[1]["if-match"], moved.after) == ({"team", KEY}, ETAG, '"2"')


def test_without_a_record_there_is_nothing_to_remove() -> None:
    target, service = scripted(Kind.BLOB, found({"team": "web"}))
    assert owner_records.remove(target, LEASE, Clock().deadline()) is None
    assert [method for method, _ in service.asked] == ["HEAD"]


class Echo(Scripted):
    """A service that loses the answer to a write it has committed, and shows the metadata that were written."""

    def __init__(self, *, etag: str, covered: bool = False) -> None:
        super().__init__(found(OURS), BUSY)
        self._etag, self._covered = etag, covered

    def answer(self, asked: Asked) -> Reply:
        if not self._answers:
            metadata = written(self, 1)
            if self._covered:
                later = Lineage.parse(metadata[KEY]).after(new_op(b"later writer"), '"2"')
                metadata[KEY] = str(later)
            self._answers.append(found(metadata, self._etag))
        return super().answer(asked)


@cases(("is_covered", "after"), (False, '"2"'), (True, None))
def test_a_lost_answer_is_settled_by_the_lineage(is_covered: bool, after: str | None) -> None:
    target, _ = scripted(Kind.BLOB)
    service = Echo(etag='"2"' if not is_covered else '"3"', covered=is_covered)
    target.account.shared["client"] = service
    moved = owner_records.leave(target, LEASE, ALICE, Clock().deadline())
    assert (moved.before, moved.after, [method for method, _ in service.asked]) == (
        ETAG,
        after,
        ["HEAD", "PUT", "HEAD"],
    )


def test_a_lost_answer_after_which_the_lease_is_lost_is_unknown() -> None:
    target, _ = scripted(Kind.BLOB, found(OURS), BUSY, *[LOST] * 40)
    with pytest.raises(AzguardError) as caught:
        owner_records.leave(target, LEASE, ALICE, Clock().deadline(5))
    assert type(caught.value) is OutcomeUnknown


def test_only_a_blob_can_carry_the_record() -> None:
    target, _ = scripted(Kind.CONTAINER)
    with pytest.raises(UsageError) as caught:
        owner_records.check_kind(target)
    assert (caught.value.reason, caught.value.values) == ("record_needs_blob", {"kind": "container"})
    owner_records.check_kind(scripted(Kind.BLOB)[0])
