"""Entities as safe-update sees them: compared by types and values, edited with their types, written with a lineage."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli.words import hints
from azguard.commands.safe_update import typed_edits
from azguard.documents.edits import MergePatch
from azguard.emulators.azurite_process import Azurite
from azguard.errors import NotFound, TransformFailed, UsageError
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.tables import entity_json, updates
from azguard.tables.updates import VersionedEntity
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.table_world import table

if TYPE_CHECKING:
    from azguard.documents.edits import Edit

ADDRESS = Address(Kind.ENTITY, ("orders", "eu", "1"))
KEYS = {"PartitionKey": "eu", "RowKey": "1"}
LINEAGE = Lineage((("a" * 16, "-"),))


def text(**properties: Any) -> bytes:
    return json.dumps({**KEYS, **properties}).encode()


def typed(value: Any, kind: str) -> dict[str, Any]:
    return {"p": value, "p@odata.type": f"Edm.{kind}"}


def checked(content: bytes) -> Any:
    return json.loads(entity_json.canonicalize(content, ADDRESS))


def edited(content: bytes, *words: str) -> Any:
    chosen: list[Edit] = [
        typed_edits.parse_for_entity(option, what, lambda name: b"") for option, what in _pairs(words)
    ]
    return checked(updates.apply_edits(chosen, content))


def _pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


# One spelling


@cases(
    ("one", "other"),
    (typed("5", "Int64"), typed(5, "Int64")),
    (typed(5, "Int32"), {"p": 5}),
    (typed(1, "Double"), {"p": 1.0}),
    (typed("2026-11-21T10:00Z", "DateTime"), typed("2026-11-21T10:00:00.0000000Z", "DateTime")),
    (typed("C9DA6455-213D-42C9-9A79-3E9149A57833", "Guid"), typed("c9da6455213d42c99a793e9149a57833", "Guid")),
    ({"p": "x", "Timestamp": "2026-11-21T10:00:00Z"}, {"p": "x"}),
    ({"p": "x", "q": None}, {"p": "x"}),
    ({"p": 1, "a": 2}, {"a": 2, "p": 1}),
)
def test_equal_types_and_values_have_one_spelling(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert entity_json.canonicalize(text(**one), ADDRESS) == entity_json.canonicalize(text(**other), ADDRESS)


@cases(
    ("one", "other"),
    (typed("5", "Int64"), {"p": 5}),
    ({"p": "5"}, {"p": 5}),
    ({"p": 1.0}, {"p": 1}),
    ({"p": True}, {"p": 1}),
    (typed("2026-11-21T10:00:00Z", "DateTime"), {"p": "2026-11-21T10:00:00Z"}),
    (typed("2026-11-21T10:00:00.0000001Z", "DateTime"), typed("2026-11-21T10:00:00Z", "DateTime")),
)
def test_another_type_or_value_is_another_spelling(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert entity_json.canonicalize(text(**one), ADDRESS) != entity_json.canonicalize(text(**other), ADDRESS)


def test_keys_that_a_transform_leaves_out_are_those_of_the_address() -> None:
    assert checked(b'{"n": 1}') == {**KEYS, "n": 1}


@cases(
    ("content", "words"),
    (b'{"RowKey": "2"}', "RowKey is part of the entity's name and cannot change"),
    (b'{"PartitionKey": 1}', "PartitionKey is part of the entity's name and cannot change"),
    (b'{"n": 1, "n@odata.type": "Edm.Guid"}', "n: 1 is not an Edm.Guid"),
    (b'{"n": [1]}', "n: a property is a string, a number or a boolean, not a JSON array"),
    (b'{"n": 1, "n": 2}', 'the new entity is not JSON: the key "n" appears twice in one object'),
    (b'{"n": NaN}', "the new entity is not JSON: line 1, column 7: NaN is not a JSON number"),
    (b"[1]", "the new entity is not a JSON object"),
    (b"\xff", "the new entity is not UTF-8, at byte 0"),
    (b'{"azguardlineage": ""}', "azguardlineage is how azguard knows its own writes; it cannot be edited"),
    (b'{"x@odata.type": "Edm.Int64"}', "x@odata.type annotates a property that is not there"),
)
def test_what_is_no_entity_is_refused_by_name(content: bytes, words: str) -> None:
    with pytest.raises(TransformFailed) as refused:
        checked(content)
    assert refused.value.message == words


def test_the_type_of_a_property_goes_with_it() -> None:
    before = text(n="1", **{"n@odata.type": "Edm.Int64"}, kept="2", **{"kept@odata.type": "Edm.Int64"})
    after = json.dumps({"n@odata.type": "Edm.Int64", "kept": "2", "kept@odata.type": "Edm.Int64"}).encode()
    assert json.loads(entity_json.drop_orphan_types(before, after)) == {"kept": "2", "kept@odata.type": "Edm.Int64"}


def test_a_type_without_a_property_that_was_never_there_is_kept_and_so_refused() -> None:
    assert entity_json.drop_orphan_types(text(), b'{"x@odata.type": "Edm.Int64"}') == b'{"x@odata.type": "Edm.Int64"}'


# Edits


@cases(
    ("before", "words", "after"),
    (typed("5", "Int64"), ("--increment", "p"), typed("6", "Int64")),
    (typed("9007199254740993", "Int64"), ("--increment", "p=2"), typed("9007199254740995", "Int64")),
    ({"p": 5}, ("--increment", "p=-7"), {"p": -2}),
    (typed(0.1, "Double"), ("--increment", "p=0.2"), typed(0.3, "Double")),
    (typed(1.0, "Double"), ("--increment", "p"), typed(2.0, "Double")),
    ({}, ("--increment", "p"), {"p": 1}),
    ({}, ("--increment", "p=0.5"), typed(0.5, "Double")),
    (typed("5", "Int64"), ("--set", "p=7"), typed("7", "Int64")),
    (typed(1.5, "Double"), ("--set", "p=2"), typed(2.0, "Double")),
    (
        typed("2026-11-21T10:00:00Z", "DateTime"),
        ("--set", 'p="2027-01-01T00:00:00Z"'),
        typed("2027-01-01T00:00:00Z", "DateTime"),
    ),
    ({"p": 1}, ("--unset", "p", "--set", 'p="x"'), {"p": "x"}),
    ({"p": 1}, ("--set", 'p="x"', "--set", 'p@odata.type="Edm.String"'), {"p": "x"}),
    ({"p": "x"}, ("--set", "p=null"), {}),
    ({}, ("--set", "p=5", "--set", 'p@odata.type="Edm.Int64"'), typed("5", "Int64")),
    ({}, ("--set", 'p@odata.type="Edm.Int64"', "--set", "p=5"), typed("5", "Int64")),
    ({"p": 5}, ("--set", 'p@odata.type="Edm.Double"', "--increment", "p=0.5"), typed(5.5, "Double")),
    (typed("5", "Int64"), ("--unset", "p"), {}),
    (typed("5", "Int64"), ("--set", "p=null"), {}),
    ({"p": 1}, ("--unset", "q"), {"p": 1}),
)
def test_edits_keep_the_types(before: dict[str, Any], words: tuple[str, ...], after: dict[str, Any]) -> None:
    assert edited(text(**before), *words) == {**KEYS, **after}


@cases(
    ("before", "words", "message"),
    ({"p": 2**31 - 1}, ("--increment", "p"), "p is beyond what Edm.Int32 takes"),
    (typed(str(2**63 - 1), "Int64"), ("--increment", "p"), "p is beyond what Edm.Int64 takes"),
    (typed("5", "Int64"), ("--increment", "p=0.5"), "--increment: p is an Edm.Int64, and 0.5 is no whole number"),
    ({"p": "5"}, ("--increment", "p"), "--increment: p is a string, not a number"),
    (typed("5", "Int64"), ("--set", "p=true"), "p: True is not an Edm.Int64"),
    ({"p": "0152"}, ("--set", "p=152"), "p is an Edm.String, and its new value an Edm.Int32"),
    ({"p": 1}, ("--set-string", "p=2"), "p is an Edm.Int32, and its new value an Edm.String"),
    (typed("NaN", "Double"), ("--increment", "p"), "--increment: p is a string, not a number"),
    ({}, ("--set", 'RowKey="2"'), "RowKey is part of the entity's name and cannot change"),
)
def test_what_a_type_does_not_take_is_refused(before: dict[str, Any], words: tuple[str, ...], message: str) -> None:
    with pytest.raises(TransformFailed) as refused:
        edited(text(**before), *words)
    assert hints.in_words(refused.value).message == message


@cases(
    ("option", "what"), ("--append", "x"), ("--set", "a.b=1"), ("--unset", "a[0]"), ("--increment", "azguardlineage")
)
def test_what_is_no_edit_of_an_entity_is_a_usage_error(option: str, what: str) -> None:
    with pytest.raises(UsageError):
        typed_edits.parse_for_entity(option, what, lambda name: b"")


def test_patches_see_the_types_as_they_are() -> None:
    patch = b'{"p": "7", "q": 1, "q@odata.type": "Edm.Int64"}'
    edit = typed_edits.parse_for_entity("--merge-patch", "FILE", lambda name: patch)
    assert checked(updates.apply_edits([edit], text(**typed("5", "Int64")))) == {
        **KEYS, **typed("7", "Int64"), "q": "1", "q@odata.type": "Edm.Int64",
    }  # fmt: skip


def test_a_patch_gives_another_type_only_by_its_name() -> None:
    with pytest.raises(TransformFailed, match=r"p is an Edm\.String"):
        updates.apply_edits([MergePatch({"p": 152})], text(p="0152"))
    named = MergePatch({"p": 152, "p@odata.type": "Edm.Int32"})
    assert checked(updates.apply_edits([named], text(p="0152"))) == {**KEYS, "p": 152}


@cases(
    ("initial", "message"),
    ('{"RowKey": "2"}', "RowKey is part of the entity's name"),
    ("[]", "the new entity is not a JSON object"),
    ("x", "the new entity is not JSON: "),
    ('{"n": {}}', "n: a property is a string, a number or a boolean"),
)
def test_an_initial_that_is_no_such_entity_is_a_usage_error(initial: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        entity_json.build_initial(initial, ADDRESS)


# The service


def stored(client: TableClient) -> dict[str, Any]:
    """Return the entity's properties as they are stored, its lineage included, without its keys."""
    return {name: value for name, value in client.get_entity("eu", "1").items() if name not in KEYS}


