"""What an entity may hold: refused before anything is sent, with the property named."""

import base64
from typing import Any

import pytest
from hypothesis import given

from azguard.errors import UsageError
from azguard.tables import edm
from tests.support.cases import cases
from tests.support.entity_strategies import entities

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
    [
        {f"p{number}": "" for number in range(252)},
        {"s": "x" * 32_768},
        {"s": "😀" * 16_384},
        {"b": _BYTES, "b@odata.type": "Edm.Binary"},
        {"n" * 255: 1},
        {"_x1": 1, "Ünï": 1, "名前": 1},
        {"azguardlineage": "x"},
        {"PartitionKey": "", "RowKey": "ü 'x' %2F \u00a0" + "k" * 1000},
        largest(),
    ],
)
def test_an_entity_at_a_limit_is_let_through(properties: dict[str, Any]) -> None:
    edm.check_limits({**KEYS, **properties})


@cases(
    ("properties", "words"),
    [
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
    ],
)  # fmt: skip
def test_an_entity_beyond_a_limit_is_refused_by_name(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        edm.check_limits({**KEYS, **properties})
    assert refused.value.message == words
