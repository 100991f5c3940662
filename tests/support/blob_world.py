"""A blob of a test, past azguard: the SDK's client of it, and what other writers do to it."""

from typing import Any

from tests.support.cli_world import CliWorld

#: What takes the way of large blobs where the fixture ``small_blocks`` is used; three blocks.
LARGE = 64 * 1024 + 1


def client(cli: CliWorld, blob: str) -> Any:
    """Return the SDK's client of a blob."""
    from azure.storage.blob import BlobClient

    container, _, name = blob.partition("/")
    return BlobClient.from_connection_string(str(cli.connection_string), container, name)


def content(cli: CliWorld, blob: str) -> bytes:
    """Read a blob as another tool does."""
    with client(cli, blob) as reader:
        return bytes(reader.download_blob().readall())


def make(cli: CliWorld, content: bytes = b"old", **settings: Any) -> str:
    """Write a blob in a new container as another tool does, and return its address."""
    blob = f"{cli.container()}/a.json"
    client(cli, blob).upload_blob(content, **settings)
    return blob


def inside_lock_run(cli: CliWorld, blob: str, lease: str) -> dict[str, str]:
    """Return the environment of a command that runs under a lock on the blob."""
    endpoint = f"http://127.0.0.1:{cli.port}/devstoreaccount1"
    return {
        "AZGUARD_LOCK": f"blob:{blob}", "AZGUARD_LEASE_ID": lease, "AZGUARD_FENCE": "1",
        "AZGUARD_LOCK_ENDPOINT": endpoint,
    }  # fmt: skip
