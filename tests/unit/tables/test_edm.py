"""Entities as JSON and as ``name:type=value``: each type is read and written back, and limits are told."""

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.cli.words.hints import in_words
from azguard.errors import UsageError
from azguard.tables import edm
from tests.support.cases import cases
from tests.support.entity_strategies import entities, values


def sent(entity: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that is sent of an entity."""
    made: dict[str, Any] = json.loads(edm.to_body(entity))
    return made


@given(entities())
def test_an_entity_comes_back_as_it_was_sent(entity: dict[str, Any]) -> None:
    answer = {**sent(entity), "odata.etag": "W/\"datetime'2026'\"", "Timestamp": "2026-11-21T10:00:00.1234567Z"}
    shown = edm.from_service(answer)
    assert shown.pop("Timestamp") == answer["Timestamp"]
    assert json.dumps(shown, sort_keys=True) == json.dumps(entity, sort_keys=True)


@given(entities())
def test_what_is_shown_can_be_sent_as_it_is(entity: dict[str, Any]) -> None:
    once = sent(entity)
    shown = edm.from_service({**once, "odata.etag": 'W/"x"', "Timestamp": "2026-11-21T10:00:00Z"})
    assert sent(json.loads(json.dumps(shown))) == once


@given(values())
def test_a_value_has_the_type_it_is_sent_as(typed: tuple[str, Any]) -> None:
    kind, value = typed
    entity = {"n": value} if kind in (edm.STRING, edm.BOOLEAN, edm.INT32) else {"n": value, "n@odata.type": kind}
    assert edm.kind_of(entity, "n") == kind
    assert [(name, found) for name, found, _ in edm.iterate_properties(entity)] == [("n", kind)]


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists),
    st.sampled_from([*edm.TYPES, None, "Edm.X", ""]),
)
def test_any_json_is_taken_or_refused_by_name(value: Any, kind: str | None) -> None:
    assert taken_or_refused({"n": value, "n@odata.type": kind}) == ([] if value is None else ["n"])


def taken_or_refused(entity: dict[str, Any]) -> list[str]:
    """Return the names of the properties that are taken, or the one that a refusal begins with."""
    try:
        return [name for name, _, _ in edm.iterate_properties(entity)]
    except UsageError as error:
        return [error.message[0]]


@cases(
    ("value", "kind", "words"),
    (2**31, None, "n is beyond what Edm.Int32 takes"),
    (-(2**31) - 1, "Edm.Int32", "n is beyond what Edm.Int32 takes"),
    (str(2**63), "Edm.Int64", "n is beyond what Edm.Int64 takes"),
    ("9" * 5000, "Edm.Int64", "n is beyond what Edm.Int64 takes"),
    ("5٣", "Edm.Int64", "n: '5٣' is not an Edm.Int64"),
    ("1_000", "Edm.Int64", "n: '1_000' is not an Edm.Int64"),
    (5.0, "Edm.Int64", "n: 5.0 is not an Edm.Int64"),
    (True, "Edm.Int32", "n: True is not an Edm.Int32"),
    ("1_000.5", "Edm.Double", "n: '1_000.5' is not an Edm.Double"),
    ("nan", "Edm.Double", "n: 'nan' is not an Edm.Double"),
    ("1e999", "Edm.Double", "n is beyond what Edm.Double takes"),
    (math.inf, None, "n is beyond what Edm.Double takes"),
    (10**400, "Edm.Double", "n is beyond what Edm.Double takes"),
    (False, "Edm.Double", "n: False is not an Edm.Double"),
    ("1600-12-31T23:59:59Z", "Edm.DateTime", "n: '1600-12-31T23:59:59Z' is not an Edm.DateTime"),
    ("2026-02-30T00:00:00Z", "Edm.DateTime", "n: '2026-02-30T00:00:00Z' is not an Edm.DateTime"),
    ("2026-01-01T10:00:00+01:00", "Edm.DateTime", "n: '2026-01-01T10:00:00+01:00' is not an Edm.DateTime"),
    ("2026-01-01T10:00.5Z", "Edm.DateTime", "n: '2026-01-01T10:00.5Z' is not an Edm.DateTime"),
    ("2026-01-01T10:00:00.12345678Z", "Edm.DateTime", "n: '2026-01-01T10:00:00.12345678Z' is not an Edm.DateTime"),
    ("2026-01-01", "Edm.DateTime", "n: '2026-01-01' is not an Edm.DateTime"),
    ("c9da6455", "Edm.Guid", "n: 'c9da6455' is not an Edm.Guid"),
    (5, "Edm.Guid", "n: 5 is not an Edm.Guid"),
    ("AAE", "Edm.Binary", "n: 'AAE' is not an Edm.Binary"),
    ("AA E=", "Edm.Binary", "n: 'AA E=' is not an Edm.Binary"),
    ("ü", "Edm.Binary", "n: 'ü' is not an Edm.Binary"),
    (1, "Edm.Binary", "n: 1 is not an Edm.Binary"),
    (152, "Edm.String", "n: 152 is not an Edm.String"),
    ("\ud800", None, "n: '\\ud800' is not an Edm.String"),
    ("x" * 100, "Edm.Int32", f"n: 'x{'x' * 58}… is not an Edm.Int32"),
    ([], None, "n: a property is a string, a number or a boolean, not a JSON array"),
    ({}, None, "n: a property is a string, a number or a boolean, not a JSON object"),
    ("x", "Edm.Time", "n: 'Edm.Time' is not a type of the Table service"),
    ("x", ["Edm.Int64"], "n: ['Edm.Int64'] is not a type of the Table service"),
)  # fmt: skip
def test_a_value_without_its_type_is_refused_by_name(value: Any, kind: Any, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        list(edm.iterate_properties({"n": value, "n@odata.type": kind}))
    told = in_words(refused.value)
    assert (told.message, bool(told.hint)) == (words, True)


@cases(
    ("value", "kind", "taken"),
    (5, "Edm.Double", 5.0), ("5", "Edm.Double", 5.0), ("-1.5e3", "Edm.Double", -1500.0), (7, "Edm.Int64", 7),
    ("0152", None, "0152"), ("0152", "Edm.Int32", 152), ("", None, ""), ("", "Edm.Binary", b""),
    ("2026-01-01T10:00Z", "Edm.DateTime", "2026-01-01T10:00:00Z"),
    ("2008-07-10T00:00:00", "Edm.DateTime", "2008-07-10T00:00:00Z"),
    ("C9DA6455-213D-42C9-9A79-3E9149A57833", "Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"),
)  # fmt: skip
def test_a_value_is_taken_as_its_type(value: Any, kind: str | None, taken: Any) -> None:
    (found,) = edm.iterate_properties({"n": value, "n@odata.type": kind})
    assert (found[2], type(found[2])) == (taken, type(taken))


def test_an_annotation_without_its_property_is_refused() -> None:
    with pytest.raises(UsageError, match=r"n@odata\.type annotates a property that is not there"):
        list(edm.iterate_properties({"n@odata.type": "Edm.Int64"}))


def test_what_the_service_sets_itself_and_nulls_are_not_sent() -> None:
    entity = {"odata.etag": 'W/"x"', "Timestamp": "2026", "a": None, "a@odata.type": "Edm.Int64", "b": 1}
    assert list(edm.iterate_properties(entity)) == [("b", "Edm.Int32", 1)]


def test_a_double_that_the_emulator_writes_as_a_whole_number_is_shown_as_a_double() -> None:
    shown = edm.from_service({"d": 1, "d@odata.type": "Edm.Double"})
    assert json.dumps(shown) == '{"d": 1.0, "d@odata.type": "Edm.Double"}'


KEYS = {"PartitionKey": "p", "RowKey": "r"}
# Counted by the formula of the data model: 4, twice the keys' characters, and 8, name and value for each property.
_BYTES = base64.b64encode(bytes(65_536)).decode()


@given(entities())
def test_what_the_service_takes_is_let_through(entity: dict[str, Any]) -> None:
    edm.check_limits(entity)


def largest() -> dict[str, Any]:
    """Return an entity of exactly 1 MiB: 15 properties of 64 KiB, and a last one that fills it."""
    entity: dict[str, Any] = dict(KEYS)
    for number in range(15):
        entity[f"b{number:02}"], entity[f"b{number:02}@odata.type"] = _BYTES, "Edm.Binary"
    used = 4 + 2 * 2 + 15 * (8 + 2 * 3 + 4 + 65_536)
    room = 1024 * 1024 - used - (8 + 2 * 1 + 4)
    return {**entity, "z": base64.b64encode(bytes(room)).decode(), "z@odata.type": "Edm.Binary"}


@cases(
    "properties",
    {f"p{number}": "" for number in range(252)},
    {"s": "x" * 32_768},
    {"s": "😀" * 16_384},
    {"b": _BYTES, "b@odata.type": "Edm.Binary"},
    {"n" * 255: 1},
    {"_x1": 1, "Ünï": 1, "名前": 1},
    {"azguardlineage": "x"},
    {"PartitionKey": "", "RowKey": "ü 'x' %2F \u00a0" + "k" * 1000},
    largest(),
)
def test_an_entity_at_a_limit_is_let_through(properties: dict[str, Any]) -> None:
    edm.check_limits({**KEYS, **properties})


@cases(
    ("properties", "words"),
    ({f"p{number:03}": "" for number in range(253)},
     "p252 is one property too many: there are 253, and an entity has at most 252 besides its keys"),
    ({"s": "x" * 32_769}, "s has 65,538 bytes in UTF-16, and the service takes 65,536 (64 KiB)"),
    ({"s": "😀" * 16_385}, "s has 65,540 bytes in UTF-16, and the service takes 65,536 (64 KiB)"),
    ({"b": base64.b64encode(bytes(65_537)).decode(), "b@odata.type": "Edm.Binary"},
     "b has 65,537 bytes, and the service takes 65,536 (64 KiB)"),
    ({**largest(), "x": True},
     "the entity has 1,048,587 bytes, and the service takes 1,048,576 (1 MiB); the largest property is b00, "
     "with 65,554"),
    ({"n" * 256: 1}, f"the name of property {'n' * 40}… has 256 characters; the service takes 255"),
    ({"a-b": 1}, "'a-b' is not a property name the service takes"),
    ({"1a": 1}, "'1a' is not a property name the service takes"),
    ({"a b": 1}, "'a b' is not a property name the service takes"),
    ({"": 1}, "'' is not a property name the service takes"),
    ({"a\u0000": 1}, "'a\\x00' is not a property name the service takes"),
    ({"n": 2**31}, "n is beyond what Edm.Int32 takes"),
    ({"PartitionKey": 5}, "PartitionKey: 5 is not a string"),
    ({"RowKey": None}, "RowKey is missing"),
    ({"RowKey": "a/b"}, "the RowKey 'a/b' holds '/', which the service takes in no key"),
    ({"RowKey": "a\u0085"}, "the RowKey 'a\\x85' holds '\\x85', which the service takes in no key"),
    ({"PartitionKey": "k" * 1025},
     "the PartitionKey has more than 1,024 characters, and the service takes no more"),
)  # fmt: skip
def test_an_entity_beyond_a_limit_is_refused_by_name(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        edm.check_limits({**KEYS, **properties})
    assert refused.value.message == words


def texts(entity: dict[str, Any]) -> list[str]:
    """Return an entity as it is typed."""
    suffixes = {kind: suffix for suffix, kind in edm.SUFFIXES.items()}
    made = []
    for name, value in entity.items():
        if not name.endswith(edm.ANNOTATION):
            text = value if isinstance(value, str) else json.dumps(value)
            made.append(f"{name}:{suffixes[edm.kind_of(entity, name)]}={text}")
    return made


@given(entities())
def test_any_entity_can_be_typed(entity: dict[str, Any]) -> None:
    assert json.dumps(edm.parse_entity(texts(entity))) == json.dumps(entity)


@cases(
    ("given", "entity"),
    (["Timestamp=x", "odata.etag=y"], {"Timestamp": "x", "odata.etag": "y"}),
    (["zip=0152"], {"zip": "0152"}),
    (["a=", "b=x=y", "c=true", "d=1.5"], {"a": "", "b": "x=y", "c": "true", "d": "1.5"}),
    (["n:int32=5"], {"n": 5}),
    (["n:int64=5"], {"n": "5", "n@odata.type": "Edm.Int64"}),
    (["n:Edm.Int64=5"], {"n": "5", "n@odata.type": "Edm.Int64"}),
    (["n:INT64=5"], {"n": "5", "n@odata.type": "Edm.Int64"}),
    (["x:double=1"], {"x": 1.0, "x@odata.type": "Edm.Double"}),
    (["x:double=-Infinity"], {"x": "-Infinity", "x@odata.type": "Edm.Double"}),
    (["ok:boolean=true", "no:boolean=false"], {"ok": True, "no": False}),
    (["b:binary=AAE="], {"b": "AAE=", "b@odata.type": "Edm.Binary"}),
    (["s:string=5"], {"s": "5"}),
    (["n=5", "n@odata.type=Edm.Int32"], {"n": 5}),
    (["n@odata.type=Edm.Int64", "n=5"], {"n": "5", "n@odata.type": "Edm.Int64"}),
    (["when:datetime=2026-01-01T00:00:00.1234567Z"],
     {"when": "2026-01-01T00:00:00.1234567Z", "when@odata.type": "Edm.DateTime"}),
    ([], {}),
)  # fmt: skip
def test_a_property_is_read_as_its_type(given: list[str], entity: dict[str, Any]) -> None:
    assert json.dumps(edm.parse_entity(given)) == json.dumps(entity)


@cases(
    ("given", "words"),
    (["n"], "'n' is not a property"),
    (["=5"], "'=5' is not a property"),
    (["n:int=5"], "n: 'int' is not a type"),
    (["n:int32=5.0"], "n: '5.0' is not an Edm.Int32"),
    (["ok:boolean=yes"], "ok: 'yes' is not an Edm.Boolean"),
    (["n=5", "n=6"], "n is given twice"),
    (["n:int32=5", "n@odata.type=Edm.Int64"], "n is given twice"),
    (["n@odata.type=Edm.Int64", "n@odata.type=Edm.Int64", "n=1"], "n is given twice"),
    (["n@odata.type=Edm.Int64"], "n@odata.type is the type of a property that is not there"),
    (["n=5", "n@odata.type=Edm.Int"], "n: 'Edm.Int' is not a type of the Table service"),
)
def test_what_is_no_property_is_refused_by_name(given: list[str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        edm.parse_entity(given)
    told = in_words(refused.value)
    assert (told.message, bool(told.hint)) == (words, True)
