"""What an earlier release left in an account and on a disk is read, and carried on; what a later one left is refused.

The leavings of the first release are in ``tests/data/leavings.json``, as its commands wrote them.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient

from azguard.accounts.endpoints import plain
from azguard.requests.lineage import op_of_key
from tests.support import queue_world, table_world
from tests.support.cli_world import CliWorld

LEAVINGS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "leavings.json").read_text())
# The change was --increment n; the minutes are those until it was applied.
CHANGE, MINUTE = "80b610", "376b49"
KEYED = ("--increment", "n", "--op-id", "run-71")


def op(cli: CliWorld, address: str) -> str:
    return op_of_key("run-71", plain(endpoint(cli, address)), address)


def endpoint(cli: CliWorld, address: str) -> str:
    port = table_world.port(cli) if address.startswith("entity:") else cli.port
    return f"http://127.0.0.1:{port}/devstoreaccount1"


def left(cli: CliWorld, name: str, address: str) -> dict[str, Any]:
    """Return one of the leavings, with the op of the key in this account."""
    keyed = op(cli, address)
    packed = base64.urlsafe_b64decode(keyed)[:8] + bytes.fromhex(CHANGE + MINUTE)
    short = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    found: dict[str, Any] = json.loads(json.dumps(LEAVINGS[name]).replace("KEYED", keyed).replace("PACKED", short))
    return found


@pytest.fixture
def container(cli: CliWorld, site: str) -> ContainerClient:
    return ContainerClient.from_connection_string(cli.connection_string or "", site)


def test_the_op_of_a_key_is_that_of_the_first_release() -> None:
    assert (
        op_of_key("run-71", plain("http://localhost:33017/devstoreaccount1/"), "blob:old/a.json") == "QfHNMpY2v8_sURun"
    )


def test_a_key_of_the_first_release_is_known_and_carried_on(cli: CliWorld, container: ContainerClient) -> None:
    address = f"blob:{container.container_name}/a.json"
    blob = container.upload_blob("a.json", b'{"n": 3}\n', metadata=left(cli, "blob", address))
    again = cli.call("safe-update", address, *KEYED).json
    other = cli.call("safe-update", address, "--increment", "n").json
    later = cli.call("safe-update", address, *KEYED).json
    reused = cli.call("safe-update", address, "--increment", "m", "--op-id", "run-71")
    assert (again["outcome"], other["outcome"], later["outcome"], reused.code, blob.download_blob().readall()) == (
        "applied_before", "committed", "applied_before", 45, b'{"n": 4}\n'
    )  # fmt: skip
    assert [each["attempts"] for each in (again, other, later)] == [0, 1, 0]


def test_rows_of_the_first_release_are_known(cli: CliWorld) -> None:
    name, queue = table_world.table(cli), queue_world.queue(cli, '{"k": "a"}')
    table = TableServiceClient.from_connection_string(cli.connection_string or "").get_table_client(name)
    for each, row in (("entity", "r"), ("ledgered", "q"), ("ledger", "q"), ("once", "q")):
        wanted = left(cli, each, f"entity:{name}/p/{row}")
        table.create_entity({key: queue if value == "QUEUE" else value for key, value in wanted.items()})
    merged = cli.call("safe-update", f"entity:{name}/p/r", *KEYED).json
    ledgered = cli.call("safe-update", f"entity:{name}/p/q", *KEYED, "--guard", "ledger", "--create", '{"n": 1}').json
    worked = cli.call("queue", "work", queue, "--drain", "--once-table", name, "--once-key", "k", "--", "false").json
    assert (merged["attempts"], ledgered["attempts"], worked["duplicates"], worked["failed"]) == (0, 0, 1, 0)


def test_a_lock_of_the_first_release_goes_on(cli: CliWorld, container: ContainerClient) -> None:
    address = f"blob:{container.container_name}/old"
    container.upload_blob("old", b"", metadata=left(cli, "lock", address))
    line = json.dumps(LEAVINGS["log"]).replace("blob:old/old", address)
    container.upload_blob("old!log", f"{line}\n", blob_type="AppendBlob")
    older = cli.fork("lock", "run", address, "--sequence", "4", "--", "true")
    newer = cli.fork("lock", "run", address, "--sequence", "6", "--", "printenv", "AZGUARD_FENCE")
    history = cli.call("lock", "log", address).json
    assert (older.code, newer.code, newer.out, [each["fence"] for each in history]) == (42, 0, "2\n", [1, 2])


def test_a_hold_of_the_first_release_is_told_and_released(cli: CliWorld, container: ContainerClient) -> None:
    address = f"blob:{container.container_name}/held"
    blob = container.upload_blob("held", b"", metadata=left(cli, "held", address))
    blob.acquire_lease(-1, lease_id=LEAVINGS["hold"]["lease_id"])
    text = json.dumps(LEAVINGS["hold"]).replace("ADDRESS", address).replace("ENDPOINT", endpoint(cli, address))
    holds = cli.root / ".cache" / "holds"
    holds.mkdir(mode=0o700, parents=True)
    (holds / f"{LEAVINGS['hold']['lease_id']}.json").write_text(text)
    waiter = cli.fork("lock", "run", address, "--no-wait", "--", "true", scope="other")
    checked = cli.call("lock", "check", address, scope="old")
    released = cli.call("lock", "release", address, scope="old").json
    assert (waiter.code, "incident 4711" in waiter.err, checked.code, released["outcome"]) == (75, True, 0, "released")


def test_readers_and_waiters_of_the_first_release_are_told_and_kept_out(
    cli: CliWorld, container: ContainerClient
) -> None:
    address = f"blob:{container.container_name}/read"
    container.upload_blob("read", b"", metadata=LEAVINGS["shared"])
    reader = container.upload_blob("read!reader-2bf1f531d6094647b0ae8c7aad0f5915", b"", metadata=LEAVINGS["reader"])
    lease = reader.acquire_lease(15)
    ticket = container.upload_blob("read!0000000007", b"", metadata=LEAVINGS["ticket"])
    shown = cli.call("lock", "show", address).json
    writer = cli.fork("lock", "run", address, "--no-wait", "--", "true")
    lease.release()
    ticket.set_blob_metadata({**LEAVINGS["ticket"], "azguardticket": "left"})
    later = cli.fork("lock", "run", address, "--no-wait", "--", "true")
    waits = [(each["place"], each["reason"], each["is_shared"]) for each in shown["waiters"]]
    assert (len(shown["readers"]), waits, writer.code, later.code) == (1, [(1, "a report", True)], 75, 0)


def test_what_a_later_release_may_leave_is_refused_in_words(cli: CliWorld, container: ContainerClient) -> None:
    address = f"blob:{container.container_name}/b.json"
    blob = container.upload_blob("b.json", b'{"n": 3}\n', metadata={"azguardlineage": "2:what,comes"})
    before = blob.get_blob_properties().etag
    assert cli.call("blob", "get", address.removeprefix("blob:")).out == '{"n": 3}\n'
    for words in (
        ("safe-update", address, *KEYED),
        ("blob", "put", address.removeprefix("blob:"), "-f", str(cli.file("b.json", "{}"))),
        ("blob", "metadata", "set", address.removeprefix("blob:"), "--metadata", "a=b"),
    ):
        ran = cli.call(*words)
        assert (words, ran.code, "written by a newer azguard" in ran.err) == (words, 78, True)
    ran = cli.fork("lock", "run", address, "--", "true")
    assert (ran.code, blob.get_blob_properties().etag) == (78, before)
