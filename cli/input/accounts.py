"""Which account a command line means: options, then environment, then the profile, then an error."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azguard.accounts import endpoints
from azguard.accounts.account import (
    Account,
    Auth,
    emulator,
    encrypt_in,
    encrypt_with,
    from_connection_string,
    from_name,
    parse_encryption_key,
    parse_key,
    parse_sas,
)
from azguard.accounts.endpoints import CLOUDS, EMULATOR_NAME, SERVICES, VARIABLES, is_loopback
from azguard.errors import ConfigError, UsageError
from azguard.folders import Folders
from azguard.naming import same_host

_PROOF = ("account-key", "sas-token", "auth-mode")
_SOURCES = ("emulator", "connection-string", "account-name", "profile")
_ENDPOINTS = tuple(f"{service}-endpoint" for service in SERVICES)
# What is known, or accepted, of endpoints; it names no account, and so goes with every source of one.
_ACCEPTED = ("allow-http", "trust-endpoint", "api-version")
_MODES = ("login", "key", "anonymous")
_KNOWN_MODES = "login, key or anonymous"
_SERVICE_ENDPOINT = "AZURE_STORAGE_SERVICE_ENDPOINT"
_TYPED = ("connection-string", "account-name", *_PROOF, "profile", *_ENDPOINTS, "endpoint-suffix")
# A device may never end. The longest secret is a token of a few thousand letters.
_MOST_BYTES = 65536


def choose(shared: Mapping[str, Any], environ: Mapping[str, str], file: Path, local: Callable[[], Account]) -> Account:
    """Return the account; the first source that names one wins, and sources are never mixed silently."""
    return accept_given(_choose(shared, environ, file, local), shared, environ)


def accept_given(account: Account, shared: Mapping[str, Any], environ: Mapping[str, str]) -> Account:
    """Return an account with what options, and then the environment, know or accept of its endpoints."""
    variable = VARIABLES["api-version"]
    if variable in environ:
        account = _accept(account, {"api-version": environ[variable]}, variable)
    return _accept(account, _list_accepted(shared))


def _list_accepted(shared: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of the account's endpoints that were typed, as a profile keeps them."""
    given = {name: shared.get(name.replace("-", "_")) for name in _ACCEPTED}
    return {name: "true" if value is True else str(value) for name, value in given.items() if value}


def _accept(account: Account, settings: Mapping[str, str], where: str = "api-version") -> Account:
    """Return an account with the settings of its endpoints, from options or from a profile."""
    allows, trusts = (settings.get(name, "").lower() == "true" for name in ("allow-http", "trust-endpoint"))
    version = settings.get("api-version")
    if version is not None:
        from azguard.wire.call import check_api_version

        version = check_api_version(version, where)
    return replace(
        account,
        allows_http=account.allows_http or allows,
        trusts_endpoints=account.trusts_endpoints or trusts,
        api_version=version or account.api_version,
    )


def _choose(shared: Mapping[str, Any], environ: Mapping[str, str], file: Path, local: Callable[[], Account]) -> Account:
    given = _add_account_name(options(shared))
    if "profile" in given:
        return _of_profile(file, given["profile"], local)
    if any(source in given for source in _SOURCES):
        return from_settings(_complete(given, environ), local)
    from_environment = _environment(environ)
    if "connection-string" in from_environment and not given:
        return from_connection_string(secret(from_environment["connection-string"]))
    if "account-name" in from_environment:
        return from_settings(_merge_proof(given, from_environment), local)
    if given:
        option = next(iter(given))
        raise UsageError(f"--{option} needs --account-name", hint="or set AZURE_STORAGE_ACCOUNT")
    return _of_profile(file, _profile_name(environ), local)


