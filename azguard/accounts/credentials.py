"""What names an account and proves the caller's identity, as text → an account.

Messages name the part that is wrong, never the secret.
"""

from collections.abc import Mapping

from azguard.accounts import endpoints
from azguard.accounts.account import Account, Auth, emulator
from azguard.accounts.well_known import EMULATOR_KEY, EMULATOR_NAME, EMULATOR_PORTS, SERVICES
from azguard.errors import ConfigError

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
    """Return the emulator's account, on the host that DevelopmentStorageProxyUri may name.

    Raises:
        ConfigError: another account is named, too.
    """
    if parts.get("accountname", EMULATOR_NAME) != EMULATOR_NAME:
        raise ConfigError(
            "the connection string names the emulator, by UseDevelopmentStorage, and another account, by AccountName",
            reason="connection_string_of_two",
        )
    proxy = parts.get("developmentstorageproxyuri")
    if not proxy:
        return emulator()
    base = endpoints.check(proxy, "DevelopmentStorageProxyUri")
    found = {service: f"{base}:{port}/{EMULATOR_NAME}" for service, port in EMULATOR_PORTS.items()}
    return Account(EMULATOR_NAME, found, Auth.KEY, EMULATOR_KEY)


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
    import base64

    try:
        if base64.b64decode(key, validate=True):
            return key
    except ValueError:  # binascii.Error is one, too; a letter outside ASCII raises the plain one
        pass
    raise ConfigError(f"{where} is not base64", reason="key_not_base64")


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
            raise ConfigError(
                "the connection string has a part without '='",
                reason="connection_string_cut",
            )
        name = key.strip().lower()
        if parts.setdefault(name, value.strip()) != value.strip():
            raise ConfigError(f"the connection string has {key.strip()} twice", reason="connection_string_of_two")
    if not parts:
        raise ConfigError("the connection string is empty")
    return parts


def _missing(part: str) -> ConfigError:
    return ConfigError(
        f"the connection string has no {part}",
        reason="connection_string_incomplete",
    )
