"""The SDK's clients, for the operations that the wire does not speak itself. They send over its connections.

This is the one place that builds clients, and so the one that sets their retries, timeouts and user agent: the SDK's
own retries are off, because a retried write can be applied twice.
"""

from typing import TYPE_CHECKING, Any

from azguard import __version__
from azguard.accounts.account import SINGLE_BYTES, Account, Auth
from azguard.address import Address
from azguard.wire import identity, sdk_transport

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
    from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareFileClient, ShareServiceClient


def open_container(endpoint: str, name: str, key: str, retry_wait_seconds: float) -> "ContainerClient":
    """Return the client of one container with its retries on, as ``az`` and scripts have it."""
    from azure.storage.blob import ContainerClient, LinearRetry

    policy = LinearRetry(backoff=retry_wait_seconds, random_jitter_range=0)  # type: ignore[arg-type]  # int in name only
    # No HTTP_PROXY leads to 127.0.0.1.
    return ContainerClient(endpoint, name, credential=key, retry_policy=policy, use_env_settings=False)


def blob(account: Account, address: Address) -> "BlobClient":
    """Return the client of one blob; all of them share the settings and the pipeline of one service client."""
    return blob_service(account).get_blob_client(
        address.container, address.name, address.snapshot, version_id=address.version
    )


def container(account: Account, address: Address) -> "ContainerClient":
    """Return the client of one container, or of the container a blob is in."""
    return blob_service(account).get_container_client(address.container)


def blob_service(account: Account) -> "BlobServiceClient":
    """Return the client of the whole blob service; there is one."""

    def make() -> Any:
        from azure.storage.blob import BlobServiceClient

        sizes = ("max_single_get_size", "max_chunk_get_size", "max_single_put_size")
        settings = {**_settings(account), **dict.fromkeys(sizes, SINGLE_BYTES)}
        return BlobServiceClient(account.endpoint("blob"), credential=_credential(account), **settings)

    service: BlobServiceClient = account.keep(
        f"blob service {account.auth} {account.secret} {account.endpoint('blob')}", make
    )
    return service


def share_service(account: Account) -> "ShareServiceClient":
    """Return the client of the whole file service.

    Raises:
        ConfigError: no credentials were given; the File service knows no anonymous access.
    """
    from azure.storage.fileshare import ShareServiceClient

    return ShareServiceClient(account.endpoint("file"), **_file_settings(account))


def share(account: Account, address: Address) -> "ShareClient":
    """Return the client of one share, or of the share that something is in.

    Raises:
        ConfigError: see ``share_service``.
    """
    from azure.storage.fileshare import ShareClient

    endpoint = account.endpoint("file")
    return ShareClient(endpoint, address.container, snapshot=address.snapshot, **_file_settings(account))


def directory(account: Account, address: Address) -> "ShareDirectoryClient":
    """Return the client of one directory, or of the root of a share.

    Raises:
        ConfigError: see ``share_service``.
    """
    return share(account, address).get_directory_client(address.path)


def file(account: Account, address: Address) -> "ShareFileClient":
    """Return the client of one file.

    Raises:
        ConfigError: see ``share_service``.
    """
    return share(account, address).get_file_client(address.path)


def _settings(account: Account) -> dict[str, Any]:
    return {
        "transport": sdk_transport.make_transport(account),
        "retry_total": 0,
        "retry_to_secondary": False,
        "user_agent": f"azguard/{__version__}",
    }


def _file_settings(account: Account) -> dict[str, Any]:
    # As text, because a rename has to send the signature for its source too.
    credential = (account.secret or "").lstrip("?") if account.auth is Auth.SAS else _credential(account)
    return {
        **_settings(account),
        "credential": credential,
        # The service drops a dot at the end of a name, and so takes the name for another one, unless it is told.
        "allow_trailing_dot": True,
        "allow_source_trailing_dot": True,
        # A login has to say which of its rights it means; there is only this one.
        "token_intent": "backup" if account.auth is Auth.LOGIN else None,
    }


def _credential(account: Account) -> Any:
    if account.auth is Auth.KEY:
        from azure.core.credentials import AzureNamedKeyCredential

        return AzureNamedKeyCredential(account.name, account.secret or "")
    if account.auth is Auth.SAS:
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential((account.secret or "").lstrip("?"))
    if account.auth is Auth.ANONYMOUS:
        return None
    return identity.find_login(account)
