"""Where the four services of an account answer: by its name and its cloud, or as given, one by one.

An endpoint that was given is never completed by one of another place: what is at hand for a real account is not sent
to an emulator, nor the other way round.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from azguard.accounts.proxies import is_loopback
from azguard.accounts.well_known import EMULATOR_NAME, EMULATOR_PORTS, SERVICES
from azguard.errors import ConfigError
from azguard.urls import base_of

PUBLIC_SUFFIX = "core.windows.net"
_USUAL_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(rf"(?P<name>[a-z0-9]{{3,24}}(?P<zone>\.z\d+)?)\.(?P<service>{'|'.join(SERVICES)})\.(?P<suffix>.+)")


class HostFacts(NamedTuple):
    """What the host of an endpoint tells: the account, its service, and the suffix of its cloud."""

    account: str
    service: str
    suffix: str


def place(endpoint: str) -> HostFacts | None:
    """Return what the host tells, or None if it is an emulator's or a domain of the user's own."""
    found = _HOST.fullmatch(urlsplit(endpoint).hostname or "")
    if found is None:
        return None
    return HostFacts(found["name"].removesuffix(found["zone"] or ""), found["service"], found["suffix"])


@lru_cache(maxsize=16)
def plain(endpoint: str) -> str:
    """Return an endpoint in one spelling, whatever the way there: without its scheme, in lower case, with no slash at
    its end and no port that goes without saying.

    The names of this machine are one, and so are an account's own name, its secondary and its private link.

    Not guaranteed: a domain of the user's own is another place than the name of the account behind it.
    """
    parts = urlsplit(endpoint.lower())
    host = parts.hostname or ""
    if is_loopback(host):
        host = "127.0.0.1"
    first, *rest = host.split(".")
    host = ".".join([first.removesuffix("-secondary"), *(label for label in rest if label != "privatelink")])
    port = "" if parts.port in (None, _USUAL_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{host}{port}{parts.path.rstrip('/')}"


def account_name(endpoint: str) -> str:
    """Return the account's name as its endpoint tells it, in its host or its path; empty if it does not."""
    found = place(endpoint)
    return found.account if found else urlsplit(endpoint).path.strip("/").rpartition("/")[2]


def check(url: str, where: str) -> str:
    """Return an endpoint in its one spelling.

    Raises:
        ConfigError: it is no URL, or it carries a SAS, which the message does not show.
    """
    try:
        parts = urlsplit(url)
        base = base_of(parts)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in url):
        raise ConfigError(f"{where} is not a URL", reason="endpoint_not_url")
    if "sig=" in parts.query:
        raise ConfigError(f"{where} carries a SAS", reason="endpoint_has_sas")
    return base + parts.path.rstrip("/")


def check_suffix(text: str, where: str) -> str:
    """Return the suffix of a cloud without the dot it may begin with.

    Raises:
        ConfigError: it is none, such as a whole URL.
    """
    suffix = text.strip().lstrip(".").rstrip("/").lower()
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*", suffix):
        raise ConfigError(f"{where} is not a suffix", reason="suffix_malformed")
    return suffix


def check_name(name: str) -> str:
    """Return the name of an account.

    Raises:
        ConfigError: it is none.
    """
    if not re.fullmatch(r"[a-z0-9]{3,24}", name):
        raise ConfigError(f"{name!r} is not a storage account name", reason="account_name_malformed")
    return name


def by_name(name: str, suffix: str, protocol: str = "https") -> dict[str, str]:
    """Return the four endpoints of an account in a cloud.

    Raises:
        ConfigError: the name is malformed, or is the emulator's, which is in no cloud.
    """
    if check_name(name) == EMULATOR_NAME:
        raise ConfigError(
            f"{EMULATOR_NAME} is the emulator's account, and nothing says where that answers",
            reason="emulator_without_endpoint",
        )
    return {service: f"{protocol}://{name}.{service}.{suffix}" for service in SERVICES}


def complete(name: str, given: Mapping[str, str], suffix: str | None) -> dict[str, str]:
    """Return the endpoints of an account: those given, and for the other services those beside them.

    Raises:
        ConfigError: a given one is malformed, or of another service or account.
    """
    checked = {service: check_of(service, url, f"the {service} endpoint", name) for service, url in given.items()}
    if suffix is not None or not checked:
        return {**by_name(name, suffix or PUBLIC_SUFFIX), **checked}
    beside: dict[str, str] = {}
    for endpoint in checked.values():
        beside = beside or siblings(endpoint)
    return {**beside, **checked}


def siblings(endpoint: str) -> dict[str, str]:
    """Return the four endpoints of the account that one is of; none where its host does not tell them."""
    found = place(endpoint)
    if found is None:
        return {}
    return {each: endpoint.replace(f".{found.service}.", f".{each}.", 1) for each in SERVICES}


def service_of(endpoint: str, where: str) -> str:
    """Return which service an endpoint is of, by its host or by a port of Azurite's.

    Raises:
        ConfigError: neither tells it.
    """
    if found := place(check(endpoint, where)):
        return found.service
    port = urlsplit(endpoint).port
    if told := next((service for service, usual in EMULATOR_PORTS.items() if usual == port), None):
        return told
    raise ConfigError(
        f"{where} does not tell which service it is of",
        reason="endpoint_service_unknown",
    )


def check_of(service: str, url: str, where: str, name: str) -> str:
    """Return an endpoint as ``check`` does, of that service and account as far as its host tells.

    Raises:
        ConfigError: see ``check``; or it is of another service or account.
    """
    endpoint = check(url, where)
    found = place(endpoint)
    if found is not None and found.service != service:
        raise ConfigError(
            f"{where} is of the {found.service} service",
            reason="endpoint_of_other_service",
            values={"service": service, "other": found.service},
        )
    if found is not None and name and found.account != name:
        raise ConfigError(
            f"{where} is of account {found.account!r}, and the account named is {name!r}",
            reason="endpoint_of_other_account",
        )
    return endpoint
