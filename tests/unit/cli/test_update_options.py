"""Which options of safe-update go together, and the order of its edits; ``test_refusals`` has what is refused."""

import pytest

from azguard.cli import rules
from azguard.cli.parsing.tree import Command, root
from azguard.commands.safe_update.options import UpdateOptions
from azguard.errors import UsageError
from tests.support.cases import cases

EDIT = "ADDRESS --increment"


@cases(
    ("kind", "typed"),
    ("blob", EDIT),
    ("entity", EDIT),
    ("entity", f"{EDIT} --guard --guard=ledger --no-lineage --op-id"),
    ("table", f"{EDIT} --where --jobs --dry-run"),
    ("queue", "ADDRESS --metadata --op-id --status"),
    ("blob", f"{EDIT} --op-id --status"),
    ("blob", "ADDRESS CMD... --allow-empty --any-content"),
    ("blob", f"{EDIT} --guard --guard=lease --fence --create --max-attempts"),
)
def test_what_goes_together_is_not_refused(kind: str, typed: str) -> None:
    rules.check(_find_command().rules, typed.split(), lambda: kind)


@cases(("kind", "typed"), ("entity", f"{EDIT} --no-lineage --op-id"), ("queue", f"{EDIT} --metadata"))
def test_what_needs_another_option_is_refused_without(kind: str, typed: str) -> None:
    with pytest.raises(UsageError):
        rules.check(_find_command().rules, typed.split(), lambda: kind)


def test_edits_are_in_the_order_in_which_they_were_typed() -> None:
    given = UpdateOptions(set_=["a=1", "b=2"], unset=["c"])
    assert given.edits_in(["set_", "op_id", "unset", "set_"]) == (("--set", "a=1"), ("--unset", "c"), ("--set", "b=2"))


def _find_command() -> Command:
    found = root.find(["safe-update"])
    assert isinstance(found, Command)
    return found
