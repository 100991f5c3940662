"""The command lines of a hint are about the account, and the scope, that were typed."""

from azguard.cli.words import hints
from tests.support.cases import cases
from tests.support.command_tree import COMMANDS

LINES = [name for name, _ in COMMANDS]


def of(hint: str, *typed: str) -> str:
    told = hints.keep(hint, typed)
    assert told is not None
    return told


def test_each_command_that_takes_an_account_gets_it_before_its_arguments() -> None:
    expected = [
        f"look: azguard {name} --emulator X" if command.spec.is_remote else f"look: azguard {name} X"
        for name, command in COMMANDS
        if name != "profile set"
    ]
    assert [of(f"look: azguard {name} X", "--emulator") for name in LINES if name != "profile set"] == expected


def test_a_line_that_has_it_already_stays_as_it_is() -> None:
    hint = "see: azguard blob list site --profile prod\n      again: azguard blob get site/x"
    assert of(hint, "--profile", "prod") == f"{hint.replace('blob get', 'blob get --profile prod')}"


@cases(
    ("typed", "hint", "told"),
    (["--scope", "a b"], "azguard cache forget blob:c/n", "azguard cache forget --scope 'a b' blob:c/n"),
    (["--emulator"], "azguard cache list", "azguard cache list"),
    (["--emulator"], "azguard lock run sets AZGUARD_FENCE", "azguard lock run sets AZGUARD_FENCE"),
    (["--emulator"], "azguard blob get --help", "azguard blob get --help"),
    (["--emulator"], "azguard blob --help", "azguard blob --help"),
    (["--emulator"], "azguard blob metadata --help", "azguard blob metadata --help"),
    (["--emulator"], "azguard blob metadata get --help", "azguard blob metadata get --help"),
    (["--emulator"], "azguard blob append seal --help", "azguard blob append seal --help"),
    (["--scope", "a", "blob", "get", "--scope=b"], "azguard lock list", "azguard lock list --scope=b"),
    (["--account-key=s"], "azguard table list", "azguard table list --account-key=@FILE"),
    (["--", "--emulator"], "azguard table list", "azguard table list"),
    (["-o", "json"], "azguard table list", "azguard table list"),
)
def test_what_was_typed_counts_where_it_means_something(typed: list[str], hint: str, told: str) -> None:
    assert of(hint, *typed) == told


def test_no_hint_stays_none() -> None:
    assert hints.keep(None, ["--emulator"]) is None
