"""An account: where its services answer, and what proves the caller's identity; and a target: a resource in it.

Connection strings, keys and SAS tokens are read as text. Messages name the part that is wrong, never the secret.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from azguard.accounts import endpoints
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME, EMULATOR_PORTS, SERVICES
from azguard.address import Address, Kind, Location
from azguard.errors import ConfigError
from azguard.frozen import frozen
from azguard.naming import same_host

T = TypeVar("T")
_KEEPING = threading.RLock()
# What one request reads or writes; larger blobs go in pinned ranges and in blocks.
SINGLE_BYTES = 8 * 1024 * 1024
_KEY_BYTES = 32
# The parts by which a connection string is known as that of another service of Azure.
_OTHERS = (
    (("endpoint", "sharedaccesskeyname"), "Service Bus or Event Hubs"),
    (("hostname", "sharedaccesskey"), "IoT Hub"),
    (("accountendpoint",), "Cosmos DB"),
    (("instrumentationkey",), "Application Insights"),
    (("endpoint", "secret"), "App Configuration"),
    (("endpoint", "accesskey"), "Communication Services, SignalR or Web PubSub"),
    (("server",), "a database"),
    (("data source",), "a database"),
)
SERVICE_LETTERS = {"b": "blob", "q": "queue", "t": "table", "f": "file"}
RESOURCE_TYPES = {"s": "the service", "c": "containers and tables", "o": "blobs, files, messages and entities"}
# The letters of the permissions, and what they allow.
PERMISSIONS = {
    "r": "read", "a": "add", "c": "create", "w": "write", "d": "delete", "x": "delete versions", "y": "delete for ever",
    "l": "list", "t": "tags", "f": "find by tags", "u": "update", "p": "process", "m": "move", "e": "execute",
    "o": "ownership", "i": "set immutability",
}  # fmt: skip


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


@frozen
class Account:
    """An account: its name, where its services answer, and what proves the caller's identity.

    The secret never shows in ``repr``. The services of tables, queues and files know no anonymous access: without
    credentials, their endpoints cannot be had (ConfigError).
    """

    name: str
    endpoints: Mapping[str, str]
    auth: Auth
    secret: str | None = field(default=None, repr=False)
    #: What its requests share, such as connections and tokens; ``at`` passes it on.
    shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Whether it is meant that a key or a SAS goes over http to another machine.
    allows_http: bool = False
    #: Whether its endpoints may say which tenant a login is asked for, although they are not Azure's own hosts.
    trusts_endpoints: bool = False
    #: The version of the services' API to speak, such as that of an Azure Stack; None is the newest that azguard knows.
    api_version: str | None = None
    #: How its caller wants blobs to be encrypted: by the argument of an operation, the headers that say it.
    encryption: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def endpoint(self, service: str) -> str:
        """Return the service's endpoint without a trailing slash; it holds no secret.

        Raises:
            ConfigError: the account was given without that service, or without the credentials that it takes.
        """
        if service not in self.endpoints:
            known = ", ".join(self.endpoints)
            is_local = self.name == EMULATOR_NAME and service == "file"
            raise ConfigError(
                f"no {service} endpoint is configured for {self.name}, only of: {known}",
                reason="emulator_without_files" if is_local else "endpoint_missing",
                values={"title": service.title(), "service": service},
            )
        found, sends_key = self.endpoints[service], service == "blob" and "encryption_key" in self.encryption
        if self.auth is Auth.LOGIN and not found.startswith("https:"):
            raise ConfigError("a login needs https", reason="login_needs_https")
        if sends_key and not endpoints.is_private(found):
            raise ConfigError("an encryption key needs https", reason="encryption_key_needs_https")
        if self.auth is Auth.ANONYMOUS and service != "blob":
            raise ConfigError(
                f"the {service.title()} service knows no anonymous access", reason="service_needs_credentials"
            )
        return found

    def watch_login(self, tell_end: Callable[[float, str], None]) -> None:
        """Have it told when the token of a login ends, once one is fetched; see ``Login.tell_end``."""
        self.shared["tell_end"] = tell_end

    def limit_login(self, seconds: float) -> None:
        """Let a login that is made from now on wait no longer than this for each program that it asks, such as az."""
        self.shared["login_seconds"] = seconds

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return the object that this account keeps under a name. The first call, of any thread, makes it."""
        with _KEEPING:
            if name not in self.shared:
                self.shared[name] = make()
            found: T = self.shared[name]
            return found

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
                self.shared,
                allows_http=self.allows_http,
                api_version=self.api_version,
                encryption=self.encryption,
            )
        # The whole endpoint, not the account's name: a host of the same first label may belong to another account.
        if same_host(self.endpoints.get(service, "")) != same_host(location.endpoint):
            raise ConfigError(
                f"the credentials are for {self.endpoints.get(service, self.name)}, "
                f"and the URL is of {location.endpoint}",
                reason="url_of_another_account",
            )
        return self


