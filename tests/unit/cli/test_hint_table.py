"""Every reason that the core raises has its words, and every row of the table is used."""

import ast

from azguard.cli.hint_table import HINTS, WORDS
from azguard.cli.hints import in_words
from azguard.errors import UsageError
from tests.unit.test_layers import MODULES, room


def reasons() -> set[str]:
    """Return the reasons that are named in the core: as ``reason="…"``, or as values of a table of them."""
    found = set()
    for name, path in MODULES.items():
        if room(name) in ("cli", "commands"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "reason":
                found |= {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
    return {each for each in found if isinstance(each, str)}


def test_every_reason_has_a_row_and_every_row_a_reason() -> None:
    assert reasons() == set(HINTS) | set(WORDS)


def test_an_error_without_a_reason_stays_as_it_is() -> None:
    error = UsageError("it is empty", hint="write something")
    assert in_words(error) is error
