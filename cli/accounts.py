"""Which account a command line means: options, then environment, then the profile, then an error."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from azguard import credentials, profiles
from azguard.account import SERVICES, Account, Auth, emulator
from azguard.errors import ConfigError, UsageError

_FROM_ENVIRONMENT = {
    "connection-string": "AZURE_STORAGE_CONNECTION_STRING",
    "account-name": "AZURE_STORAGE_ACCOUNT",
    "account-key": "AZURE_STORAGE_KEY",
    "sas-token": "AZURE_STORAGE_SAS_TOKEN",
    "auth-mode": "AZURE_STORAGE_AUTH_MODE",
    **{f"{service}-endpoint": f"AZURE_STORAGE_{service.upper()}_ENDPOINT" for service in SERVICES},
}
_PROOF = ("account-key", "sas-token", "auth-mode")
_SOURCES = ("emulator", "connection-string", "account-name", "profile")
_NOTHING = ConfigError(
    "no storage account is configured",
    hint="export AZURE_STORAGE_CONNECTION_STRING='…', or add --account-name NAME --auth-mode login, "
    "or try it locally: azguard emulator start, then --emulator",
)


def choose(shared: Mapping[str, Any], environ: Mapping[str, str], file: Path, local: Callable[[], Account]) -> Account:
    """Return the account; the first source that names one wins, and sources are never mixed silently.

    Raises:
        UsageError: an option is empty, or two options contradict each other.
        ConfigError: no source names an account, or the one that does is malformed.
    """
    given = options(shared)
    if "profile" in given:
        return _of_profile(profiles.pick(file, given["profile"]), local)
    if any(source in given for source in _SOURCES):
        return from_settings(_completed(given, environ), local)
    from_environment = _environment(environ)
    if "connection-string" in from_environment and not given:
        return credentials.from_connection_string(_secret(from_environment["connection-string"]))
    if "account-name" in from_environment:
        ambient = {key: value for key, value in from_environment.items() if key != "connection-string"}
        return from_settings(_proved(given, ambient), local)
    if given:
        option = next(iter(given))
        raise UsageError(f"--{option} needs --account-name", hint="or set AZURE_STORAGE_ACCOUNT")
    return _of_profile(profiles.pick(file, _profile_name(environ)), local)


def _of_profile(profile: profiles.Profile | None, local: Callable[[], Account]) -> Account:
    if profile is None:
        raise _NOTHING
    try:
        return from_settings(profile.settings, local)
    except (UsageError, ConfigError) as error:
        raise ConfigError(f"profile {profile.name!r}: {error.message}", hint=error.hint) from None


def options(shared: Mapping[str, Any]) -> dict[str, str]:
    """Return the account options as typed.

    Raises:
        UsageError: an option is empty, or two options contradict each other.
    """
    given: dict[str, str] = {}
    for name in ("connection-string", "account-name", "account-key", "sas-token", "auth-mode", "profile"):
        value = shared.get(name.replace("-", "_"))
        if value is not None and not value.strip():
            raise UsageError(
                f"--{name} is empty",
                hint="an unset shell variable looks like this; leave the option out or set it",
            )
        if value is not None:
            given[name] = value
    if shared.get("emulator"):
        given["emulator"] = "true"
    sources = [source for source in _SOURCES if source in given]
    if len(sources) > 1:
        raise UsageError(f"--{sources[0]} and --{sources[1]} both name an account", hint="leave one out")
    if "account-name" not in given and sources and set(given) - set(sources):
        other = next(iter(set(given) - set(sources)))
        raise UsageError(f"--{sources[0]} and --{other} do not go together", hint="leave one out")
    return given


def to_keep(shared: Mapping[str, Any]) -> dict[str, str]:
    """Return the account options as a profile keeps them: complete by themselves, files of secrets by full path.

    Raises:
        UsageError: no option names an account, or two contradict each other.
        ConfigError: what they name is malformed.
    """
    given = options(shared)
    if "profile" in given:
        raise UsageError("--profile names a profile, and this writes one", hint="--account-name NAME --auth-mode login")
    if not any(source in given for source in _SOURCES):
        raise UsageError("a profile needs an account", hint="--account-name NAME --auth-mode login")
    kept = {key: f"@{Path(value[1:]).absolute()}" if value.startswith("@") else value for key, value in given.items()}
    from_settings(kept, emulator)
    return kept


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, variable in _FROM_ENVIRONMENT.items():
        if variable in environ:
            if not environ[variable].strip():
                raise ConfigError(f"{variable} is set but empty", hint=f"set it, or remove it: unset {variable}")
            found[name] = environ[variable]
    return found


def _profile_name(environ: Mapping[str, str]) -> str | None:
    name = environ.get("AZGUARD_PROFILE")
    if name is not None and not name.strip():
        raise ConfigError("AZGUARD_PROFILE is set but empty", hint="set it, or remove it: unset AZGUARD_PROFILE")
    return name


def _completed(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Add to ``--account-name`` what the environment knows of that account; nothing to any other source."""
    if "account-name" not in given:
        return dict(given)
    ambient = _environment(environ)
    if ambient.get("account-name", given["account-name"]) != given["account-name"]:
        return dict(given)
    return _proved(given, {key: value for key, value in ambient.items() if key != "connection-string"})