def emulator(ports: Mapping[str, int] = EMULATOR_PORTS, base: str = "http://127.0.0.1") -> Account:
    """Return the emulator's account: its well-known name and key, on its usual ports or the given ones."""
    found = {service: f"{base}:{port}/{EMULATOR_NAME}" for service, port in ports.items()}
    return Account(EMULATOR_NAME, found, Auth.KEY, EMULATOR_KEY)


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


def from_connection_string(text: str) -> Account:
    """Read a connection string, ``UseDevelopmentStorage=true`` included.

    Raises:
        ConfigError: a part is missing or malformed; the message names the part, never the secret.
    """
    parts = _split_connection_string(text)
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return _development(parts)
    _refuse_other_service(parts)
    name = parts.get("accountname", "")
    found = _endpoints(parts, name)
    if not found:
        raise _missing("AccountName and no BlobEndpoint")
    first = next(iter(found.values()))
    # Only a key needs the name, and a key without one is refused below.
    name = name or endpoints.account_name(first) or first.partition("://")[2]
    # The order of the SDK: a key before a signature.
    if parts.get("accountkey"):
        if not parts.get("accountname"):
            raise _missing("AccountName")
        return Account(name, found, Auth.KEY, parse_key(parts["accountkey"], "AccountKey"))
    if sas := parts.get("sharedaccesssignature"):
        return Account(name, found, Auth.SAS, parse_sas(sas, "SharedAccessSignature"))
    raise _missing("AccountKey (or SharedAccessSignature)")


def _endpoints(parts: Mapping[str, str], name: str) -> dict[str, str]:
    protocol = parts.get("defaultendpointsprotocol", "https")
    suffix = parts.get("endpointsuffix", endpoints.PUBLIC_SUFFIX)
    if protocol not in ("http", "https"):
        raise ConfigError("DefaultEndpointsProtocol is neither http nor https")
    given = {service: parts[f"{service}endpoint"] for service in SERVICES if parts.get(f"{service}endpoint")}
    if given:
        return {each: endpoints.check_of(each, url, f"{each.title()}Endpoint", name) for each, url in given.items()}
    return endpoints.by_name(name, endpoints.check_suffix(suffix, "EndpointSuffix"), protocol) if name else {}


def _refuse_other_service(parts: Mapping[str, str]) -> None:
    for names, service in _OTHERS:
        if all(name in parts for name in names):
            raise ConfigError(
                f"that connection string is of {service}, not of a storage account",
                reason="connection_string_of_other_service",
            )


def _development(parts: Mapping[str, str]) -> Account:
    """Return the emulator's account, on the host that DevelopmentStorageProxyUri may name."""
    if parts.get("accountname", EMULATOR_NAME) != EMULATOR_NAME:
        raise ConfigError(
            "the connection string names the emulator, by UseDevelopmentStorage, and another account, by AccountName",
            reason="connection_string_of_two",
        )
    proxy = parts.get("developmentstorageproxyuri")
    return emulator(base=endpoints.check(proxy, "DevelopmentStorageProxyUri")) if proxy else emulator()


def from_name(
    name: str,
    auth: Auth,
    secret: str | None,
    given: Mapping[str, str] | None = None,
    suffix: str | None = None,
) -> Account:
    """Return an account by its name; ``given`` are endpoints by service, ``suffix`` is that of its cloud.

    Raises:
        ConfigError: the name, an endpoint or the suffix is malformed.
    """
    checked = None if suffix is None else endpoints.check_suffix(suffix, "the endpoint suffix")
    return Account(name, endpoints.complete(name, given or {}, checked), auth, secret)


def parse_key(key: str, where: str) -> str:
    """Return the account key if it is base64.

    Raises:
        ConfigError: it is not; the message does not show it.
    """
    if _decode(key):
        return key
    raise ConfigError(f"{where} is not base64", reason="key_not_base64")


