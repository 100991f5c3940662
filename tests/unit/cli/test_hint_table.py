"""Every reason that the core raises has its words, and every row of the table is used."""

import ast
import re
from functools import cache
from string import Formatter

from azguard import errors
from azguard.cli.words import hints
from azguard.cli.words.hints import HINTS, PAGES, WORDS, in_words
from azguard.errors import UsageError
from azguard.requests import service_codes
from tests.support.cases import cases
from tests.support.sources import READS_SOURCES, list_nodes
from tests.unit.test_layers import MODULES, room

pytestmark = READS_SOURCES

ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type)} | {"but", "as_kind"}
# What becomes an error, with its reason, further up.
ERRORS |= {"Cause", "Login", "SmbRefusal", "_refuse"}
ERRORS |= {"build_changed", "build_incomplete", "build_interrupted", "never_read", "replace"}
ERRORS |= {"explain_unwritable", "require_version"}
# What the functions among the words look for.
_OF_FUNCTIONS = {"what", "appended_bytes", "next_position", "path", "option", "code", "action", "why"}
ERRORS |= {"_confirm_around", "_of_job", "_tell_loss_around", "_without_effect", "_wrong_type"}


def constants(value: ast.expr) -> set[str]:
    """Return the texts that an expression can be."""
    if isinstance(value, ast.IfExp):
        return constants(value.body) | constants(value.orelse)
    return {value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else set()


@cache
def reasons() -> frozenset[str]:
    """Return the reasons that the core gives to the errors it builds."""
    found: set[str] = set()
    for path in (path for name, path in MODULES.items() if room(name) not in ("cli", "commands")):
        for call in list_nodes(path):
            name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
            if isinstance(call, ast.Call) and name in ERRORS:
                for each in (each.value for each in call.keywords if each.arg == "reason"):
                    found |= constants(each)
    of_codes = (*service_codes.MEANINGS.values(), *service_codes.TABLES.values(), *service_codes.FAMILIES.values())
    return frozenset(found | {each.reason for each in of_codes if each.reason})


def test_every_reason_has_a_row_and_every_row_a_reason() -> None:
    assert reasons() == set(HINTS) | set(WORDS)


def test_every_reason_is_spelt_alike() -> None:
    assert [reason for reason in reasons() if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", reason)] == []


def test_no_reason_has_rows_on_two_pages() -> None:
    on_pages = [reason for page in PAGES for reason in {*page.HINTS, *page.WORDS}]
    assert [reason for reason in on_pages if on_pages.count(reason) > 1] == []


def test_an_error_without_a_reason_stays_as_it_is() -> None:
    error = UsageError("it is empty", hint="write something")
    assert in_words(error) is error


@cases("reason", "never_read_before_write", "leased_by_another", "copy_ended", "outcome_unknown")
def test_a_name_in_a_command_is_quoted_for_the_shell(reason: str) -> None:
    """A blob may be called as a command is: what is pasted must not run it."""
    told = in_words(errors.Changed("refused", address="blob:site/a; id", reason=reason))
    assert told.hint is not None
    assert any(each in told.hint for each in ("'site/a; id'", "'blob:site/a; id'"))


@cases("kind", "blob", "entity", "file", "queue", "container", "table")
def test_every_name_in_every_hint_is_one_word_of_a_shell(kind: str) -> None:
    templates = [words for words in (*HINTS.values(), *WORDS.values()) if isinstance(words, str)]
    others = {field for words in templates for _, field, _, _ in Formatter().parse(words) if field} | _OF_FUNCTIONS
    values = dict.fromkeys(others, "7") | dict.fromkeys(hints.NAMES, "site/a b;x")
    built = (UsageError("m", f"{kind}:site/a b;x", reason=reason, values=values) for reason in HINTS)
    told = [in_words(each).hint or "" for each in built]
    assert [hint for hint in told if "b;x" in re.sub("'[^']*'", "", hint)] == []


SAS = "sv=2024-11-04&sig=abcdefghijklmnop"


@cases(
    ("typed", "named"),
    ("https://a.blob.core.windows.net/site/a%20b", "https://a.blob.core.windows.net/site/a%20b"),
    (f"https://a.blob.core.windows.net/site/a%20b?{SAS}", "'https://a.blob.core.windows.net/site/a%20b?SAS'"),
    ("https://a.blob.core.windows.net/site/other", "'site/a b'"),
    ("site/a b", "'site/a b'"),
)
def test_a_hint_names_the_account_of_the_url_that_was_typed(typed: str, named: str) -> None:
    told = in_words(errors.NotFound("gone", "blob:site/a b", reason="blob_of_other_type"), ["blob", "append", typed])
    assert told.hint == f"see its type: azguard blob show {named} --query blob_type"


@cases(
    ("command", "argv", "again"),
    ("blob delete", ["blob", "delete", "--", "c/n"], "azguard blob delete --etag @last -- c/n"),
    ("blob put", ["blob", "put", "-f", "x", "--", "c/n"], "azguard blob put -f x --etag @last -- c/n"),
)
def test_what_is_added_to_a_line_stands_before_two_dashes(command: str, argv: list[str], again: str) -> None:
    error = errors.Changed("changed", "blob:c/n", expected_etag='"0x1"', current_etag='"0x2"')
    assert again in (hints.of(error, command, {"blob": "c/n", "file": "x"}, argv) or "")


@cases(
    ("command", "hint"),
    ("blob metadata set", "look, then decide: azguard blob metadata get c/n"),
    ("blob set-properties", "look, then decide: azguard blob show c/n"),
    ("lease acquire", "look, then decide: azguard lease show blob:c/n"),
)
def test_a_change_of_another_is_to_be_looked_at(command: str, hint: str) -> None:
    error = errors.Changed("changed", "blob:c/n", expected_etag='"0x1"', current_etag='"0x2"')
    assert hints.of(error, command, {}, [*command.split(), "c/n"]) == hint
