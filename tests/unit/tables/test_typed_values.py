"""``name:type=value`` on the command line: nothing is guessed, and each type is read as it is meant."""

import json
from typing import Any

import pytest
from hypothesis import given

from azguard.cli.words.hints import in_words
from azguard.errors import UsageError
from azguard.tables import edm
from tests.support.cases import cases
from tests.support.entity_strategies import entities


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
    [
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
    ],
)  # fmt: skip
def test_a_property_is_read_as_its_type(given: list[str], entity: dict[str, Any]) -> None:
    assert json.dumps(edm.parse_entity(given)) == json.dumps(entity)


@cases(
    ("given", "words"),
    [
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
    ],
)
def test_what_is_no_property_is_refused_by_name(given: list[str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        edm.parse_entity(given)
    told = in_words(refused.value)
    assert (told.message, bool(told.hint)) == (words, True)
