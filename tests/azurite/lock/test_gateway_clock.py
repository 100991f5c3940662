"""Locks behind a gateway that writes a Date of its own, hours off: nothing is taken from another because of it."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.leases.owners import OWNER, TICKET
from azguard.locks.queue import DEAD_SECONDS
from azguard.times import iso
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen
from tests.support.lock_world import Locks

HOURS = 7200
OTHER = {"AZGUARD_SCOPE": "other"}


@pytest.fixture(params=["key", "sas"])
def auth(request: pytest.FixtureRequest) -> str:
    """Return how the gateway is passed: only a key that is accepted proves that a Date is wrong."""
    return str(request.param)


@pytest.fixture(params=[HOURS, -HOURS], ids=["ahead", "behind"])
def gateway(request: pytest.FixtureRequest, world: Locks, auth: str) -> Iterator[Locks]:
    """Yield the same locks behind a gateway whose clock is off."""
    with proxy.running(world.cli.port, lambda _: Chosen(ahead_seconds=request.param)) as between:
        yield replace(world, cli=replace(world.cli, connection_string=connect(world, between.port, auth)))


def connect(world: Locks, port: int, auth: str) -> str:
    """Return the connection string of the blob service at a port, with the key or with a SAS of the container."""
    endpoint = f"BlobEndpoint=http://127.0.0.1:{port}/{EMULATOR_NAME}"
    if auth == "key":
        return f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};{endpoint}"
    may = ContainerSasPermissions(read=True, write=True, create=True, delete=True, list=True)
    ends = datetime.now(UTC) + timedelta(hours=1)
    signed = generate_container_sas(
        EMULATOR_NAME, world.container, account_key=EMULATOR_KEY, permission=may, expiry=ends
    )
    return f"{endpoint};SharedAccessSignature={signed}"


def freeze(world: Locks, lock: str, until: str) -> None:
    assert world.cli.call("lock", "hold", lock, "--sticky", "--reason", "incident", "--until", until).code == 0


@pytest.mark.parametrize("words", [("--no-wait",), ("--wait", "2s"), ("--no-fair", "--wait", "2s")])
def test_a_freeze_is_not_released_before_its_time(world: Locks, gateway: Locks, words: tuple[str, ...]) -> None:
    lock = world.new()
    freeze(world, lock, "1h")
    ran = gateway.run(lock, *words, "--", "true", env=OTHER)
    assert (ran.code, "the time of its holder is over" in ran.err, world.state(lock)) == (75, False, "leased")
    assert world.cli.call("lock", "release", lock).code == 0


@pytest.mark.parametrize("words", [("--no-wait",), ("--no-fair", "--no-wait")])
def test_a_freeze_is_released_once_its_time_is_over(world: Locks, gateway: Locks, words: tuple[str, ...]) -> None:
    lock = world.new()
    freeze(world, lock, "1h")
    metadata = world.metadata(lock)
    owner = {**json.loads(metadata[OWNER]), "until": iso(datetime.now(UTC) - timedelta(minutes=1))}
    world.blob(lock).set_blob_metadata({**metadata, OWNER: json.dumps(owner)}, lease=owner["lease_id"])
    ran = gateway.run(lock, *words, "--", "true", env=OTHER)
    assert (ran.code, "the time of its holder is over" in ran.err) == (0, True)


def test_a_lock_that_was_just_taken_is_neither_stale_nor_old(world: Locks, gateway: Locks) -> None:
    lock = world.new()
    holder = world.begin_working(lock)
    listed = gateway.cli.call("lock", "list", world.container, "--older-than", "30m")
    broken = gateway.cli.call("lock", "break", lock, "--if-older-than", "30m")
    assert (listed.json, broken.code, "which is not long enough" in broken.err) == ([], 42, True)
    time.sleep(2)  # the age that is judged is of the service's clock
    listed = gateway.cli.call("lock", "list", world.container, "--older-than", "1s", "--query", "[].address")
    # Nor is one that is old enough young.
    broken = gateway.cli.call("lock", "break", lock, "--if-older-than", "1s", "--lease-break-period", "0")
    assert (listed.json, broken.code) == ([lock], 0)
    assert holder.ended().code == 77


def test_a_holder_behind_it_leaves_the_time_of_the_service(world: Locks, gateway: Locks) -> None:
    lock = world.new()
    gateway.run(lock, "--", "true")
    owner = json.loads(world.metadata(lock)[OWNER])
    off = datetime.fromisoformat(owner["since"]) - datetime.now(UTC)
    assert (owner["clock"], abs(off) < timedelta(minutes=2)) == ("service", True)


def test_a_freeze_that_is_made_and_prolonged_behind_it_lasts_as_long_as_asked(world: Locks, gateway: Locks) -> None:
    lock = world.new()
    for hours in (1, 3):
        freeze(gateway, lock, f"{hours}h")
        until = datetime.fromisoformat(json.loads(world.metadata(lock)[OWNER])["until"])
        assert abs(until - datetime.now(UTC) - timedelta(hours=hours)) < timedelta(minutes=2)
    assert gateway.cli.call("lock", "release", lock).code == 0


def look_once(world: Locks, gateway: Locks, silent: float) -> tuple[int, list[str]]:
    """Run under a free lock for which another waits, silent for so long; return the exit status, and who waits."""
    lock = world.new()
    world.blob(lock).upload_blob(b"")
    world.blob(f"{lock}!0000000003").upload_blob(b"", metadata={TICKET: "another"})
    time.sleep(silent)  # a silence is judged by the service's clock
    code = gateway.run(lock, "--no-wait", "--", "true").code
    left = world.cli.call("blob", "list", world.container, "--prefix", f"{lock.rpartition('/')[2]}!0").json
    return code, [each["name"].rpartition("!")[2] for each in left]


def test_a_first_look_deletes_no_ticket_of_a_waiter_that_lives(world: Locks, gateway: Locks) -> None:
    assert look_once(world, gateway, 0) == (75, ["0000000003"])


@pytest.mark.parametrize("auth", ["key"])
def test_a_waiter_that_has_died_is_passed_over(world: Locks, gateway: Locks) -> None:
    assert look_once(world, gateway, DEAD_SECONDS + 1) == (0, [])
