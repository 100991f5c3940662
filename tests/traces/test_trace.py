"""A trace says each step as its page says, and nothing that is secret or content."""

import ast
import fcntl
import json
import os
import re
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.requests import trace
from azguard.worker import once
from tests.support import table_world
from tests.support.cli_world import CliWorld
from tests.support.places import REPOSITORY

CONTENT, PERSON, METADATA = "Zk4-content", "Zk4-person", "Zk4-metadata"
LEASE = str(uuid.uuid4())
_TYPES = {"text": str, "number": (int, float), "null": type(None)}
_ROOMS = ("requests", "updates", "leases", "locks", "worker")


def _read_table(title: str) -> dict[str, list[str]]:
    """Return a table of the page: its first column, and the words in code type, or the types, of the second."""
    page = (REPOSITORY / "docs/traces.md").read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| `")]
    return {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) or row[1].split(" or ") for row in rows}


FIELDS, STEPS = _read_table("Fields"), _read_table("Steps")
_COMMON = {"at", "process", "n", "command", "step", "endpoint", "address"}


def _list_noted() -> set[str]:
    """Return each step that the code notes by its name."""
    found = {*trace._DONE.values(), *once._STEPS.values(), once.DONE, once.FAILED, once.POISONED, "extended"}
    paths = [path for room in _ROOMS for path in (REPOSITORY / "azguard" / room).glob("*.py")]
    for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "note":
            found |= {str(each.value) for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
    return found


def test_the_page_has_each_step() -> None:
    assert _list_noted() == set(STEPS)
    assert {name for names in STEPS.values() for name in names} <= set(FIELDS)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _find_wrong(line: dict[str, Any]) -> list[str]:
    names = {*_COMMON, *STEPS[line["step"]]}
    kinds = {name: tuple(_TYPES[word] for word in FIELDS[name]) for name in line if name in FIELDS}
    return [name for name, value in line.items() if name not in names or not isinstance(value, _flat(kinds[name]))]


def _flat(kinds: Sequence[Any]) -> tuple[type, ...]:
    return tuple(each for kind in kinds for each in (kind if isinstance(kind, tuple) else (kind,)))


def _make_sas(cli: CliWorld) -> str:
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    until = datetime.now(UTC) + timedelta(hours=1)
    types, may = ResourceTypes(object=True, container=True), AccountSasPermissions(read=True, write=True, create=True)
    return generate_account_sas(EMULATOR_NAME, EMULATOR_KEY, types, may, until)


@pytest.fixture
def file(cli: CliWorld) -> Path:
    """Return the trace of commands of all rooms that note steps, with secrets and content in all of their places."""
    path, sas, name = cli.root / "trace.jsonl", _make_sas(cli), cli.container()
    table, queue = table_world.table(cli), f"q{uuid.uuid4().hex[:12]}"
    env = {trace.VARIABLE: str(path)}
    endpoint = f"BlobEndpoint=http://127.0.0.1:{cli.port}/{EMULATOR_NAME}"
    # What the command typed, the body of a message and the key of an entity are a person's as well as the content is.
    lines = [
        (f"blob put {name}/x --metadata owner={METADATA}", CONTENT),
        (f"safe-update blob:{name}/x --append {CONTENT}", ""),
        (f"safe-update blob:{name}/x --guard lease --op-id {CONTENT} --append {CONTENT}", ""),
        (f"blob append {name}/log --create --content {CONTENT}", ""),
        (f"lease acquire blob:{name}/x --proposed-lease-id {LEASE} --lease-duration 15s", ""),
        (f"blob put {name}/x --lease-id {LEASE}", f"{CONTENT} 2"),
        (f"lease release blob:{name}/x --lease-id {LEASE}", ""),
        (f"entity insert {table}/{PERSON}/{PERSON} name={CONTENT}", ""),
        (f"safe-update entity:{table}/{PERSON}/{PERSON} --set-string name={CONTENT}2", ""),
        (f"lock run blob:{name}/lock --reason {CONTENT} -- true", ""),
        (f"queue create {queue}", ""),
        (f"message put {queue}", json.dumps({"who": PERSON})),
        (f"queue work {queue} --drain --once-table {table} --once-key who -- true", ""),
    ]
    for line, stdin in lines:
        ran = cli.fork(*line.split(), "-o", "none", stdin=stdin.encode(), env=env)
        assert ran.code == 0, (line, ran.err)
    by_sas = {**env, "AZURE_STORAGE_CONNECTION_STRING": f"{endpoint};SharedAccessSignature={sas}"}
    assert cli.call("blob", "put", f"{name}/by-sas", stdin=CONTENT.encode(), env=by_sas).code == 0
    return path


def test_a_trace_is_as_its_page_says_and_has_no_secret_and_no_content(cli: CliWorld, file: Path) -> None:
    lines = _lines(file)
    assert [(line, wrong) for line in lines if (wrong := _find_wrong(line))] == []
    text = file.read_text(encoding="utf-8")
    secrets = [CONTENT, PERSON, METADATA, LEASE, EMULATOR_KEY, "sig=", "AccountKey", "SharedAccess", "azguardlineage"]
    assert [secret for secret in secrets if secret.lower() in text.lower()] == []
    assert {"read", "sending", "looked", "settled", "acquired", "held", "released", "claimed", "done", "deleted"} - {
        line["step"] for line in lines
    } == {"looked"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_said_once_and_costs_nothing(cli: CliWorld) -> None:
    name = cli.container()
    unwritable = {
        "/no/such/file": "No such file or directory",
        str(cli.root): "Is a directory",
        "/dev/full": "No space left on device",
    }
    for path, why in unwritable.items():
        ran = cli.call("blob", "put", f"{name}/{why[:2]}", stdin=b"x", env={trace.VARIABLE: path})
        assert (ran.code, ran.err) == (0, f"warning: AZGUARD_TRACE: {path} cannot be written: {why}\n")
    assert cli.call("blob", "put", f"{name}/off", stdin=b"x", env={trace.VARIABLE: ""}).code == 0


def test_many_processes_write_whole_lines_and_leave_none_out(cli: CliWorld) -> None:
    name, path = cli.container(), cli.root / "trace.jsonl"
    assert cli.call("blob", "put", f"{name}/n", stdin=b'{"n": 0}').code == 0
    with ThreadPoolExecutor(4) as threads:
        words = ("safe-update", f"blob:{name}/n", "--increment", "n")
        ran = list(threads.map(lambda _: cli.fork(*words, env={trace.VARIABLE: str(path)}), range(8)))
    assert {each.code for each in ran} == {0}
    numbers: dict[str, list[int]] = {}
    for line in _lines(path):
        numbers.setdefault(line["process"], []).append(line["n"])
    assert [len(numbers), [each for each in numbers.values() if each != list(range(1, len(each) + 1))]] == [8, []]


def test_a_pipe_is_open_until_the_command_ends_and_a_slow_reader_misses_lines_that_it_can_count(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with trace.into(str(path), "test", pytest.fail):
            trace.note("one")
            lines = os.read(reader, 1 << 16).splitlines()
            with pytest.raises(BlockingIOError):  # no end of file: a writer has it open
                os.read(reader, 1)
            for _ in range((fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ) // len(lines[0])) + 1):
                trace.note("one")
            lines += os.read(reader, 1 << 20).splitlines()
            trace.note("one")
            lines += os.read(reader, 1 << 16).splitlines()
        numbers = [json.loads(line)["n"] for line in lines]
        assert (os.read(reader, 1), numbers[-1] > len(numbers)) == (b"", True)
    finally:
        os.close(reader)
