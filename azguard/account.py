"""Credentials and endpoints → SDK clients.

This is the one place that builds clients, and so the one that sets their retries, timeouts and user agent:
the SDK's own retries are off, because a retried write can be applied twice (SAFETY, Rule 0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from azguard import __version__
from azguard.address import Address, Kind, Location
from azguard.errors import ConfigError

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient

# A live endpoint accepts a connection within a second; four leave room for one lost packet and the answer.
CONNECT_SECONDS = 4.0
# What one request reads or writes; larger blobs go in pinned ranges and in blocks.
SINGLE_BYTES = 8 * 1024 * 1024
SERVICES = ("blob", "queue", "table", "file")
EMULATOR_NAME = "devstoreaccount1"
# The emulator's key is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR_PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10004}


class Auth(StrEnum):
    """How the service is told who is asking."""

    KEY = "key"
    SAS = "sas"
    LOGIN = "login"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True)
class Account:
    """An account: its name, where its services answer, and what proves who is asking.

    The secret never shows in ``repr``.
    """

    name: str
    endpoints: Mapping[str, str]
    auth: Auth
    secret: str | None = field(default=None, repr=False)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def endpoint(self, service: str) -> str:
        """Return the service's endpoint without a trailing slash; it holds no secret.

        Raises:
            ConfigError: the account was given without that service.
        """
        if service not in self.endpoints:
            raise ConfigError(
                f"no {service} endpoint is configured for {self.name}",
                hint=f"add {service.title()}Endpoint=… to the connection string",
            )
        return self.endpoints[service]

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
        if self.endpoints.get(service) != location.endpoint and self.name != location.account_name:
            raise ConfigError(
                f"the credentials at hand are for {self.name}, and the URL is of {location.account_name}",
                hint="add a SAS to the URL, or name that account's credentials",
            )
        return replace(self, endpoints={**self.endpoints, service: location.endpoint})

    def blob(self, address: Address) -> "BlobClient":
        """Return the SDK's client of one blob."""
        from azure.storage.blob import BlobClient

        return BlobClient(
            self.endpoint("blob"),
            container_name=address.container,
            blob_name=address.name,
            snapshot=address.snapshot,
            version_id=address.version,
            credential=self._credential(),
            **self._settings(),
        )

    def container(self, address: Address) -> "ContainerClient":
        """Return the SDK's client of one container, or of the container a blob is in."""
        from azure.storage.blob import ContainerClient

        return ContainerClient(
            self.endpoint("blob"),
            container_name=address.container,
            credential=self._credential(),
            **self._settings(),
        )

    def blob_service(self) -> "BlobServiceClient":
        """Return the SDK's client of the whole blob service."""
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient(self.endpoint("blob"), credential=self._credential(), **self._settings())

    def _credential(self) -> Any:
        if self.auth is Auth.KEY:
            from azure.core.credentials import AzureNamedKeyCredential

            return AzureNamedKeyCredential(self.name, self.secret or "")
        if self.auth is Auth.SAS:
            from azure.core.credentials import AzureSasCredential

            return AzureSasCredential((self.secret or "").lstrip("?"))
        if self.auth is Auth.ANONYMOUS:
            return None
        if "login" not in self._shared:
            from azure.identity import DefaultAzureCredential

            self._shared["login"] = DefaultAzureCredential()
        return self._shared["login"]

    def _settings(self) -> dict[str, Any]:
        if "transport" not in self._shared:
            from azure.core.pipeline.transport import RequestsTransport

            self._shared["transport"] = RequestsTransport(connection_timeout=CONNECT_SECONDS)
        return {
            "transport": self._shared["transport"],
            "retry_total": 0,
            "retry_to_secondary": False,
            "user_agent": f"azguard/{__version__}",
            "max_single_get_size": SINGLE_BYTES,
            "max_chunk_get_size": SINGLE_BYTES,
            "max_single_put_size": SINGLE_BYTES,
        }


