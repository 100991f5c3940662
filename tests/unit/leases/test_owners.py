"""What others wrote on a lock, as it is shown."""

import pytest

from azguard.leases import owners
from azguard.leases.owners import Owner


@pytest.mark.parametrize(
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