@pytest.fixture
def orders(cli: CliWorld) -> TableClient:
    """Return the SDK's client of a table with one entity of all types."""
    client = TableClient.from_connection_string(cli.connection_string or "", table(cli))
    client.create_entity(
        {
            **KEYS,
            "text": "Straße 💶",
            "yes": True,
            "small": 1,
            "large": EntityProperty(2**62, EdmType.INT64),
            "number": 1.0,
            "data": b"\x00\xff",
        }
    )
    return client


@pytest.fixture
def entity(azurite: Azurite, orders: TableClient) -> Callable[[str], VersionedEntity]:
    """Return what makes the resource of a row of the table."""
    here = account.emulator(azurite.ports)
    return lambda row: VersionedEntity(Target(here, Address(Kind.ENTITY, (orders.table_name, "eu", row))))


def test_content_and_lineage_are_of_one_version(entity: Callable[[str], VersionedEntity], orders: TableClient) -> None:
    resource = entity("1")
    state = resource.read(Deadline())
    content = entity_json.canonicalize(state.source.replace(b'"small": 1', b'"small": 2'), resource.target.address)
    landed = resource.prepare(state, content, LINEAGE, None, Deadline())(None)
    after = resource.read(Deadline())
    assert (after.etag, after.lineage, after.content) == (landed.etag, LINEAGE, content)
    assert stored(orders) == {
        "text": "Straße 💶",
        "yes": True,
        "small": 2,
        "large": EntityProperty(2**62, EdmType.INT64),
        "number": 1.0,
        "data": b"\x00\xff",
        "azguardlineage": str(LINEAGE),
    }


