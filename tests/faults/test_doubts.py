"""Doubts that the matrix has no row for."""

import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import BlobClient

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators.azurite_process import Azurite
from tests.faults.rules import Rule, by_rules, operation
from tests.support import sdk_clients
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request


def _sas() -> str:
    """Return a SAS that may write blobs, and look at nothing."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    return generate_account_sas(
        EMULATOR_NAME,
        EMULATOR_KEY,
        ResourceTypes(object=True, container=True),
        AccountSasPermissions(write=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
    )


def test_who_may_not_look_is_told_that_the_outcome_is_unknown(azurite: Azurite, tmp_path: Path) -> None:
    sdk_clients.blob_service(account.emulator({"blob": azurite.ports["blob"]})).create_container("unseen")
    with proxy.running(azurite.ports["blob"], by_rules([Rule.parse("PUT blob 1 drop")])) as running:
        endpoint = f"http://127.0.0.1:{running.port}/{EMULATOR_NAME}"
        cli = CliWorld(tmp_path, f"BlobEndpoint={endpoint};SharedAccessSignature={_sas()}")
        ran = cli.call("blob", "put", "unseen/x", "-o", "json", stdin=b"content")
        assert (ran.code, [each.status for each in running.log]) == (74, [201, 403])


@pytest.fixture
def blob(azurite: Azurite) -> BlobClient:
    """Return the SDK's client of a blob that is there, to look at it without faults."""
    service = sdk_clients.blob_service(account.emulator({"blob": azurite.ports["blob"]}))
    client = service.create_container(f"late{uuid.uuid4().hex[:12]}").get_blob_client("x")
    client.upload_blob(b"content")
    return client


@dataclass
class Late:
    """The first request of a kind is delivered when the test says so, long after azguard gave it up."""

    action: str
    azurite: Azurite
    root: Path
    held: list[Request] = field(default_factory=list)
    now: threading.Event = field(default_factory=threading.Event)

    def decide(self, request: Request) -> Fault | Chosen:
        if operation(request) != f"PUT lease:{self.action}" or self.held:
            return Fault.NONE
        self.held.append(request)
        return Chosen(Fault.ZOMBIE, self.now.is_set)

    def deliver(self, running: proxy.Proxy) -> int | None:
        """Let it arrive and return what the emulator answered."""
        self.now.set()
        until(lambda: any(each.request is self.held[0] for each in running.log))
        return next(each.status for each in running.log if each.request is self.held[0])

    def cli(self, running: proxy.Proxy) -> CliWorld:
        text = self.azurite.connection_string.replace(str(self.azurite.ports["blob"]), str(running.port))
        return CliWorld(self.root, text, {"AZGUARD_WRITE_TIMEOUT": "1s"})


def state(blob: BlobClient) -> str:
    return str(blob.get_blob_properties().lease.state)


def address(blob: BlobClient) -> str:
    return f"blob:{blob.container_name}/{blob.blob_name}"


def test_an_acquire_that_arrives_after_the_release_is_warned_of_and_its_id_frees_the_blob(
    azurite: Azurite, tmp_path: Path, blob: BlobClient
) -> None:
    """Nothing in the service can prevent it: one that gave the id up long ago may still be granted it."""
    late = Late("acquire", azurite, tmp_path)
    with proxy.running(azurite.ports["blob"], late.decide) as running:
        cli = late.cli(running)
        acquired = cli.call("lease", "acquire", address(blob), "--infinite")
        released = cli.call("lease", "release", address(blob))
        assert (acquired.code, released.code, state(blob), late.deliver(running)) == (0, 0, "available", 201)
        assert (state(blob), "its request may come late" in acquired.err) == ("leased", True)
        again = cli.call("lease", "release", address(blob), "--lease-id", acquired.json["lease_id"])
    assert (again.code, state(blob)) == (0, "available")


def test_a_release_that_arrives_late_never_ends_the_next_lease(
    azurite: Azurite, tmp_path: Path, blob: BlobClient
) -> None:
    late = Late("release", azurite, tmp_path)
    with proxy.running(azurite.ports["blob"], late.decide) as running:
        cli = late.cli(running)
        codes = [cli.call("lease", verb, address(blob)).code for verb in ("acquire", "release", "acquire")]
        assert (codes, late.deliver(running), state(blob)) == ([0, 0, 0], 409, "leased")


def test_a_break_that_arrives_late_never_hits_a_holder_who_left_a_record(
    azurite: Azurite, tmp_path: Path, blob: BlobClient
) -> None:
    late = Late("break", azurite, tmp_path)
    blob.acquire_lease(-1)
    with proxy.running(azurite.ports["blob"], late.decide) as running:
        broken = late.cli(running).call("lease", "break", address(blob), "--yes")
        lease = blob.acquire_lease(-1)
        blob.set_blob_metadata({"azguardowner": "{}"}, lease=lease)
        assert (broken.code, late.deliver(running), state(blob)) == (0, 412, "leased")
