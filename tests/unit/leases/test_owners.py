"""What others wrote on a lock, as it is shown, and whether it is of the lease that is held."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from azguard.leases import owners
from azguard.leases.owners import Owner, PresentLease, TerraformLock
from tests.support.cases import cases

SINCE = datetime(2026, 11, 25, 8, tzinfo=UTC)
RECORD = Owner("alice", "build1", 7, "sh", SINCE.isoformat())
RUN, ENDLESS = RECORD.tie_to_lease("a", 60), RECORD.tie_to_lease("a", None)
ALONE = replace(RECORD, pid=None).tie_to_lease("a", 15)
TERRAFORM = TerraformLock("a", "apply", "ci@runner", "1.9", "", "", "")
FIXED, INFINITE = PresentLease("fixed"), PresentLease("infinite")


@cases(
    ("written", "shown"),
    [
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
    ],
)
def test_the_words_of_others_drive_neither_a_terminal_nor_a_ci_runner(written: str, shown: str) -> None:
    record = Owner(who="root", host="vm", pid=1, command="x", since=None, reason=written).as_metadata()
    found = owners.read_owner({owners.OWNER: record})

    assert found is not None
    assert found.reason == shown


@cases(
    ("record", "held", "doubt"),
    [
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
    ],
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
