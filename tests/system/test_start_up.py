"""A command imports what it needs and no more: most of a short run is imports."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient

from azguard.cli.registry import COMMANDS
from tests.support.places import REPOSITORY

# Runs command lines in this very process, and after each tells which of the named packages were imported until then.
_PROBE = """
import sys
from azguard.cli.app import run
lines, packages = sys.argv[1].splitlines(), sys.argv[2].split()
for line in lines:
    status = run(line.split())
    loaded = [package for package in packages if package in sys.modules]
    sys.stderr.write(f"status {status} loaded {' '.join(loaded)}\\n")
"""
_SDKS = ("azure.core", "azure.storage", "azure.data", "azure.identity")
_SLOW = (
    "rich",
    "pydantic",
    "requests",
    "sqlite3",
    "platformdirs",
    "yaml",
    "jsonpatch",
    "asyncio",
    "importlib.metadata",
)


# What a run that succeeds has no use for.
_FOR_ERRORS = (
    "azguard.cli.words.refusals",
    "azguard.cli.words.hints",
    "azguard.requests.denials",
)
# What only help, completion or -v needs, a login or a profile, or a credential that ends.
_RARE = (
    "azguard.accounts.profiles",
    "azguard.cli.help",
    "azguard.guards.fences",
)
# What the put of one small file has no use for.
_NOT_FOR_A_PUT = (
    "azguard.blobs.listing",
    "azguard.resources.lifecycles",
    "azguard.trees",
    "azguard.wire.catalogue",
    *(("platformdirs",) if sys.platform == "linux" else ()),
)
# What a read that asks for no condition leaves closed.
_CACHE = ("azguard.cache.copies", "azguard.cache.database", "azguard.cache.etag_cache", "azguard.cache.records")


def imported(line: str, packages: tuple[str, ...], cwd: Path, environ: dict[str, str] | None = None) -> str:
    return imported_by_each([line], packages, cwd, environ)[line]


def imported_by_each(
    lines: Sequence[str], packages: tuple[str, ...], cwd: Path, environ: dict[str, str] | None = None
) -> dict[str, str]:
    """Return what each line, and those before it, have imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AZ")}
    answer = subprocess.run(
        [sys.executable, "-c", _PROBE, "\n".join(lines), " ".join(packages)],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(REPOSITORY), "HOME": str(cwd), **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(zip(lines, answer.stderr.splitlines()[-len(lines) :], strict=True))


def test_help_and_version_import_no_sdk_and_nothing_slow(tmp_path: Path) -> None:
    lines = ["--help", "--version", "help", "help conditions", "help options"]
    found = imported_by_each(
        lines, (*_SDKS, *_SLOW, *_FOR_ERRORS, "azguard.wire.client", "azguard.wire.rows"), tmp_path
    )
    assert found == dict.fromkeys(lines, "status 0 loaded ")


def test_the_help_of_a_command_imports_neither_the_command_nor_the_parser(tmp_path: Path) -> None:
    lines = [*(f"{name} --help" for name in COMMANDS), "--help", "blob put --help", "lock run -h"]
    unused = ("azguard.cli.parsing", "azguard.cli.options", "azguard.commands", "azguard.errors", "typer")
    assert imported_by_each(lines, unused, tmp_path) == dict.fromkeys(lines, "status 0 loaded ")


def test_the_help_of_a_command_imports_no_sdk_and_nothing_slow(tmp_path: Path) -> None:
    lines = [f"-v {name} --help" for name in COMMANDS]
    found = imported_by_each(lines, (*_SDKS, *_SLOW), tmp_path)
    assert found == dict.fromkeys(lines, "status 0 loaded ")


def test_showing_a_blob_imports_no_sdk(tmp_path: Path, connection_string: str) -> None:
    account = {"AZURE_STORAGE_CONNECTION_STRING": connection_string}
    BlobServiceClient.from_connection_string(connection_string).create_container("start-up")
    put = "blob put start-up/empty --allow-empty -o none"
    assert imported(put, (*_FOR_ERRORS, *_NOT_FOR_A_PUT), tmp_path, account) == "status 0 loaded "
    others = ("azure.storage.queue", "azure.storage.fileshare", "azure.data.tables", "azure.identity")
    # asyncio and importlib.metadata come with the SDK itself.
    slow = ("rich", "pydantic", "sqlite3", "yaml", "jsonpatch", "json_merge_patch", "jmespath")
    writing = (
        "azguard.blobs.content.put_blob",
        "azguard.leases",
        "azguard.requests.settle",
        "azguard.requests.trace",
    )
    unused = (*_FOR_ERRORS, *_RARE, *_CACHE, *writing)
    packages = ("azure.storage.blob", *others, *slow, *unused)
    answer = imported("blob show start-up/empty -o json", packages, tmp_path, account)
    assert answer == "status 0 loaded "


def test_an_update_imports_no_sdk_and_what_the_simplest_one_needs(tmp_path: Path, connection_string: str) -> None:
    account = {"AZURE_STORAGE_CONNECTION_STRING": connection_string, "AZGUARD_SCOPE": "start-up"}
    container = BlobServiceClient.from_connection_string(connection_string).create_container("start-up-update")
    container.upload_blob("n", b'{"n": 0}')
    others = ("azure.storage.queue", "azure.storage.fileshare", "azure.data.tables", "azure.identity")
    slow = ("rich", "pydantic", "yaml", "jsonpatch", "json_merge_patch", "jmespath")
    blocks = (
        "azguard.guards.fences",
        "azguard.blobs.listing",
    )
    ways = ("azguard.documents.metadata", "azguard.leases", "azguard.processes.identity")
    unused = (*_FOR_ERRORS, *_RARE, *blocks, *ways, "azguard.requests.settle", "azguard.tables")
    line = "safe-update blob:start-up-update/n --increment n -o none"
    packages = ("azure.storage.blob", *others, *slow, *unused)
    assert imported(line, packages, tmp_path, account) == "status 0 loaded "


def test_a_run_under_a_lock_imports_no_sdk_and_nothing_to_make_locks_with(
    tmp_path: Path, connection_string: str
) -> None:
    account = {"AZURE_STORAGE_CONNECTION_STRING": connection_string}
    line = "lock run blob:start-up-locks/one -- true"
    others = ("azure.storage.queue", "azure.storage.fileshare", "azure.data.tables", "azure.identity")
    slow = ("rich", "pydantic", "yaml", "jsonpatch", "json_merge_patch", "jmespath")
    making = (
        "azguard.blobs.content.put_blob",
        "azguard.blobs.containers",
        "azguard.locks.shown",
    )
    packages = ("azure.storage.blob", *others, *slow, *making)
    first, later = (imported(line, packages, tmp_path, account) for _ in range(2))
    assert first == "status 0 loaded azguard.blobs.content.put_blob"
    assert later == "status 0 loaded "


def test_reading_an_entity_imports_no_sdk(tmp_path: Path, connection_string: str) -> None:
    from azure.data.tables import TableClient

    table = TableClient.from_connection_string(connection_string, "StartUp")
    table.create_table()
    table.create_entity({"PartitionKey": "eu", "RowKey": "1007"})
    account = {"AZURE_STORAGE_CONNECTION_STRING": connection_string}
    others = ("azure.storage", "azure.identity")
    slow = ("http", "rich", "pydantic", "yaml", "jsonpatch", "json_merge_patch", "jmespath")
    lines = [f"{line} -o none" for line in ("entity get StartUp/eu/1007", "entity query StartUp", "table list")]
    found = imported_by_each(lines, ("azure.data.tables", *others, *slow), tmp_path, account)
    assert found == dict.fromkeys(lines, "status 0 loaded ")


def test_the_table_of_operations_needs_nothing_but_the_smallest_modules(tmp_path: Path) -> None:
    code = (
        "import sys, enum, functools, typing; before = set(sys.modules)\n"
        "import azguard.wire.operations.blobs; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    # With what Python 3.14 reads annotations.
    found = [name for name in done.stdout.split() if name not in ("_ast", "annotationlib", "ast")]
    names = ("wire", "wire.operations", "wire.operations.blobs", "wire.rows")
    assert found == ["azguard", *(f"azguard.{name}" for name in names)]


def test_a_write_imports_neither_the_update_loop_nor_a_transaction(tmp_path: Path, connection_string: str) -> None:
    from azure.data.tables import TableClient

    account = {"AZURE_STORAGE_CONNECTION_STRING": connection_string, "AZGUARD_SCOPE": "start-up"}
    container = BlobServiceClient.from_connection_string(connection_string).create_container("start-up-writes")
    container.upload_blob("a", b"a")
    table = TableClient.from_connection_string(connection_string, "StartUpWrites")
    table.create_table()
    table.create_entity({"PartitionKey": "eu", "RowKey": "1007"})
    QueueClient.from_connection_string(connection_string, "start-up").create_queue()
    lines = (
        "blob metadata set start-up-writes/a --metadata owner=ops --last-writer-wins",
        "entity merge StartUpWrites/eu/1007 status=new --last-writer-wins",
        "message put start-up hello",
    )
    unused = (
        "azguard.updates",
        "azguard.blobs.content.upload",
        "azguard.documents.edits",
        "azguard.tables.transactions",
        "azguard.queues.queues",
        "email",
        "encodings.idna",
        "asyncio",
        "azguard.blobs.listing",
        "azguard.resources.lifecycles",
        "azguard.resources.pool",
        *_FOR_ERRORS,
        *_RARE,
    )
    found = imported_by_each([f"{line} -o none" for line in lines], unused, tmp_path, account)
    assert list(found.values()) == ["status 0 loaded "] * len(lines)


def test_importing_the_cache_does_not_import_sqlite(tmp_path: Path) -> None:
    code = "import sys, azguard.cache.etag_cache, azguard.cache.scope; print('sqlite3' in sys.modules)"
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "False\n"
