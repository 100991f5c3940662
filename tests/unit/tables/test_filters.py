"""Filters: a parameter is bound as a value, whatever is in it, and everything else stays as it was typed."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.cli.words.hints import in_words
from azguard.errors import UsageError
from azguard.tables import edm, entities
from tests.support.cases import cases
from tests.support.entity_strategies import values

_SUFFIXES = {kind: suffix for suffix, kind in edm.SUFFIXES.items()}


@cases(
    ("text", "parameters", "sent"),
    ("PartitionKey eq @p and n gt @n", ["p=eu", "n:int64=5"], "PartitionKey eq 'eu' and n gt 5L"),
    ("(a eq @x)or(b eq @x)", ["x:int32=-5"], "(a eq -5)or(b eq -5)"),
    ("a eq @name", ["name=O'Brien' or '1' eq '1"], "a eq 'O''Brien'' or ''1'' eq ''1'"),
    ("a eq '@p' and b eq 'it''s @p' and c eq @p", ["p=x"], "a eq '@p' and b eq 'it''s @p' and c eq 'x'"),
    ("a eq @p", ["p=@q"], "a eq '@q'"),
    ("@a eq @b", ["a=1", "b=2"], "'1' eq '2'"),
    ("a eq @Timestamp", ["Timestamp=x"], "a eq 'x'"),
    ("a eq @p and b eq @pp", ["p=1", "pp=2"], "a eq '1' and b eq '2'"),
    ("substringof(@p,a)", ["p="], "substringof('',a)"),
    ("a eq @p\nand b eq 1", ["p:boolean=true"], "a eq true\nand b eq 1"),
    ("a gt @x", ["x:double=1e300"], f"a gt 1{'0' * 300}.0"),
    ("a gt @x", ["x:double=-0.5"], "a gt -0.5"),
    ("a gt @x", ["x:double=5e-324"], f"a gt 0.{'0' * 323}5"),
    ("t ge @t", ["t:datetime=2026-01-01T00:00:00.1234567Z"], "t ge datetime'2026-01-01T00:00:00.1234567Z'"),
    ("g eq @g", ["g:guid=C9DA6455-213D-42C9-9A79-3E9149A57833"], "g eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'"),
    ("b eq @b", ["b:binary=AAEC/w=="], "b eq X'000102ff'"),
    ("t ge datetime'2026-01-01T00:00:00Z'", [], "t ge datetime'2026-01-01T00:00:00Z'"),
    (None, [], None),
)  # fmt: skip
def test_a_parameter_takes_the_place_of_its_name(text: str | None, parameters: list[str], sent: str | None) -> None:
    assert entities.bind_parameters(text, parameters) == sent


@cases(
    ("text", "parameters", "words"),
    ("a eq @p", [], "--filter has @p, which has no value"),
    ("a eq 1", ["p=1"], "--param p is not in the filter"),
    (None, ["p=1"], "--param p is not in the filter"),
    ("a eq '@p'", ["p=1"], "--param p is not in the filter"),
    ("a eq @p", ["p=1", "p=2"], "--param p is given twice"),
    ("a eq @p", ["p-q=1"], "--param: 'p-q' is not a name"),
    ("a eq @p", ["p"], "'p' is not a property"),
    ("a eq @p", ["p:int64=x"], "p: 'x' is not an Edm.Int64"),
    ("a eq @p", ["p:double=NaN"], "p: NaN cannot be compared with in a filter"),
    ("a eq x@p", ["p=1"], "--filter: the @ at position 7 does not begin a parameter that stands alone"),
    ("a eq @p.x", ["p=1"], "--filter: the @ at position 6 does not begin a parameter that stands alone"),
    ("a eq '@p'@p", ["p=1"], "--filter: the @ at position 10 does not begin a parameter that stands alone"),
    ("a eq @p'x'", ["p=1"], "--filter: the @ at position 6 does not begin a parameter that stands alone"),
    ("a eq @ p", ["p=1"], "--filter: the @ at position 6 does not begin a parameter that stands alone"),
    ("a eq 'x", [], "a literal in --filter does not end"),
    ("a eq 'it's @p'", ["p=1"], "a literal in --filter does not end"),
)
def test_a_filter_that_would_mean_something_else_is_refused(text: str, parameters: list[str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        entities.bind_parameters(text, parameters)
    told = in_words(refused.value)
    assert (told.message, bool(told.hint)) == (words, True)


@given(values().filter(lambda typed: typed[1] not in ("NaN", "Infinity", "-Infinity") or typed[0] == edm.STRING))
def test_a_bound_value_is_one_literal_and_nothing_more(typed: tuple[str, Any]) -> None:
    kind, value = typed
    text = value if isinstance(value, str) else str(value).lower()
    sent = entities.bind_parameters("(a eq @v) and b eq 'it''s @v'", [f"v:{_SUFFIXES[kind]}={text}"])
    assert sent is not None
    literal = sent.removeprefix("(a eq ").removesuffix(") and b eq 'it''s @v'")
    assert re.fullmatch(r"(datetime|guid|X)?'([^']|'')*'|-?[0-9]+(\.[0-9]+|L)?|true|false", literal, re.DOTALL)
    assert f"(a eq {literal}) and b eq 'it''s @v'" == sent


@given(st.text("a '@p(),", max_size=30), st.text("'@p x", max_size=8))
def test_outside_placeholders_a_filter_stays_as_it_was_typed(text: str, value: str) -> None:
    try:
        sent = entities.bind_parameters(text, [f"p={value}"])
    except UsageError:
        return
    mark = "'" + value.replace("'", "''") + "'"
    assert sent == "".join(
        piece if piece.startswith("'") else piece.replace("@p", mark) for piece in re.split(r"('(?:[^']|'')*')", text)
    )
