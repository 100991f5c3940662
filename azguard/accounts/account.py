"""Credentials and endpoints → SDK clients; and a target: one resource and the account it is in.

This is the one place that builds clients, and so the one that sets their retries, timeouts and user agent:
the SDK's own retries are off, because a retried write can be applied twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from azguard import __version__
from azguard.accounts import transport
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME, EMULATOR_PORTS
from azguard.address import Address, Kind, Location
from azguard.errors import ConfigError
from azguard.naming import same_host

if TYPE_CHECKING:
    from azure.data.tables import TableClient, TableServiceClient
    from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
    from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareFileClient, ShareServiceClient
    from azure.storage.queue import QueueClient, QueueServiceClient

    from azguard.accounts.logins import Login


# A live endpoint accepts a connection within a second; four leave room for one lost packet and the answer.
CONNECT_SECONDS = 4.0
# What one request reads or writes; larger blobs go in pinned ranges and in blocks.
SINGLE_BYTES = 8 * 1024 * 1024


class Auth(StrEnum):
    """How a request proves which identity sends it."""

    KEY = "key"
    SAS = "sas"
    LOGIN = "login"
    ANONYMOUS = "anonymous"

    @property
    def may_end(self) -> bool:
        """Return whether the proof holds for some time only."""
        return self in (Auth.SAS, Auth.LOGIN)


@dataclass(frozen=True)
class Account:
    """An account: its name, where its services answer, and what proves the caller's identity.

    The secret never shows in ``repr``. The services of tables, queues and files know no anonymous access: without
    credentials, their clients cannot be had (ConfigError).
    """

    name: str
    endpoints: Mapping[str, str]
    auth: Auth
    secret: str | None = field(default=None, repr=False)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Whether it is meant that a key or a SAS goes over http to another machine.
    allows_http: bool = False
    #: Whether its endpoints may say which tenant a login is asked for, although they are not Azure's own hosts.
    trusts_endpoints: bool = False

    def endpoint(self, service: str) -> str:
        """Return the service's endpoint without a trailing slash; it holds no secret.

        Raises:
            ConfigError: the account was given without that service.
        """
        if service not in self.endpoints:
            known = ", ".join(self.endpoints)
            is_local = self.name == EMULATOR_NAME and service == "file"
            raise ConfigError(
                f"no {service} endpoint is configured for {self.name}, only of: {known}",
                reason="emulator_without_files" if is_local else "endpoint_missing",
                values={"title": service.title(), "service": service},
            )
        if self.auth is Auth.LOGIN and not self.endpoints[service].startswith("https:"):
            raise ConfigError("a login needs https", reason="login_needs_https")
        return self.endpoints[service]

    @property
    def login(self) -> "Login":
        """Return the login; one for all clients, so that they share its tokens."""
        if "login" not in self._shared:
            import os

            from azguard.accounts import logins
            from azguard.accounts.endpoints import find_cloud, is_azures_own

            cloud = find_cloud(next(iter(self.endpoints.values()), ""))
            made = logins.choose(os.environ, cloud, self._shared.get("login_seconds"))
            if not self.trusts_endpoints:
                foreign = (each for each in self.endpoints.values() if not is_azures_own(each))
                made.foreign_endpoint = next(foreign, None)
            self._shared["login"] = made
        found: Login = self._shared["login"]
        if "tell_end" in self._shared:
            found.tell_end = self._shared.pop("tell_end")
        return found

    def watch_login(self, tell_end: Callable[[float, str], None]) -> None:
        """Have it told when the token of a login ends, once one is fetched; see ``Login.tell_end``."""
        self._shared["tell_end"] = tell_end

    def limit_login(self, seconds: float) -> None:
        """Let a login that is made from now on wait no longer than this for each program that it asks, such as az."""
        self._shared["login_seconds"] = seconds

    def at(self, location: Location) -> "Account":
        """Return the account for an address that was given as a URL: that endpoint, with our credentials.

        Raises:
            ConfigError: the URL is of another account, so that our credentials are not for it.
        """
        if location.endpoint is None:
            return self
        service = location.address.kind.service
        if location.sas is not None:
            return Account(
                location.account_name or "",
                {service: location.endpoint},
                Auth.SAS,
                location.sas,
                self._shared,
            )
        # The whole endpoint, not the account's name: a host of the same first label may belong to another account.
        if same_host(self.endpoints.get(service, "")) != same_host(location.endpoint):
            raise ConfigError(
                f"the credentials are for {self.endpoints.get(service, self.name)}, "
                f"and the URL is of {location.endpoint}",
                reason="url_of_another_account",
            )
        return self

    def blob(self, address: Address) -> "BlobClient":
        """Return the SDK's client of one blob; all of them share the settings and the pipeline of one service client.

        To build these anew for each blob would take a tenth of the time that a small upload takes.
        """
        return self.blob_service().get_blob_client(
            address.container, address.name, address.snapshot, version_id=address.version
        )

    def container(self, address: Address) -> "ContainerClient":
        """Return the SDK's client of one container, or of the container a blob is in."""
        return self.blob_service().get_container_client(address.container)

    def blob_service(self) -> "BlobServiceClient":
        """Return the SDK's client of the whole blob service; there is one."""
        key = f"blob service {self.auth} {self.secret} {self.endpoint('blob')}"
        if key not in self._shared:
            from azure.storage.blob import BlobServiceClient

            self._shared[key] = BlobServiceClient(
                self.endpoint("blob"), credential=self._credential(), **self._settings()
            )
        service: BlobServiceClient = self._shared[key]
        return service

    def table(self, address: Address) -> "TableClient":
        """Return the SDK's client of one table, or of the table an entity is in."""
        from azure.data.tables import TableClient

        endpoint = self._private_endpoint("table")
        return TableClient(endpoint, address.container, credential=self._credential(), **self._plain())

    def table_service(self) -> "TableServiceClient":
        """Return the SDK's client of the whole table service."""
        from azure.data.tables import TableServiceClient

        return TableServiceClient(self._private_endpoint("table"), credential=self._credential(), **self._plain())

    def queue(self, address: Address) -> "QueueClient":
        """Return the SDK's client of one queue, or of the queue a message is in; it encodes no message."""
        from azure.storage.queue import QueueClient

        endpoint = self._private_endpoint("queue")
        return QueueClient(endpoint, queue_name=address.container, credential=self._credential(), **self._plain())

    def queue_service(self) -> "QueueServiceClient":
        """Return the SDK's client of the whole queue service."""
        from azure.storage.queue import QueueServiceClient

        return QueueServiceClient(self._private_endpoint("queue"), credential=self._credential(), **self._plain())

    def share_service(self) -> "ShareServiceClient":
        """Return the SDK's client of the whole file service."""
        from azure.storage.fileshare import ShareServiceClient

        return ShareServiceClient(self._private_endpoint("file"), **self._file_settings())

    def share(self, address: Address) -> "ShareClient":
        """Return the SDK's client of one share, or of the share that something is in."""
        from azure.storage.fileshare import ShareClient

        endpoint = self._private_endpoint("file")
        return ShareClient(endpoint, address.container, snapshot=address.snapshot, **self._file_settings())

    def directory(self, address: Address) -> "ShareDirectoryClient":
        """Return the SDK's client of one directory, or of the root of a share."""
        return self.share(address).get_directory_client(address.path)

    def file(self, address: Address) -> "ShareFileClient":
        """Return the SDK's client of one file."""
        return self.share(address).get_file_client(address.path)

    def _private_endpoint(self, service: str) -> str:
        """Return the endpoint of a service that knows no anonymous access."""
        endpoint = self.endpoint(service)
        if self.auth is Auth.ANONYMOUS:
            raise ConfigError(
                f"the {service.title()} service knows no anonymous access", reason="service_needs_credentials"
            )
        return endpoint

    def _file_settings(self) -> dict[str, Any]:
        # As text, because a rename has to send the signature for its source too.
        credential = (self.secret or "").lstrip("?") if self.auth is Auth.SAS else self._credential()
        return {
            **self._plain(),
            "credential": credential,
            # The service drops a dot at the end of a name, and so takes the name for another one, unless it is told.
            "allow_trailing_dot": True,
            "allow_source_trailing_dot": True,
            # A login has to say which of its rights it means; there is only this one.
            "token_intent": "backup" if self.auth is Auth.LOGIN else None,
        }

    def _credential(self) -> Any:
        if self.auth is Auth.KEY:
            from azure.core.credentials import AzureNamedKeyCredential

            return AzureNamedKeyCredential(self.name, self.secret or "")
        if self.auth is Auth.SAS:
            from azure.core.credentials import AzureSasCredential

            return AzureSasCredential((self.secret or "").lstrip("?"))
        if self.auth is Auth.ANONYMOUS:
            return None
        return self.login

    def _settings(self) -> dict[str, Any]:
        sizes = ("max_single_get_size", "max_chunk_get_size", "max_single_put_size")
        return {**self._plain(), **dict.fromkeys(sizes, SINGLE_BYTES)}

    def _plain(self) -> dict[str, Any]:
        return {
            "transport": self.sender,
            "retry_total": 0,
            "retry_to_secondary": False,
            "user_agent": f"azguard/{__version__}",
        }

    @property
    def sender(self) -> Any:
        """Return the SDK's transport; one for all clients, so that they share its connections."""
        if "transport" not in self._shared:
            self._shared["transport"] = transport.transport(
                # Answers are in memory already; the SDK would cut them into pieces of 4 KiB and join them again.
                connection_timeout=CONNECT_SECONDS,
                connection_data_block_size=SINGLE_BYTES,
            )
        return self._shared["transport"]


def emulator(ports: Mapping[str, int] | None = None) -> Account:
    """Return the emulator's account: its well-known name and key, on its usual ports or the given ones."""
    ports = ports or EMULATOR_PORTS
    return Account(
        EMULATOR_NAME,
        {service: f"http://127.0.0.1:{port}/{EMULATOR_NAME}" for service, port in ports.items()},
        Auth.KEY,
        EMULATOR_KEY,
    )


class Target(NamedTuple):
    """A resource and the account it is in: what every operation of the core takes."""

    account: Account
    address: Address

    @property
    def kind(self) -> Kind:
        return self.address.kind

    @property
    def endpoint(self) -> str:
        return self.account.endpoint(self.kind.service)

    def __str__(self) -> str:
        return self.address.short