def list_given(shared: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the values of the options that choose an account, as typed."""
    return tuple(shared.get(name.replace("-", "_")) for name in (*_TYPED, "emulator", *_ACCEPTED))


def find_unencrypted(account: Account) -> str | None:
    """Return the warning of a key or a SAS sent over http to another machine. The emulator's key is no secret."""
    if account.allows_http or account.name == EMULATOR_NAME or account.auth not in (Auth.KEY, Auth.SAS):
        return None
    plain = (each for each in account.endpoints.values() if each.startswith("http:"))
    endpoint = next((each for each in plain if not is_loopback(urlsplit(each).hostname)), None)
    if endpoint is None:
        return None
    what = "use the SAS" if account.auth is Auth.SAS else "repeat signed requests, for 15 minutes"
    return (
        f"{endpoint} is not encrypted: a listener on the network can read and change requests, and {what}; "
        "write https://, or accept that: --allow-http, which azguard profile set keeps"
    )


def find_overruled(shared: Mapping[str, Any], environ: Mapping[str, str], account: Account) -> str | None:
    """Return the warning that the environment names an account, and its connection string, which wins, another account.

    The name that is not used is not shown: it may be a secret in the wrong place.
    """
    text, name = (VARIABLES[each] for each in ("connection-string", "account-name"))
    if options(shared) or text not in environ or environ.get(name, account.name) == account.name:
        return None
    return f"{text} names the account {account.name}, so {name}, which names another, is not used: unset one of them"


def _add_account_name(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with the name of the account, which an endpoint may tell as well."""
    first = next((settings[name] for name in _ENDPOINTS if name in settings), None)
    if first is None or "account-name" in settings or any(source in settings for source in _SOURCES):
        return dict(settings)
    name = endpoints.account_name(endpoints.check(first, "the endpoint"))
    return {**settings, "account-name": name} if name else dict(settings)


def _of_profile(file: Path, name: str | None, local: Callable[[], Account]) -> Account:
    from azguard.accounts import profiles

    profile = profiles.pick(file, name)
    if profile is None:
        raise ConfigError(
            "no storage account is configured",
            hint="export AZURE_STORAGE_CONNECTION_STRING='…', or add --account-name NAME --auth-mode login, "
            "or try it locally: azguard emulator start, then --emulator",
        )
    try:
        return from_settings(profile.settings, local)
    except (UsageError, ConfigError) as error:
        raise error.as_kind(ConfigError, message=f"profile {profile.name!r}: {error.message}") from None


def options(shared: Mapping[str, Any]) -> dict[str, str]:
    """Return the account options as typed."""
    given: dict[str, str] = {}
    for name in _TYPED:
        value = shared.get(name.replace("-", "_"))
        if value is not None:
            given[name] = value
    if shared.get("emulator"):
        given["emulator"] = "true"
    _check_sources(given)
    return given


def _check_sources(given: Mapping[str, str]) -> None:
    """See that one setting alone names the account."""
    sources = [source for source in _SOURCES if source in given]
    if len(sources) > 1:
        raise UsageError(f"--{sources[0]} and --{sources[1]} both name an account", hint="leave one out")
    other = next((name for name in given if name not in sources), None)
    if sources and "account-name" not in given and other is not None:
        raise UsageError(f"--{sources[0]} and --{other} do not go together", hint="leave one out")


def to_keep(shared: Mapping[str, Any]) -> dict[str, str]:
    """Return the account options as a profile keeps them: complete by themselves, files of secrets by full path.

    Raises:
        UsageError: no option names an account, or two contradict each other.
        ConfigError: what they name is malformed.
    """
    given = options(shared)
    if "profile" in given:
        raise UsageError("--profile names a profile, and this writes one", hint="--account-name NAME --auth-mode login")
    if not any(source in _add_account_name(given) for source in _SOURCES):
        raise UsageError("a profile needs an account", hint="--account-name NAME --auth-mode login")
    given |= _list_accepted(shared)
    kept = {key: f"@{Path(value[1:]).absolute()}" if value.startswith("@") else value for key, value in given.items()}
    from_settings(kept, emulator)
    return kept


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, variable in (*VARIABLES.items(), ("service-endpoint", _SERVICE_ENDPOINT)):
        if variable in environ:
            if not environ[variable].strip():
                raise ConfigError(f"{variable} is set but empty", hint=f"set it, or remove it: unset {variable}")
            found[name] = environ[variable]
    if (mode := found.get("auth-mode")) is not None and mode.lower() not in _MODES:
        raise ConfigError(f"{VARIABLES['auth-mode']} {mode!r} is not known", hint=_KNOWN_MODES)
    if (endpoint := found.pop("service-endpoint", None)) is not None:
        found.setdefault(f"{endpoints.service_of(endpoint, _SERVICE_ENDPOINT)}-endpoint", endpoint)
    return found if "connection-string" in found else _add_account_name(found)


def _profile_name(environ: Mapping[str, str]) -> str | None:
    name = environ.get("AZGUARD_PROFILE")
    if name is not None and not name.strip():
        raise ConfigError("AZGUARD_PROFILE is set but empty", hint="set it, or remove it: unset AZGUARD_PROFILE")
    return name


def _complete(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Add the settings of the environment to an account named by options, if both name the same account."""
    if "account-name" not in given:
        return dict(given)
    ambient = {key: value for key, value in _environment(environ).items() if key != "connection-string"}
    ambient = _add_account_name(ambient)
    if ambient.get("account-name", given["account-name"]) != given["account-name"]:
        return dict(given)
    return _merge_proof(given, ambient)


def _merge_proof(given: Mapping[str, str], ambient: Mapping[str, str]) -> dict[str, str]:
    """Return both; credentials of options replace all credentials of the environment."""
    ambient = {name: value for name, value in ambient.items() if name != "connection-string"}
    if any(name in given for name in _PROOF):
        ambient = {name: value for name, value in ambient.items() if name not in _PROOF}
    elif sum(name in ambient for name in ("account-key", "sas-token")) > 1 or (
        ambient.get("auth-mode", "").lower() in ("login", "anonymous")
        and ("account-key" in ambient or "sas-token" in ambient)
    ):
        both = [VARIABLES[name] for name in _PROOF if name in ambient]
        raise ConfigError(f"{' and '.join(both)} contradict each other", hint="unset one of them")
    elif any(name in ambient for name in _PROOF):
        _check_not_elsewhere(given, ambient)
    if any(name in given for name in (*_ENDPOINTS, "endpoint-suffix")):
        ambient = {name: value for name, value in ambient.items() if name not in _ENDPOINTS}
    return {**ambient, **given}


def _check_not_elsewhere(given: Mapping[str, str], ambient: Mapping[str, str]) -> None:
    """See that what proves who is asking, of the environment, is not sent to an endpoint that only an option names."""
    suffix = given.get("endpoint-suffix")
    if suffix is not None and suffix.strip(".").lower() not in CLOUDS:
        raise _elsewhere("endpoint-suffix", ambient)
    own = {service: ambient[f"{service}-endpoint"] for service in SERVICES if f"{service}-endpoint" in ambient}
    name = given.get("account-name", ambient.get("account-name", ""))
    # The emulator's account is in no cloud: only an endpoint of its own says where it is.
    usual = endpoints.complete(name, own, suffix) if own or name != EMULATOR_NAME else {}
    for service in SERVICES:
        typed = given.get(f"{service}-endpoint")
        if typed is not None and same_host(endpoints.check(typed, f"--{service}-endpoint")) != same_host(
            usual.get(service, "")
        ):
            raise _elsewhere(f"{service}-endpoint", ambient)


def _elsewhere(option: str, ambient: Mapping[str, str]) -> UsageError:
    variable = next(VARIABLES[name] for name in _PROOF if name in ambient)
    return UsageError(
        f"--{option} names another place than the environment, so {variable} of the environment is not sent there",
        hint="give the credentials by option: --account-key @FILE, --sas-token @FILE or --auth-mode login",
    )


def from_settings(settings: Mapping[str, str], local: Callable[[], Account]) -> Account:
    """Return the account that settings of a profile, or of options by the same names, describe."""
    accepted = {name: settings[name] for name in _ACCEPTED if name in settings}
    if accepted:
        named = {name: value for name, value in settings.items() if name not in accepted}
        return _accept(from_settings(named, local), accepted)
    if settings.get("emulator", "").lower() == "false":
        settings = {name: value for name, value in settings.items() if name != "emulator"}
    _check_sources(settings)
    if settings.get("emulator", "").lower() == "true":
        return local()
    if "connection-string" in settings:
        return from_connection_string(secret(settings["connection-string"]))
    settings = _add_account_name(settings)
    if "account-name" not in settings:
        raise ConfigError("the profile names no account", hint="give it account-name or connection-string")
    given = {service: settings[f"{service}-endpoint"] for service in SERVICES if f"{service}-endpoint" in settings}
    auth, proof = _proof(settings)
    return from_name(settings["account-name"], auth, proof, given, settings.get("endpoint-suffix"))


def _proof(settings: Mapping[str, str]) -> tuple[Auth, str | None]:
    mode = settings.get("auth-mode", "").lower()
    if mode not in ("", *_MODES):
        raise UsageError(f"--auth-mode {mode!r} is not known", hint=_KNOWN_MODES)
    if mode in ("login", "anonymous"):
        if "account-key" in settings or "sas-token" in settings:
            extra = "account-key" if "account-key" in settings else "sas-token"
            raise UsageError(f"--auth-mode {mode} and --{extra} contradict each other", hint="leave one out")
        return Auth(mode), None
    if "account-key" in settings and "sas-token" in settings:
        raise UsageError("--account-key and --sas-token contradict each other", hint="leave one out")
    if "account-key" in settings:
        return Auth.KEY, parse_key(secret(settings["account-key"]), "the account key")
    if "sas-token" in settings:
        return Auth.SAS, parse_sas(secret(settings["sas-token"]), "the SAS token")
    raise ConfigError(
        f"nothing proves who you are to account {settings['account-name']!r}",
        hint="add --auth-mode login, or --account-key @FILE, or --sas-token @FILE",
    )


def local_emulator(folders: Folders) -> Account:
    """Return the account of the emulator that runs on this machine, or of its usual ports."""
    from azguard.emulators import azurite_process, files_process

    running = azurite_process.load(folders.emulator)
    if running is None:
        return emulator()
    files = files_process.find_running(folders.emulator)
    return emulator({**running.ports, **({} if files is None else {"file": files.port})})


def secret(value: str) -> str:
    """Return the value, or what stands in the file for ``@FILE``, without the line end behind it."""
    if not value.startswith("@"):
        return value
    try:
        # A file that was made on Windows may begin with a byte order mark.
        return _read_secret(value[1:]).decode("utf-8-sig").strip()
    except ValueError:
        raise ConfigError(f"the secret's file {value[1:]!r} is not text") from None


def _read_secret(name: str) -> bytes:
    if not name.strip():
        raise ConfigError("@ names no file", hint="write @FILE, for example @/run/secrets/storage")
    try:
        with open(name, "rb") as file:
            found = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the secret's file {name!r} cannot be read: {error.strerror}") from None
    if len(found) > _MOST_BYTES:
        raise ConfigError(f"the secret's file {name!r} is longer than {_MOST_BYTES:,} bytes")
    if not found.strip():
        raise ConfigError(f"the secret's file {name!r} is empty")
    return found


def find_encryption(shared: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return how blobs are to be encrypted, as an account keeps it; empty where that is not said.

    Raises:
        ConfigError: the key is none, or cannot be read.
    """
    if (scope := shared.get("encryption_scope")) is not None:
        return encrypt_in(scope)
    where, value = "--encryption-key", shared.get("encryption_key")
    if value is None:
        where, value = endpoints.ENCRYPTION_VARIABLE, environ.get(endpoints.ENCRYPTION_VARIABLE)
    return read_encryption_key(where, value)


def read_encryption_key(where: str, value: str | None) -> dict[str, dict[str, str]]:
    """Return the key that a text is or whose file it names, as an account keeps it; empty for none.

    Raises:
        ConfigError: the key is malformed, or cannot be read.
    """
    if value is None:
        return {}
    if not value.strip():
        raise ConfigError(f"{where} is set but empty", hint=f"set it, or remove it: unset {where}")
    is_file = value.startswith("@")
    key = _read_secret(value[1:]) if is_file else value.encode("utf-8", "surrogateescape")
    return encrypt_with(parse_encryption_key(key, where, is_file=is_file))
