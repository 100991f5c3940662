"""What an entity is read from, and the lock of a table around a write."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import LockLost
from azguard.leases import state
from azguard.leases.owners import Owner
from azguard.locks import environment
from azguard.locks.held_lock import HeldLock
from azguard.locks.lock_blobs import AcquireSettings
from azguard.locks.run import CriticalSection, hold_lock
from azguard.requests.deadline import Deadline
from tests.faults.rules import operation
from tests.support import forked, sdk_clients, table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.no_records import NoRecords
from tests.support.table_world import properties


@pytest.fixture
def order(cli: CliWorld) -> str:
    """Return the address of an entity in a new table, which is not there yet."""
    return f"{table_world.table(cli)}/eu/1007"


def insert(cli: CliWorld, order: str, content: str, *words: str) -> Ran:
    return cli.call("entity", "insert", order, "-o", "json", *words, stdin=content.encode())


# What an entity is read from.


@pytest.mark.parametrize("words", [(), ("-f", "-"), ("-f", "order.json")])
def test_an_entity_is_read_from_a_file_or_stdin(cli: CliWorld, order: str, words: tuple[str, ...]) -> None:
    content = '{"status": "new", "n": "5", "n@odata.type": "Edm.Int64", "price": 1.5, "paid": false}'
    cli.file("order.json", content)
    ran = insert(cli, order, content, *words)
    assert (ran.code, properties(cli, order)) == (0, {"status": "new", "n": "5", "price": 1.5, "paid": False})


def test_words_have_the_types_they_say(cli: CliWorld, order: str) -> None:
    ran = cli.call("entity", "insert", order, "status=new", "n:int32=5", "paid:boolean=true", "code=007")
    assert (ran.code, properties(cli, order)) == (0, {"status": "new", "n": 5, "paid": True, "code": "007"})


def test_what_get_prints_can_be_edited_and_put_back(cli: CliWorld, order: str) -> None:
    assert cli.call("entity", "insert", order, "status=new", "n:int64=5", "at:datetime=2026-11-21T10:00:00Z").code == 0
    got = cli.call("entity", "get", order, "-o", "json").json
    ran = cli.call("entity", "replace", order, stdin=json.dumps({**got, "status": "shipped"}).encode())
    again = cli.call("entity", "get", order, "-o", "json").json
    changed = {name for name in got if got[name] != again[name]}
    assert (ran.code, ran.json["guard"], changed) == (0, "if-match", {"status", "Timestamp", "odata.etag"})


def test_what_the_service_sets_itself_is_not_written(cli: CliWorld, order: str) -> None:
    etag = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
    given = {"odata.etag": etag, "odata.metadata": "x", "etag": etag, "Timestamp": "2020-01-01T00:00:00Z",
             "Timestamp@odata.type": "Edm.DateTime", "PartitionKey": "eu", "RowKey": "1007", "n": 1}  # fmt: skip
    ran = insert(cli, order, json.dumps(given))
    assert (ran.code, properties(cli, order)) == (0, {"n": 1})


@cases(
    ("content", "message"),
    ("", "stdin is empty, and it is to hold JSON"),
    ("[]", "stdin is not a JSON object"),
    ("\xff", "Expecting value"),
    ('{"a": 1, "a": 2}', 'stdin is not JSON: the key "a" appears twice in one object'),
    ('{"a": NaN}', "is not a JSON number"),
    ('{"a": {}}', "a: a property is a string, a number or a boolean, not a JSON object"),
    ('{"a": 3000000000}', "a is beyond what Edm.Int32 takes"),
    ('{"a@odata.type": "Edm.Int64"}', "a@odata.type annotates a property that is not there"),
    ('{"PartitionKey": "us"}', "PartitionKey is 'us' in the entity, and 'eu' in the address"),
    ('{"RowKey": 1007}', "RowKey is 1007 in the entity, and '1007' in the address"),
    (json.dumps({"a": "x" * 33_000}), "a has 66,000 bytes in UTF-16, and the service takes 65,536 (64 KiB)"),
    (json.dumps({f"p{n}": n for n in range(253)}), "p252 is one property too many"),
    (json.dumps({f"p{n}": n for n in range(252)}), "with azguard's lineage in it azguardlineage is one property"),
)
def test_what_is_no_entity_is_refused_and_says_why(cli: CliWorld, order: str, content: str, message: str) -> None:
    ran = insert(cli, order, content)
    assert (ran.code, message in ran.error["message"], properties(cli, order)) == (2, True, None), ran.err


def test_without_the_lineage_an_entity_may_have_every_property(cli: CliWorld, order: str) -> None:
    assert insert(cli, order, json.dumps({f"p{n}": n for n in range(252)}), "--no-lineage").code == 0


# The lock of a table around a write.


@pytest.fixture
def busy(cli: CliWorld, order: str) -> Iterator[str]:
    """Yield the table, whose lock another holds."""
    table = order.partition("/")[0]
    cli.file("held", "")
    held = cli.root / "held"
    held.unlink()
    line = ("lock", "run", f"table:{table}", "--", "sh", "-c", f"touch {held}; exec sleep 60")
    with cli.begin_fork(*line, scope="holder") as running:
        until(held.exists)
        yield table
        running.terminate()
        running.communicate()


def test_a_write_waits_for_the_lock_of_its_table(cli: CliWorld, order: str, busy: str) -> None:
    ran = cli.call("entity", "insert", order, "a=1", "--with-table-lock", "--wait", "300ms", "-o", "json")
    lock = f"blob:locks/table/{busy}"
    assert (ran.code, ran.error["message"], properties(cli, order)) == (
        75, f"{lock} is held by others; nothing was written", None,
    )  # fmt: skip
    assert f"table:{busy} has no lease of its own; its lock is {lock}" in ran.err


def test_a_write_does_not_wait_for_the_lock_of_its_table_that_this_scope_holds(cli: CliWorld, order: str) -> None:
    table = f"table:{order.partition('/')[0]}"
    assert cli.fork("lock", "hold", table).code == 0
    ran = cli.call("entity", "insert", order, "a=1", "--with-table-lock", "-o", "json")
    assert (ran.code, ran.error["message"].startswith("this scope holds"), properties(cli, order)) == (49, True, None)
    assert cli.call("lock", "release", table).code == 0


def test_a_signal_while_the_tables_lock_is_taken_ends_the_write_before_it_begins(cli: CliWorld, order: str) -> None:
    asked = threading.Event()
    assert cli.call("lock", "run", f"table:{order.partition('/')[0]}", "--", "true").code == 0

    def decide(request: proxy.Request) -> proxy.Fault:
        if operation(request) != "PUT metadata":
            return proxy.Fault.NONE
        asked.set()
        return proxy.Fault.LATE

    with proxy.running(cli.port, decide) as between:
        running = cli.through(between.port).begin_fork("entity", "insert", order, "a=1", "--with-table-lock")
        assert asked.wait(60)
        until(lambda: any(operation(each.request) == "PUT metadata" for each in between.log))
        running.terminate()
        running.communicate()
    shown = cli.call("lock", "show", f"table:{order.partition('/')[0]}").json
    assert (running.wait(), properties(cli, order), shown["state"]) == (143, None, "free")


def test_the_record_of_the_lock_says_nothing_of_what_was_written(cli: CliWorld, order: str) -> None:
    job = {"CI_JOB_URL": "https://ci:hunter2@gitlab.example.com/jobs/7"}
    words = ("entity", "insert", order, "password=hunter2", "--with-table-lock")
    assert cli.call(*words, env=job).code == 0
    found = cli.call("lock", "show", f"table:{order.partition('/')[0]}").json["last_owner"]
    assert (found["command"], found["run"]) == ("azguard entity insert", "https://ci:***@gitlab.example.com/jobs/7")


def test_a_write_in_need_of_no_lock_is_not_held_up(cli: CliWorld, order: str, busy: str) -> None:
    assert (cli.call("entity", "insert", order, "a=1").code, busy) == (0, order.partition("/")[0])


def test_what_this_scope_deleted_is_said_to_be_gone_since_then(cli: CliWorld, order: str) -> None:
    cli.call("entity", "insert", order, "a=1")
    assert cli.call("entity", "delete", order).code == 0
    for words in (("delete", order), ("replace", order, "a=2")):
        ran = cli.call("entity", *words)
        assert (ran.code, "is gone: you deleted it at" in ran.err) == (44, True), ran.err


@pytest.mark.parametrize("container", [(), ("--lock-container", "otherlocks")])
def test_the_lock_is_released_after_the_write(cli: CliWorld, order: str, container: tuple[str, ...]) -> None:
    words = ("--with-table-lock", "--wait", "1s", *container)
    runs = [
        cli.call("entity", "insert", order, "a=1", *words),
        cli.call("entity", "merge", order, "a=2", *words),
        cli.call("entity", "insert", order, "a=1", *words),  # refused, and released all the same
        cli.call("entity", "delete", order, *words),
    ]
    held = cli.call("lease", "list", "--mine").json
    shown = cli.call("lock", "show", f"table:{order.partition('/')[0]}", *container).json
    assert ([ran.code for ran in runs], held, shown["held"], shown["fence"]) == ([0, 0, 45, 0], [], False, 4)


def test_a_transaction_is_made_under_the_lock_too(cli: CliWorld, order: str, busy: str) -> None:
    line = json.dumps({"op": "insert", "address": order, "entity": {"a": 1}}).encode()
    ran = cli.call("entity", "transaction", "-", "--with-table-lock", "--wait", "300ms", stdin=line)
    assert (ran.code, properties(cli, order), busy) == (75, None, order.partition("/")[0])


def test_inside_a_lock_run_of_the_table_it_runs_at_once(cli: CliWorld, order: str) -> None:
    inner = forked.command("entity", "insert", order, "a=1", "--with-table-lock", "--wait", "300ms")
    ran = cli.fork("lock", "run", f"table:{order.partition('/')[0]}", "--", *inner)
    assert (ran.code, properties(cli, order)) == (0, {"a": "1"})


def settings_of(said: list[str], now: float = 0.0) -> AcquireSettings:
    owner = Owner("me", "here", 1, "test", "2026-11-21T10:00:00Z", None)
    settings: dict[str, Any] = {"owner": owner, "seconds": 60, "create": True, "records": NoRecords()}
    patience = Deadline(4.0)
    return AcquireSettings(
        **settings,
        patience=patience,
        say=said.append,
        tell=said.append,
        uniform=lambda low, _: low,
        now=lambda: now,
    )


def lock(cli: CliWorld) -> Target:
    """Return a blob to lock, in a container of its own."""
    return Target(account.emulator({"blob": cli.port}), Address(Kind.BLOB, (cli.container(), "lock")))


def test_a_lock_that_could_not_be_renewed_in_time_stops_the_write(cli: CliWorld) -> None:
    target = lock(cli)
    held = CriticalSection(
        HeldLock(target, "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02", 60, 1, ends=100.0), settings_of([], now=100.0)
    )
    with pytest.raises(LockLost) as lost:
        held.check()
    assert (lost.value.exit_code, lost.value.message, lost.value.detail) == (
        77, f"the lock {target.address} was lost before anything was written", ("it could not be renewed in time",),
    )  # fmt: skip


def test_a_lock_that_another_took_meanwhile_is_told_of_and_left_alone(cli: CliWorld) -> None:
    target, said = lock(cli), list[str]()
    client = sdk_clients.blob(target.account, target.address)
    with hold_lock(target, settings_of(said), 0.0, {}) as held:
        assert held is not None
        held.check()
        assert cli.call("lock", "break", str(target.address), "--yes", "--lease-break-period", "0").code == 0
        client.acquire_lease(-1)
    warnings = [line for line in said if line.startswith("warning")]
    assert (len(warnings), warnings[0].startswith(f"warning: the lock {target} was lost meanwhile: ")) == (1, True)
    assert state.look(target, Deadline()).state == "leased"


def test_a_lock_around_us_that_is_lost_stops_the_write(cli: CliWorld) -> None:
    target = lock(cli)
    sdk_clients.blob(target.account, target.address).upload_blob(b"")
    around = environment.export_locks([(target, "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02", 3)])
    with pytest.raises(LockLost), hold_lock(target, settings_of([]), 0.0, around):
        pytest.fail("it ran")


@pytest.mark.parametrize("words", [("insert", "{order}", "-f", "/dev/zero"), ("transaction", "/dev/zero")])
def test_what_never_ends_is_no_entity(cli: CliWorld, words: tuple[str, ...]) -> None:
    ran = cli.call("entity", *(each.format(order="Orders/eu/1") for each in words), "-o", "json")
    assert (ran.code, "has more than 16,777,216 bytes" in ran.error["message"]) == (2, True)
