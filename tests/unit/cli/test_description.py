"""``help --json``: what programs read about commands is whole, has one form, and is what the parser takes."""

import ast
import json
from collections.abc import Iterator
from typing import Any

import jsonschema

from azguard.cli.help import description
from azguard.cli.options.common import SECRET_ROWS
from azguard.cli.parsing.tree import root
from tests.faults.matrix import ROWS, Column
from tests.support import places
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.sources import READS_SOURCES, list_nodes
from tests.support.unlisted_rules import list_unlisted
from tests.unit.test_layers import MODULES

pytestmark = READS_SOURCES

ALL: dict[str, Any] = {each["name"]: each for each in description.describe_all(root.walk())["commands"]}


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((places.SCHEMAS / f"{name}.json").read_text("utf-8"))
    return found


def test_the_description_of_all_commands_has_the_form_that_programs_rely_on() -> None:
    jsonschema.Draft202012Validator(_schema("description")).validate(description.describe_all(root.walk()))


def test_the_description_is_json_that_every_reader_takes() -> None:
    json.dumps(description.describe_all(root.walk()), allow_nan=False)


def test_every_result_is_described_or_there_is_a_reason() -> None:
    for result in {json.dumps(command["result"] or {}) for command in ALL.values()}:
        jsonschema.Draft202012Validator.check_schema(json.loads(result))
    assert [name for name, each in ALL.items() if (each["result"] is None) != bool(each["no_result_because"])] == []
    assert set(_schema("results")["commands"]) == set(ALL)


def test_the_options_are_those_that_the_parser_takes() -> None:
    wrong = {
        name: names
        for name, command in root.walk()
        if (
            names := {each["names"][0] for each in ALL[name]["options"]}
            ^ {row.flags[0] for row in command.list_options().values()}
        )
    }
    assert wrong == {}


@cases(
    ("words", "count"),
    (("blob", "put"), 1),
    (("blob", "metadata"), 2),
    (("version", "-o", "table"), None),
    ((), len(ALL)),
)
def test_a_command_or_all_of_a_noun_is_described(offline: CliWorld, words: tuple[str, ...], count: int | None) -> None:
    ran = offline.call("help", "--json", *words)
    assert (ran.code, ran.out.startswith("{") and len(ran.json["commands"])) == (0, count or False)


def test_what_holds_a_secret_is_in_the_one_list_of_secrets() -> None:
    found = {each["names"][0] for command in ALL.values() for each in command["options"] if each["secret"]}
    assert found == {row.flags[0] for row in SECRET_ROWS}


def test_every_value_of_a_shared_option_has_a_type() -> None:
    shared = {row.flags[0]: row.type for _, command in root.walk() for row in command.shared if not row.is_flag}
    assert [name for name, kind in shared.items() if kind is None] == []


def test_no_help_says_a_default_by_hand() -> None:
    told = {(name, row.help) for name, command in root.walk() for row in command.rows}
    assert [each for each in told if "by default" in each[1]] == []


def test_every_refusal_stands_in_a_rule_or_a_type() -> None:
    assert list_unlisted() == []


def test_every_function_that_a_rule_names_is_there() -> None:
    named = {rule.by for _, command in root.walk() for rule in command.rules if rule.by}
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = {
        f"{path.stem}.{each.name}" for path in MODULES.values() for each in list_nodes(path) if isinstance(each, kinds)
    }
    assert named - found == set()


def test_every_status_in_the_table_of_faults_is_one_that_its_command_is_said_to_end_with() -> None:
    found = {(_name(row.command), row.says(column).code) for row in ROWS for column in Column}
    assert [(name, code) for name, code in sorted(found) if code not in ALL[name]["statuses"]] == []


def test_every_fact_of_an_error_is_in_its_schema() -> None:
    facts = _schema("error")["properties"]["error"]["properties"]
    assert {name: path for name, path in _list_facts() if name not in facts} == {}


def _list_facts() -> Iterator[tuple[str, str]]:
    """Yield the names of facts that errors are given, with the module; a worker's facts are of its events."""
    core = places.REPOSITORY / "azguard"
    linked = [core / name for name in ("cli", "commands", "worker")]
    for path in (each for each in core.rglob("*.py") if not any(each.is_relative_to(folder) for folder in linked)):
        for call in (each for each in list_nodes(path) if isinstance(each, ast.Call)):
            given = [each.value for each in call.keywords if each.arg == "facts" and isinstance(each.value, ast.Dict)]
            names = [key.value for each in given for key in each.keys if isinstance(key, ast.Constant)]
            yield from ((str(name), path.stem) for name in names)


def _name(line: str) -> str:
    words = line.split()
    return next(name for length in (4, 3, 2, 1) if (name := " ".join(words[:length])) in ALL)
