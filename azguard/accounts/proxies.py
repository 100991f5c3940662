"""Which proxy stands between this machine and a URL: none to this machine itself, else what the environment says.

``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` are read as requests reads them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class NamedProxy(NamedTuple):
    """A proxy by ``HOST:PORT``, without the user and the password of its URL, and the variable that names it."""

    address: str
    variable: str


def request_settings(url: str) -> Mapping[str, Any]:
    """Return what requests must be told so that a request to this machine goes past every proxy."""
    return _past_proxies(url.partition("://")[2].partition("/")[0])


def between(url: str) -> NamedProxy | None:
    """Return the proxy that a request to this URL goes through; None if it goes there directly.

    A proxy whose URL is malformed has the address ``?``: the malformed text may hold a password.
    """
    from requests.utils import get_environ_proxies, select_proxy

    if _is_local(url):
        return None
    found = select_proxy(url, get_environ_proxies(url))
    return None if not found else NamedProxy(_address(found), _variable(found, url))


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


@lru_cache(maxsize=256)
def _past_proxies(netloc: str) -> Mapping[str, Any]:
    try:
        host = urlsplit(f"//{netloc}").hostname
    except ValueError:
        return {}
    # Empty texts, not None: requests drops a None, and then reads ALL_PROXY. With ``no_proxy`` it does not look for
    # proxies in the environment, which it reads to the end, twice.
    return {"proxies": {"http": "", "https": "", "no_proxy": host}} if is_loopback(host) else {}


def _is_local(url: str) -> bool:
    return bool(request_settings(url))


def _address(proxy: str) -> str:
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    try:
        parts = parse_url(proxy)
    except LocationParseError:
        return "?"
    if not parts.host:
        return "?"
    return f"{parts.host}:{parts.port}" if parts.port else parts.host


def _variable(proxy: str, url: str) -> str:
    """Return the name of the variable that holds the proxy, as the user spelt it."""
    import os

    for name in (f"{urlsplit(url).scheme}_proxy", "all_proxy"):
        for spelling in (name, name.upper()):
            if os.environ.get(spelling) == proxy:
                return spelling
    return f"{urlsplit(url).scheme.upper()}_PROXY"
