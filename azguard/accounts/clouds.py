"""The clouds of Microsoft's, and what a login needs to know of each."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from azguard.accounts.endpoints import PUBLIC_SUFFIX, place
from azguard.accounts.well_known import SERVICES


@dataclass(frozen=True)
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


def cloud(endpoint: str) -> Cloud:
    """Return the cloud an endpoint is in: the public one, unless its host tells another."""
    found = place(endpoint)
    return CLOUDS.get(found.suffix, _PUBLIC) if found else _PUBLIC
