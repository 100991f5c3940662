"""What proves the caller's identity to a service: the signature of a key, a SAS, or the token of a login.

Source: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

import base64
import hmac
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from azguard.accounts.account import Account, Auth
from azguard.accounts.endpoints import STORAGE_SCOPE, find_cloud, is_azures_own
from azguard.times import http_date

if TYPE_CHECKING:
    from azguard.wire.logins import Login

# The headers that a signature covers by their place, after the verb; the service ignores Date beside x-ms-date.
_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
#: The service accepts a request that is signed with a key if its date is at most so far from the service's clock.
CLOCK_SKEW = timedelta(minutes=15)
_SIGNED_OF_TABLES = ("content-md5", "content-type", "x-ms-date")


def prove(account: Account, service: str, method: str, url: str, headers: dict[str, str]) -> str:
    """Add to a request what proves the caller's identity, and return its URL, which may hold a part of that.

    Raises:
        LoginFailed: no token could be had.
    """
    headers["x-ms-date"] = _format_date(int(time.time()))
    if account.auth is Auth.SAS:
        return f"{url}{'&' if '?' in url else '?'}{(account.secret or '').lstrip('?')}"
    if account.auth is Auth.KEY:
        signature = sign(account.name, account.secret or "", service, method, url, headers)
        headers["Authorization"] = f"SharedKey {account.name}:{signature}"
    elif account.auth is Auth.LOGIN:
        token = find_login(account).get_token_info(STORAGE_SCOPE)
        headers["Authorization"] = f"Bearer {token.token}"
    return url


def answer_challenge(account: Account, asked: str | None, headers: dict[str, str]) -> bool:
    """Replace the token of a login by the one that a service asks for; return whether it says which.

    ``asked`` is its header ``WWW-Authenticate``.

    Raises:
        LoginFailed: that token could not be had, or is not for storage.
    """
    scheme, _, rest = (asked or "").strip().partition(" ")
    parts = (each.partition("=") for each in re.split("[, ]+", rest))
    named = {name: value.strip('"') for name, _, value in parts}
    tenant = urlsplit(named.get("authorization_uri", "")).path.strip("/").partition("/")[0]
    if scheme.lower() != "bearer" or not tenant or not named.get("resource_id"):
        return False
    scope = f"{named['resource_id']}/.default"
    token = find_login(account).get_token_info(scope, options={"tenant_id": tenant})
    headers["Authorization"] = f"Bearer {token.token}"
    return True


def sign(account: str, key: str, service: str, method: str, url: str, headers: Mapping[str, str]) -> str:
    """Return the signature of a request with the key of an account."""
    found = {name.lower(): value for name, value in headers.items()}
    if found.get("content-length") == "0":
        del found["content-length"]
    place, _, parameters = url.partition("://")[2].partition("?")
    query = sorted((name.lower(), value) for name, value in parse_qsl(parameters, keep_blank_values=True))
    by_place = "\n".join(found.get(name, "") for name in (_SIGNED_OF_TABLES if service == "table" else _SIGNED))
    if service == "table":
        by_name = ""
        asked = "".join(f"?comp={value}" for name, value in query if name == "comp")
    else:
        names = sorted((name for name in found if name.startswith("x-ms-")), key=_order)
        by_name = "".join(f"{name}:{found[name]}\n" for name in names)
        asked = "".join(f"\n{name}:{value}" for name, value in query)
    _, slash, path = place.partition("/")
    text = f"{method}\n{by_place}\n{by_name}/{account}{slash}{path}{asked}"
    return base64.b64encode(hmac.digest(_decode(key), text.encode(), "sha256")).decode()


def find_login(account: Account) -> "Login":
    """Return the login of an account; one for all requests, so that they share its tokens."""
    login = account.keep("login", lambda: _make_login(account))
    tell_end = account.shared.pop("tell_end", None)
    if tell_end is not None:
        login.tell_end = tell_end
    return login


def _make_login(account: Account) -> "Login":
    from azguard.wire import logins

    cloud = find_cloud(next(iter(account.endpoints.values()), ""))
    login = logins.choose(os.environ, cloud, account.shared.get("login_seconds"))
    if not account.trusts_endpoints:
        foreign = (each for each in account.endpoints.values() if not is_azures_own(each))
        login.foreign_endpoint = next(foreign, None)
    return login


@lru_cache(maxsize=256)
def _order(name: str) -> tuple[str, str]:
    """Return the place of a header among others, as the service orders them: without hyphens, underscores first."""
    return name.replace("-", "").replace("_", "!"), name


@lru_cache(maxsize=8)
def _decode(key: str) -> bytes:
    return base64.b64decode(key)


@lru_cache(maxsize=8)
def _format_date(second: int) -> str:
    return http_date(datetime.fromtimestamp(second, UTC))