def _decode(text: str | bytes) -> bytes:
    """Decode base64; return no bytes for any other text."""
    import base64

    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one, too; a letter outside ASCII raises the plain one
        return b""


def parse_encryption_key(key: bytes, where: str, *, is_file: bool) -> bytes:
    """Return the 32 bytes of a key for AES-256, which is given in base64; a file may also hold the bytes themselves.

    Raises:
        ConfigError: it is none; the message does not show it.
    """
    if is_file and len(key) == _KEY_BYTES:
        return key
    found = _decode(key.strip())
    if len(found) != _KEY_BYTES:
        has = f"base64 of {len(found)} bytes" if found else "not base64"
        raise ConfigError(
            f"{where} is not a key for AES-256, which is {_KEY_BYTES} bytes in base64: it is {has}",
            reason="encryption_key_malformed",
        )
    return found


def encrypt_with(key: bytes) -> dict[str, dict[str, str]]:
    """Return the headers for a key of the caller's, as an account keeps them.

    Source: https://learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys
    """
    import base64
    from hashlib import sha256

    named = {"": key, "-sha256": sha256(key).digest()}
    headers = {f"x-ms-encryption-key{name}": base64.b64encode(value).decode() for name, value in named.items()}
    return {"encryption_key": {**headers, "x-ms-encryption-algorithm": "AES256"}}


def encrypt_in(scope: str) -> dict[str, dict[str, str]]:
    """Return the header for an encryption scope of the account, as an account keeps it."""
    return {"encryption_scope": {"x-ms-encryption-scope": scope}}


def parse_sas(sas: str, where: str) -> str:
    """Return the shared access signature without its question mark.

    Raises:
        ConfigError: it is none; the message does not show it.
    """
    pairs = sas.lstrip("?").split("&")
    if any(pair.startswith("sig=") and len(pair) > len("sig=") for pair in pairs):
        return sas.lstrip("?")
    raise ConfigError(f"{where} holds no signature (sig=…)", reason="sas_unsigned")


def _split_connection_string(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for pair in filter(None, (piece.strip() for piece in text.split(";"))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError("the connection string has a part without '='", reason="connection_string_cut")
        name = key.strip().lower()
        if parts.setdefault(name, value.strip()) != value.strip():
            raise ConfigError(f"the connection string has {key.strip()} twice", reason="connection_string_of_two")
    if not parts:
        raise ConfigError("the connection string is empty")
    return parts


def _missing(part: str) -> ConfigError:
    return ConfigError(f"the connection string has no {part}", reason="connection_string_incomplete")


_SAS_TIMES = (("st", "skt"), ("se", "ske"))
# In the order of ``Sas``.
_SAS_FIELDS = ("sp", "ss", "srt", "sr", "tn", "sip", "spr", "si")


@frozen
class Sas:
    """What a SAS says of itself; None is a field it does not have."""

    #: From when on it is valid (``st``, ``skt``).
    starts: datetime | None
    #: Until when it is valid (``se``, ``ske``); None also if a stored access policy says it.
    ends: datetime | None
    #: The permissions, a letter each (``sp``).
    permissions: str | None
    #: The services of an account SAS, a letter each (``ss``).
    services: str | None
    #: The resource types of an account SAS, a letter each (``srt``).
    resource_types: str | None
    #: The resource of a service SAS of blobs or files (``sr``).
    resource: str | None
    #: The table of a service SAS of tables (``tn``).
    table: str | None
    #: The addresses it is accepted from (``sip``).
    addresses: str | None
    #: The protocols it is accepted over (``spr``).
    protocols: str | None
    #: The stored access policy that may hold what is missing here (``si``).
    policy: str | None

    @property
    def is_of_account(self) -> bool:
        return self.services is not None


def read_sas(token: str) -> Sas:
    """Return the fields of a SAS; a field that cannot be understood counts as missing."""
    fields = dict(parse_qsl(token.lstrip("?"), keep_blank_values=False))
    # A user delegation SAS holds no longer than the key it was signed with.
    starts, ends = ([moment for name in names if (moment := _read_sas_time(fields.get(name)))] for names in _SAS_TIMES)
    return Sas(max(starts, default=None), min(ends, default=None), *map(fields.get, _SAS_FIELDS))


def _read_sas_time(text: str | None) -> datetime | None:
    """Return a time of a SAS, which may leave out the time of day, its seconds, or the zone, which is UTC."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        return None
