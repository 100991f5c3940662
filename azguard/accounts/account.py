"""An account: where its services answer, and what proves the caller's identity; and a target: a resource in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME, EMULATOR_PORTS
from azguard.address import Address, Kind, Location
from azguard.errors import ConfigError
from azguard.naming import same_host

T = TypeVar("T")
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
        if self.auth is Auth.LOGIN and not self.endpoints[service].startswith("https:"):
            raise ConfigError("a login needs https", reason="login_needs_https")
        if self.auth is Auth.ANONYMOUS and service != "blob":
            raise ConfigError(
                f"the {service.title()} service knows no anonymous access", reason="service_needs_credentials"
            )
        return self.endpoints[service]

    def watch_login(self, tell_end: Callable[[float, str], None]) -> None:
        """Have it told when the token of a login ends, once one is fetched; see ``Login.tell_end``."""
        self.shared["tell_end"] = tell_end

    def limit_login(self, seconds: float) -> None:
        """Let a login that is made from now on wait no longer than this for each program that it asks, such as az."""
        self.shared["login_seconds"] = seconds

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return the object that this account keeps under a name. The first call makes it."""
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
            )
        # The whole endpoint, not the account's name: a host of the same first label may belong to another account.
        if same_host(self.endpoints.get(service, "")) != same_host(location.endpoint):
            raise ConfigError(
                f"the credentials are for {self.endpoints.get(service, self.name)}, "
                f"and the URL is of {location.endpoint}",
                reason="url_of_another_account",
            )
        return self


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