def emulator(ports: Mapping[str, int] | None = None) -> Account:
    """Return the emulator's account: its well-known name and key, on its usual ports or the given ones."""
    ports = ports or _EMULATOR_PORTS
    return Account(
        EMULATOR_NAME,
        {service: f"http://127.0.0.1:{port}/{EMULATOR_NAME}" for service, port in ports.items()},
        Auth.KEY,
        EMULATOR_KEY,
    )


def from_connection_string(text: str) -> Account:
    """Read a connection string, ``UseDevelopmentStorage=true`` included.

    Raises:
        ConfigError: a part is missing or malformed; the message names the part, never the secret.
    """
    parts = _split_connection_string(text)
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return emulator()
    name = parts.get("accountname", "")
    protocol = parts.get("defaultendpointsprotocol", "https")
    suffix = parts.get("endpointsuffix", "core.windows.net")
    endpoints = {}
    for service in SERVICES:
        explicit = parts.get(f"{service}endpoint")
        if explicit:
            endpoints[service] = _checked_endpoint(explicit, f"{service.title()}Endpoint")
        elif name and not any(parts.get(f"{other}endpoint") for other in SERVICES):
            endpoints[service] = f"{protocol}://{name}.{service}.{suffix}"
    if not endpoints:
        raise _missing("AccountName or a BlobEndpoint")
    name = name or _name_of(next(iter(endpoints.values())))
    if sas := parts.get("sharedaccesssignature"):
        return Account(name, endpoints, Auth.SAS, sas)
    if "accountkey" not in parts:
        raise _missing("AccountKey (or SharedAccessSignature)")
    if not parts.get("accountname"):
        raise _missing("AccountName")
    return Account(name, endpoints, Auth.KEY, checked_key(parts["accountkey"], "AccountKey"))


def from_name(name: str, auth: Auth, secret: str | None, endpoints: Mapping[str, str] | None = None) -> Account:
    """Return an account of the public cloud by its name; ``endpoints`` replaces the usual ones.

    Raises:
        ConfigError: the name or an endpoint is malformed.
    """
    import re

    if not re.fullmatch(r"[a-z0-9]{3,24}", name):
        raise ConfigError(f"{name!r} is not a storage account name", hint="3 to 24 lower-case letters and digits")
    known = {service: f"https://{name}.{service}.core.windows.net" for service in SERVICES}
    given = {service: _checked_endpoint(url, f"{service} endpoint") for service, url in (endpoints or {}).items()}
    return Account(name, {**known, **given}, auth, secret)


def checked_key(key: str, where: str) -> str:
    """Return the account key if it is base64.

    Raises:
        ConfigError: it is not; the message does not show it.
    """
    import base64
    import binascii

    try:
        if base64.b64decode(key, validate=True):
            return key
    except binascii.Error:
        pass
    raise ConfigError(f"{where} is not base64", hint="copy the whole key, with the = signs at its end")


def _split_connection_string(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for pair in filter(None, (piece.strip() for piece in text.split(";"))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                "the connection string has a part without '='",
                hint="quote it in the shell: it holds ';' between its parts",
            )
        parts[key.strip().lower()] = value.strip()
    if not parts:
        raise ConfigError("the connection string is empty")
    return parts


def _missing(part: str) -> ConfigError:
    return ConfigError(
        f"the connection string has no {part}",
        hint="copy it whole from the portal (Access keys), in single quotes",
    )


def _checked_endpoint(url: str, where: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(f"{where} is not a URL", hint="write it as https://NAME.blob.core.windows.net")
    return url.split("?")[0].rstrip("/")


def _name_of(endpoint: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(endpoint)
    return parts.path.strip("/") or (parts.hostname or "").split(".")[0]


@dataclass(frozen=True, slots=True)
class Target:
    """A resource and the account it is in: what every operation of the core takes."""

    account: Account
    address: Address

    @property
    def kind(self) -> Kind:
        """Return what the address names."""
        return self.address.kind

    @property
    def endpoint(self) -> str:
        """Return the endpoint of its service."""
        return self.account.endpoint(self.kind.service)

    def __str__(self) -> str:
        return self.address.short
