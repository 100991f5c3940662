"""What names an account and proves who is asking, as text → an account.

Messages name the part that is wrong, never the secret.
"""

from collections.abc import Mapping

from azguard.account import EMULATOR_KEY, EMULATOR_NAME, EMULATOR_PORTS, SERVICES, Account, Auth, emulator
from azguard.address import base_of
from azguard.errors import ConfigError


def from_connection_string(text: str) -> Account:
    """Read a connection string, ``UseDevelopmentStorage=true`` included.

    Raises:
        ConfigError: a part is missing or malformed; the message names the part, never the secret.
    """
    parts = _split_connection_string(text)
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return _development(parts)
    name = parts.get("accountname", "")
    endpoints = _endpoints(parts, name)
    if not endpoints:
        raise _missing("AccountName or a BlobEndpoint")
    name = name or _name_of(next(iter(endpoints.values())))
    # The order of the SDK: a key before a signature.
    if parts.get("accountkey"):
        if not parts.get("accountname"):
            raise _missing("AccountName")
        return Account(name, endpoints, Auth.KEY, checked_key(parts["accountkey"], "AccountKey"))
    if sas := parts.get("sharedaccesssignature"):
        return Account(name, endpoints, Auth.SAS, checked_sas(sas, "SharedAccessSignature"))
    raise _missing("AccountKey (or SharedAccessSignature)")


def _endpoints(parts: Mapping[str, str], name: str) -> dict[str, str]:
    protocol = parts.get("defaultendpointsprotocol", "https")
    suffix = parts.get("endpointsuffix", "core.windows.net")
    if protocol not in ("http", "https"):
        raise ConfigError("DefaultEndpointsProtocol is neither http nor https")
    given = {service: parts[f"{service}endpoint"] for service in SERVICES if parts.get(f"{service}endpoint")}
    if given:
        return {service: _checked_endpoint(url, f"{service.title()}Endpoint") for service, url in given.items()}
    if not name:
        return {}
    return {
        service: _checked_endpoint(f"{protocol}://{_checked_name(name)}.{service}.{suffix}", "EndpointSuffix")
        for service in SERVICES
    }


def _development(parts: Mapping[str, str]) -> Account:
    """Return the emulator's account, on the host that DevelopmentStorageProxyUri may name."""
    proxy = parts.get("developmentstorageproxyuri")
    if not proxy:
        return emulator()
    base = _checked_endpoint(proxy, "DevelopmentStorageProxyUri")
    endpoints = {service: f"{base}:{port}/{EMULATOR_NAME}" for service, port in EMULATOR_PORTS.items()}
    return Account(EMULATOR_NAME, endpoints, Auth.KEY, EMULATOR_KEY)


def from_name(name: str, auth: Auth, secret: str | None, endpoints: Mapping[str, str] | None = None) -> Account:
    """Return an account of the public cloud by its name; ``endpoints`` replaces the usual ones.

    Raises:
        ConfigError: the name or an endpoint is malformed.
    """
    known = {service: f"https://{_checked_name(name)}.{service}.core.windows.net" for service in SERVICES}
    given = {service: _checked_endpoint(url, f"the {service} endpoint") for service, url in (endpoints or {}).items()}
    return Account(name, {**known, **given}, auth, secret)


def _checked_name(name: str) -> str:
    import re

    if not re.fullmatch(r"[a-z0-9]{3,24}", name):
        raise ConfigError(f"{name!r} is not a storage account name", hint="3 to 24 lower-case letters and digits")
    return name


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


def checked_sas(sas: str, where: str) -> str:
    """Return the shared access signature without its question mark.

    Raises:
        ConfigError: it is none; the message does not show it.
    """
    pairs = sas.lstrip("?").split("&")
    if any(pair.startswith("sig=") and len(pair) > len("sig=") for pair in pairs):
        return sas.lstrip("?")
    raise ConfigError(
        f"{where} holds no signature (sig=…)", hint="quote it in the shell: an & in it ends the command otherwise"
    )


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
    """Return an endpoint in its one spelling; a query, which may be a SAS, is no part of it."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        base = base_of(parts)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in url):
        raise ConfigError(f"{where} is not a URL", hint="write it as https://NAME.blob.core.windows.net")
    return base + parts.path.rstrip("/")


def _name_of(endpoint: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(endpoint)
    return parts.path.strip("/") or (parts.hostname or "").split(".")[0]