def _proved(given: Mapping[str, str], ambient: Mapping[str, str]) -> dict[str, str]:
    """Return both; who the options say is asking replaces whatever the environment says about that."""
    if any(name in given for name in _PROOF):
        ambient = {name: value for name, value in ambient.items() if name not in _PROOF}
    elif sum(name in ambient for name in ("account-key", "sas-token")) > 1 or (
        ambient.get("auth-mode", "").lower() in ("login", "anonymous")
        and ("account-key" in ambient or "sas-token" in ambient)
    ):
        both = [_FROM_ENVIRONMENT[name] for name in _PROOF if name in ambient]
        raise ConfigError(f"{' and '.join(both)} contradict each other", hint="unset what is not meant")
    return {**ambient, **given}


def from_settings(settings: Mapping[str, str], local: Callable[[], Account]) -> Account:
    """Return the account that settings of a profile, or of options by the same names, describe.

    Raises:
        UsageError: two settings contradict each other.
        ConfigError: a setting is missing or malformed.
    """
    if settings.get("emulator", "").lower() == "true":
        return local()
    if "connection-string" in settings:
        return credentials.from_connection_string(_secret(settings["connection-string"]))
    if "account-name" not in settings:
        raise ConfigError("the profile names no account", hint="give it account-name or connection-string")
    endpoints = {service: settings[f"{service}-endpoint"] for service in SERVICES if f"{service}-endpoint" in settings}
    auth, secret = _proof(settings)
    return credentials.from_name(settings["account-name"], auth, secret, endpoints)


def _proof(settings: Mapping[str, str]) -> tuple[Auth, str | None]:
    mode = settings.get("auth-mode", "").lower()
    if mode not in ("", "login", "key", "anonymous"):
        raise UsageError(f"--auth-mode {mode!r} is not known", hint="login, key or anonymous")
    if mode in ("login", "anonymous"):
        if "account-key" in settings or "sas-token" in settings:
            extra = "account-key" if "account-key" in settings else "sas-token"
            raise UsageError(f"--auth-mode {mode} and --{extra} contradict each other", hint="leave one out")
        return Auth(mode), None
    if "account-key" in settings and "sas-token" in settings:
        raise UsageError("--account-key and --sas-token contradict each other", hint="leave one out")
    if "account-key" in settings:
        return Auth.KEY, credentials.checked_key(_secret(settings["account-key"]), "the account key")
    if "sas-token" in settings:
        return Auth.SAS, credentials.checked_sas(_secret(settings["sas-token"]), "the SAS token")
    raise ConfigError(
        f"nothing proves who you are to account {settings['account-name']!r}",
        hint="add --auth-mode login, or --account-key @FILE, or --sas-token @FILE",
    )


def _secret(value: str) -> str:
    """Return the value, or what stands in the file for ``@FILE``."""
    if not value.startswith("@"):
        return value
    try:
        text = Path(value[1:]).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"the secret's file {value[1:]!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the secret's file {value[1:]!r} is not text") from None
    if not text:
        raise ConfigError(f"the secret's file {value[1:]!r} is empty")
    return text
