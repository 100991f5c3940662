"""The SDK's clients, as another program uses them: azguard itself has none. Their retries are off."""

from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareFileClient, ShareServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from azguard.accounts.account import SINGLE_BYTES, Account, Auth
from azguard.address import Address
from tests.support import sdk_transport

_SIZES: Any = dict.fromkeys(("max_single_get_size", "max_chunk_get_size", "max_single_put_size"), SINGLE_BYTES)


def blob(account: Account, address: Address) -> BlobClient:
    """Return the client of one blob."""
    service = blob_service(account)
    return service.get_blob_client(address.container, address.name, address.snapshot, version_id=address.version)


def container(account: Account, address: Address) -> ContainerClient:
    """Return the client of one container, or of the container that a blob is in."""
    return blob_service(account).get_container_client(address.container)


def blob_service(account: Account) -> BlobServiceClient:
    """Return the client of the whole blob service."""
    return BlobServiceClient(account.endpoint("blob"), **_settings(account), **_SIZES)


def share_service(account: Account) -> ShareServiceClient:
    """Return the client of the whole file service."""
    return ShareServiceClient(account.endpoint("file"), **_file_settings(account))


def share(account: Account, address: Address) -> ShareClient:
    """Return the client of one share, or of the share that something is in."""
    endpoint = account.endpoint("file")
    return ShareClient(endpoint, address.container, snapshot=address.snapshot, **_file_settings(account))


def directory(account: Account, address: Address) -> ShareDirectoryClient:
    """Return the client of one directory, or of the root of a share."""
    return share(account, address).get_directory_client(address.path)


def file(account: Account, address: Address) -> ShareFileClient:
    """Return the client of one file."""
    return share(account, address).get_file_client(address.path)


def table(account: Account, address: Address) -> TableClient:
    """Return the client of one table."""
    return TableClient(account.endpoint("table"), address.container, **_settings(account))


def table_service(account: Account) -> TableServiceClient:
    """Return the client of the whole table service."""
    return TableServiceClient(account.endpoint("table"), **_settings(account))


def queue(account: Account, address: Address) -> QueueClient:
    """Return the client of one queue; it encodes no message."""
    return QueueClient(account.endpoint("queue"), queue_name=address.container, **_settings(account))


def queue_service(account: Account) -> QueueServiceClient:
    """Return the client of the whole queue service."""
    return QueueServiceClient(account.endpoint("queue"), **_settings(account))


def _settings(account: Account) -> dict[str, Any]:
    return {
        "credential": _credential(account),
        "transport": sdk_transport.make_transport(account),
        "retry_total": 0,
    }


def _file_settings(account: Account) -> dict[str, Any]:
    return {**_settings(account), "allow_trailing_dot": True, "allow_source_trailing_dot": True}


def _credential(account: Account) -> Any:
    # A SAS as text, because a rename has to send it for its source, too.
    return AzureNamedKeyCredential(account.name, account.secret or "") if account.auth is Auth.KEY else account.secret
