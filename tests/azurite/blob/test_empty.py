"""A blob that is empty when its first range is asked for, and is filled before its properties are."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from azure.storage.blob import BlobClient, ContainerClient

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs.updates import BlobContent
from azguard.documents import edits
from azguard.emulators.azurite_process import Azurite
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import new_op
from azguard.updates.resource import UpdatePlan
from azguard.updates.update import update
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Fault, Request

CONTAINER = "empty-when-read"


@pytest.fixture
def blob(azurite: Azurite) -> BlobClient:
    """Return the client, past any proxy, of an empty blob."""
    container = ContainerClient.from_connection_string(azurite.connection_string, CONTAINER)
    if not container.exists():
        container.create_container()
    client = container.get_blob_client("lines.txt")
    client.upload_blob(b"", overwrite=True)
    return client


@contextmanager
def filled_in_between(azurite: Azurite, blob: BlobClient) -> Iterator[int]:
    """Run a proxy that lets another write just before the first read of the properties."""
    todo = [b"theirs\n"]

    def decide(request: Request) -> Fault:
        if request.method == "HEAD" and todo:
            blob.upload_blob(todo.pop(), overwrite=True)
        return Fault.NONE

    with proxy.running(azurite.ports["blob"], decide) as between:
        yield between.port
    assert todo == []


def test_an_update_of_an_empty_blob_loses_nothing_that_is_written_meanwhile(azurite: Azurite, blob: BlobClient) -> None:
    with filled_in_between(azurite, blob) as port:
        target = Target(account.emulator({"blob": port}), Address(Kind.BLOB, (CONTAINER, "lines.txt")))
        plan = UpdatePlan(lambda content: edits.apply([edits.AppendText("ours\n")], content), new_op(b"ours" * 3))
        ended = update(BlobContent(target), plan, Deadline(10.0))
    assert (ended.outcome, blob.download_blob().readall()) == ("committed", b"theirs\nours\n")


def test_a_get_of_an_empty_blob_delivers_the_version_whose_etag_it_remembers(
    azurite: Azurite, blob: BlobClient, cli: CliWorld
) -> None:
    with filled_in_between(azurite, blob) as port:
        there = azurite.connection_string.replace(f":{azurite.ports['blob']}/", f":{port}/")
        got = cli.fork("blob", "get", f"{CONTAINER}/lines.txt", env={"AZURE_STORAGE_CONNECTION_STRING": there})
    assert (got.code, got.stdout) == (0, b"theirs\n")


def test_an_empty_blob_is_read_as_such(azurite: Azurite, blob: BlobClient, cli: CliWorld) -> None:
    got = cli.fork("blob", "get", f"{CONTAINER}/lines.txt")
    assert (got.code, got.stdout) == (0, b"")
