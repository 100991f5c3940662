"""The number of a fence: how it is typed, how it is written, and what is refused because of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.blobs.refusals import explain_fence
from azguard.cli.words import hints
from azguard.cli.words.hints import in_words
from azguard.errors import BadRequest, Forbidden, LockLost, UsageError
from azguard.guards import fences
from tests.support.cases import cases

TARGET = Target(emulator(), Address(Kind.BLOB, ("site", "a")))
FENCES = st.integers(0, fences.MOST)


@given(FENCES, FENCES)
def test_tags_compare_as_the_numbers_do(one: int, other: int) -> None:
    first, second = (fences.with_fence_tag({}, each)[fences.TAG] for each in (one, other))
    assert (first <= second) == (one <= other)


@given(FENCES)
def test_what_is_written_is_found(fence: int) -> None:
    assert fences.read_fence(fences.with_fence_tag({"env": "dev"}, fence), TARGET) == fence


@given(FENCES)
def test_the_condition_compares_with_what_is_written(fence: int) -> None:
    written = fences.with_fence_tag({}, fence)[fences.TAG]
    assert fences.condition(fence) == {"x-ms-if-tags": f"\"fence\" <= '{written}'"}


@cases(("text", "fence"), ("0", 0), ("42", 42), ("9223372036854775807", 2**63 - 1), ("0000000000000000042", 42))
def test_a_whole_number_is_taken(text: str, fence: int) -> None:
    assert fences.parse(text) == fence


@cases(
    "text",
    "-1", "+1", "1.0", "1e3", "0x2a", "1_000", " 42", "42 ", "4 2", "42\n", "3\n5", "²", "٤٢", "forty-two",
     "9223372036854775808", "00000000000000000042",
)  # fmt: skip
def test_anything_else_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        fences.parse(text)
    assert in_words(caught.value).message == f"--fence: {text!r} is not a whole number from 0 to 9223372036854775807"


@cases("text", "", " ", "\n")
def test_an_empty_text_is_refused_as_such(text: str) -> None:
    with pytest.raises(UsageError, match="fence is empty"):
        fences.parse(text)


@cases("text", "43", "abc", "", "-000000000000000042", "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢")
def test_a_tag_that_azguard_did_not_write_is_no_fence(text: str) -> None:
    with pytest.raises(BadRequest, match=r"is no fence that azguard wrote"):
        fences.read_fence({"fence": text}, TARGET)


@cases("theirs", None, 0, 41, 42)
def test_no_fence_a_lower_one_and_ones_own_are_in_nobodys_way(theirs: int | None) -> None:
    fences.refuse_higher(TARGET, 42, theirs)


def test_a_higher_fence_is_told_with_both_numbers() -> None:
    with pytest.raises(LockLost) as caught:
        fences.refuse_higher(TARGET, 42, 43)
    assert (caught.value.message, caught.value.facts) == (
        "site/a was written under fence 43, so that yours, 42, is overtaken; nothing was changed",
        {"fence": 42, "current_fence": 43},
    )


@cases(
    ("tags", "message"),
    ({"fence": "1"}, "--fence and --tags fence=… do not go together"),
    ({f"k{number}": "v" for number in range(10)}, "--fence and 10 --tags do not go together"),
)
def test_tags_that_leave_no_place_for_the_fence_are_refused(tags: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        fences.check_tags(tags)
    assert in_words(caught.value).message.startswith(message)


def test_nine_tags_of_ones_own_leave_a_place() -> None:
    fences.check_tags({f"k{number}": "v" for number in range(9)})


@cases(
    ("error", "hint"),
    (Forbidden("no", service_code="AuthorizationPermissionMismatch"), "t in a SAS, or the role Storage Blob Data"),
    (BadRequest("no", service_code="FeatureNotYetSupportedForHierarchicalNamespaceAccounts"), "hierarchical name"),
    (BadRequest("no", service_code="InvalidQueryParameterValue"), "hierarchical namespace"),
    (BadRequest("no", service_code="BlobTagsNotSupportedForAccountType"), "hierarchical namespace"),
)  # fmt: skip
def test_a_refusal_that_may_be_for_want_of_tags_says_what_they_need(error: Forbidden | BadRequest, hint: str) -> None:
    assert hint in (hints.in_words(explain_fence(error)).hint or "")


def test_another_refusal_keeps_its_own_hint() -> None:
    assert explain_fence(Forbidden("no", hint="the key", service_code="AuthorizationFailure")).hint == "the key"
