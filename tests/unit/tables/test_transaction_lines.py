"""The lines of a transaction are read without a command line and without a service."""

import json
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Kind, parse
from azguard.cli.words.hints import in_words
from azguard.errors import AzguardError, UsageError
from azguard.guards.requested import RequestedConditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.tables import entity_json
from azguard.tables.transactions import LineReader
from azguard.tables.writes import Verb
from azguard.wire.rows import Operation
from tests.support.cases import cases

ETAG = "W/\"datetime'2026-11-21T10%3A00%3A00.1234567Z'\""
OP = "op:abc"


def locate(text: str) -> Target:
    return Target(emulator({"table": 10002}), parse(text, Kind.ENTITY).address)


def recall(_: Target, __: Operation, ___: RequestedConditions, version: SeenVersion | None) -> Remembered:
    """Return a scope that knows no more than the line says."""
    return Remembered(copy=version)


def read(*lines: dict[str, Any], stamps: bool = True) -> Any:
    """Return the items of some lines."""
    return LineReader(OP, locate, recall, stamps=stamps).read([json.dumps(each).encode() for each in lines])


def test_the_etag_in_an_entity_guards_its_line() -> None:
    [item] = read({"op": "replace", "address": "Orders/eu/1", "entity": {"odata.etag": ETAG, "n": 1}})
    made = item.write
    assert (item.line, made.verb, made.version, made.entity) == (
        1,
        Verb.REPLACE,
        ETAG,
        {"PartitionKey": "eu", "RowKey": "1", "n": 1},
    )


@cases("stamps", True, False)
def test_each_write_carries_the_op_of_the_transaction_unless_lineage_is_off(stamps: bool) -> None:
    [item] = read({"op": "insert", "address": "Orders/eu/1", "entity": {}}, stamps=stamps)
    assert (item.write.op, item.write.stamp is not None) == (OP, stamps)


@cases(
    ("line", "reason", "message"),
    ({"op": "burn"}, "line_word", 'line 2: "op" is "burn"'),
    ({"op": "delete"}, "line_incomplete", 'line 2: there is no "address"'),
    ({"op": "delete", "if": "x"}, "line_unknown_key", "line 2: 'if' is not known"),
)
def test_an_error_names_its_line_and_its_reason(line: dict[str, Any], reason: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read({"op": "insert", "address": "Orders/eu/1", "entity": {}}, line)
    assert (refused.value.reason, refused.value.message, refused.value.facts) == (reason, message, {"line": 2})


@cases(
    ("op", "hint"),
    ("replace", 'read it first: azguard entity get Orders/eu/2; or name the version you mean: "etag": "ETAG"; '
     'or say "last_writer_wins": true'),
    ("upsert", 'to do it without a guard: "last_writer_wins": true'),
)  # fmt: skip
def test_a_hint_for_a_line_names_its_keys(op: str, hint: str) -> None:
    with pytest.raises(AzguardError) as refused:
        read({"op": op, "address": "Orders/eu/2", "entity": {}})
    assert in_words(refused.value).hint == hint


def test_a_byte_order_mark_is_no_part_of_the_json() -> None:
    assert entity_json.parse_input(b'\xef\xbb\xbf{"n": 1}', "stdin", "{}") == {"n": 1}
