"""Where the four services of an account answer: by its name and its cloud, or as given; and through which proxy.

An endpoint that was given is never completed by one of another place: what is at hand for a real account is not sent
to an emulator, nor the other way round. ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` mean what they
mean to requests.
"""

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from azguard import naming
from azguard.errors import ConfigError
from azguard.frozen import frozen

SERVICES = ("blob", "queue", "table", "file")
#: The settings of an account whose value is a secret, unless it names a file.
SECRETS = ("connection-string", "account-key", "sas-token")
#: The environment variable of each setting of an account.
VARIABLES = {
    "connection-string": "AZURE_STORAGE_CONNECTION_STRING",
    "account-name": "AZURE_STORAGE_ACCOUNT",
    "account-key": "AZURE_STORAGE_KEY",
    "sas-token": "AZURE_STORAGE_SAS_TOKEN",
    "auth-mode": "AZURE_STORAGE_AUTH_MODE",
    "api-version": "AZGUARD_API_VERSION",
    **{f"{service}-endpoint": f"AZURE_STORAGE_{service.upper()}_ENDPOINT" for service in SERVICES},
}
#: The variable of the key with which blobs are encrypted; it belongs to no account.
ENCRYPTION_VARIABLE = "AZGUARD_ENCRYPTION_KEY"
#: The audience of every token for storage, with the scope that a login is asked for. Clouds of their own have another.
STORAGE_SCOPE = "https://storage.azure.com/.default"
EMULATOR_NAME = "devstoreaccount1"
# The emulator's key is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
EMULATOR_PORTS = {service: port for port, service in naming.EMULATOR_PORTS.items()}
PUBLIC_SUFFIX = "core.windows.net"
_USUAL_PORTS = {"http": 80, "https": 443}
_HOST = rf"(?P<name>[a-z0-9]{{3,24}}(?P<zone>\.z\d+)?)\.(?P<service>{'|'.join(SERVICES)})\.(?P<suffix>.+)"


@frozen
class HostFacts:
    """What the host of an endpoint tells: the account, its service, and the suffix of its cloud."""

    account: str
    service: str
    suffix: str


def place(endpoint: str) -> HostFacts | None:
    """Return the facts in a host name, or None if the host is an emulator or has a domain of the user's own."""
    found = re.fullmatch(_HOST, urlsplit(endpoint).hostname or "")
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
        base = naming.find_url_base(parts)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in url):
        raise ConfigError(f"{where} is not a URL", reason="endpoint_not_url")
    if "sig=" in parts.query:
        raise ConfigError(f"{where} carries a SAS", reason="endpoint_has_sas")
    return base + parts.path.rstrip("/")


def check_suffix(text: str, where: str) -> str:
    """Return the suffix of a cloud without the dot it may begin with."""
    suffix = text.strip().lstrip(".").rstrip("/").lower()
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*", suffix):
        raise ConfigError(f"{where} is not a suffix", reason="suffix_malformed")
    return suffix


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]{3,24}", name):
        raise ConfigError(f"{name!r} is not a storage account name", reason="account_name_malformed")
    return name


def by_name(name: str, suffix: str, protocol: str = "https") -> dict[str, str]:
    """Return the four endpoints of an account in a cloud."""
    if _check_name(name) == EMULATOR_NAME:
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
    beside = next(filter(None, map(siblings, checked.values())), {})
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
    raise ConfigError(f"{where} does not tell which service it is of", reason="endpoint_service_unknown")


def check_of(service: str, url: str, where: str, name: str) -> str:
    """Return an endpoint as ``check`` does, of that service and account as far as its host tells."""
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


@frozen
class NamedProxy:
    """A proxy by ``HOST:PORT``, without the user and the password of its URL, and the variable that names it."""

    address: str
    variable: str


def find_proxy_url(url: str) -> str | None:
    """Return the URL of the proxy that a request to this URL goes through, with its user and password.

    None if it goes there directly, as everything to this machine does.
    """
    names_one = any(name.lower().endswith("_proxy") for name in os.environ) or sys.platform != "linux"
    if not names_one or _is_local(url):
        return None
    from requests.utils import get_environ_proxies, select_proxy

    found = select_proxy(url, get_environ_proxies(url))
    return found or None


def find_proxy(url: str) -> NamedProxy | None:
    """Return the name of the proxy that a request to this URL goes through; None if it goes there directly.

    A proxy whose URL is malformed has the address ``?``: the malformed text may hold a password.
    """
    found = find_proxy_url(url)
    return None if found is None else NamedProxy(_address(found), _variable(found, url))


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine: localhost, ::1, or in 127.0.0.0/8."""
    name = (host or "").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    if not name.startswith("127.") and ":" not in name:
        return False
    import ipaddress

    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Return whether a request cannot be read on its way: by TLS, or because it stays on this machine."""
    return url.startswith("https:") or _is_local(url)


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname)
    except ValueError:
        return False


def _address(proxy: str) -> str:
    try:
        parts = urlsplit(proxy)
        port = parts.port
    except ValueError:
        return "?"
    if not parts.hostname:
        return "?"
    return f"{parts.hostname}:{port}" if port else parts.hostname


def _variable(proxy: str, url: str) -> str:
    """Return the name of the variable that holds the proxy, as the user spelt it."""
    for name in (f"{urlsplit(url).scheme}_proxy", "all_proxy"):
        for spelling in (name, name.upper()):
            if os.environ.get(spelling) == proxy:
                return spelling
    return f"{urlsplit(url).scheme.upper()}_PROXY"


@frozen
class Cloud:
    """A cloud of Microsoft's: the authority for its logins, and the audience of a CI system's tokens."""

    #: The host of Microsoft Entra ID.
    authority: str
    #: What workload identity federation expects in a token of another issuer.
    audience: str


_PUBLIC = Cloud("login.microsoftonline.com", "api://AzureADTokenExchange")
# Source: the documentation of azure-identity's AzureAuthorityHosts, and of workload identity federation.
CLOUDS = {
    PUBLIC_SUFFIX: _PUBLIC,
    "storage.azure.net": _PUBLIC,
    "core.chinacloudapi.cn": Cloud("login.chinacloudapi.cn", "api://AzureADTokenExchangeChina"),
    "core.usgovcloudapi.net": Cloud("login.microsoftonline.us", "api://AzureADTokenExchangeUSGov"),
}


def is_azures_own(endpoint: str) -> bool:
    """Return whether an endpoint is over https at a host that only Azure Storage answers for, in any cloud."""
    parts = urlsplit(endpoint)
    hosts = tuple(f".{service}.{suffix}" for service in SERVICES for suffix in CLOUDS)
    return parts.scheme == "https" and (parts.hostname or "").endswith(hosts)


def find_cloud(endpoint: str) -> Cloud:
    """Return the cloud an endpoint is in: the public one, unless its host tells another."""
    found = place(endpoint)
    return CLOUDS.get(found.suffix, _PUBLIC) if found else _PUBLIC