def test_a_transform_sees_the_time_and_not_the_lineage(entity: Callable[[str], VersionedEntity]) -> None:
    resource = entity("1")
    state = resource.read(Deadline())
    resource.prepare(state, state.content, LINEAGE, None, Deadline())(None)
    shown = json.loads(resource.read(Deadline()).source)
    assert ("Timestamp" in shown, "azguardlineage" in shown) == (True, False)
    assert entity_json.canonicalize(resource.read(Deadline()).source, resource.target.address) == state.content


def test_a_fence_changes_etag_and_lineage_alone(entity: Callable[[str], VersionedEntity], orders: TableClient) -> None:
    resource = entity("1")
    before, properties = resource.read(Deadline()), stored(orders)
    landed = resource.fence(before, LINEAGE, None, Deadline())()
    touched = resource.fence(resource.read(Deadline()), None, None, Deadline())()
    assert len({before.etag, landed.etag, touched.etag}) == 3
    assert stored(orders) == {**properties, "azguardlineage": str(LINEAGE)}


def test_without_a_lineage_of_its_own_a_write_leaves_the_one_that_is_there(
    entity: Callable[[str], VersionedEntity], orders: TableClient
) -> None:
    resource = entity("1")
    resource.prepare(resource.read(Deadline()), b'{"PartitionKey": "eu", "RowKey": "1"}', LINEAGE, None, Deadline())(
        None
    )
    state = resource.read(Deadline())
    resource.prepare(state, state.content, None, None, Deadline())(None)
    assert stored(orders) == {"azguardlineage": str(LINEAGE)}


def test_only_a_missing_table_is_an_error(entity: Callable[[str], VersionedEntity], azurite: Azurite) -> None:
    assert entity("2").read(Deadline()).etag is None
    nowhere = Target(account.emulator(azurite.ports), Address(Kind.ENTITY, ("nowhere", "eu", "1")))
    with pytest.raises(NotFound, match="there is no table nowhere"):
        VersionedEntity(nowhere).read(Deadline())
