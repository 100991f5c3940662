"""Named accounts in the user's configuration file.

::

    default = "prod"

    [profiles.prod]
    account-name = "contoso"
    auth-mode = "login"

    [profiles.build]
    connection-string = "@/run/secrets/storage"
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from azguard import columns
from azguard.accounts.endpoints import SECRETS
from azguard.atomic_files import write_atomically
from azguard.columns import Column
from azguard.errors import ConfigError
from azguard.folders import explain_unwritable, make_folder
from azguard.frozen import frozen
from azguard.processes import locked_file

KEYS = ("connection-string", "account-name", "account-key", "sas-token", "auth-mode", "emulator",
        "blob-endpoint", "queue-endpoint", "table-endpoint", "file-endpoint", "endpoint-suffix",
        "allow-http", "trust-endpoint", "api-version")  # fmt: skip

# Another process changes the file for milliseconds, unless it was stopped.
_BUSY_SECONDS = 10.0


class ShownProfile(dict[str, object]):
    """A profile as commands show it: by the names of its settings, in snake_case as all results."""

    COLUMNS: ClassVar = (
        columns.NAME,
        Column(name="default", usual=False, rank=14),
        Column(name="account_name", title="account", rank=13),
        Column(name="auth_mode", title="auth mode", rank=12),
        Column(name="emulator", rank=11),
        Column(name="blob_endpoint", title="blob endpoint", rank=10),
        Column(name="connection_string", title="connection string", rank=9),
    )


@frozen
class Profile:
    """One named account."""

    name: str
    #: By the names in ``KEYS``. They may hold secrets; ``shown`` does not.
    settings: Mapping[str, str]
    default: bool

    @property
    def shown(self) -> ShownProfile:
        """Return its name and its settings, with every secret replaced by where it comes from."""
        settings = {
            key.replace("-", "_"): value if key not in SECRETS or value.startswith("@") else "(in the file)"
            for key, value in self.settings.items()
        }
        return ShownProfile({"name": self.name, "default": self.default, **settings})


def load(file: Path) -> dict[str, Profile]:
    """Read every profile; no file is no profiles.

    Raises:
        ConfigError: the file is not TOML or not of the shape above.
    """
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}", reason="profiles_not_toml") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    unknown = sorted(set(document) - {"default", "profiles"})
    if unknown:
        raise ConfigError(f"{file} has an unknown setting {unknown[0]!r}", reason="config_setting_unknown")
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict):
        raise ConfigError(f"{file}: profiles is not a table", reason="profiles_not_a_table")
    default = document.get("default")
    if default is not None and (not isinstance(default, str) or default not in profiles):
        raise ConfigError(f"{file}: the default profile {default!r} is not among its profiles")
    return {
        name: _require_valid(file, name, settings, is_default=name == default) for name, settings in profiles.items()
    }


def pick(file: Path, name: str | None) -> Profile | None:
    """Return the named profile, or the default one, or None where there is none.

    Raises:
        ConfigError: there is no profile of that name.
    """
    profiles = load(file)
    if name is None:
        return next((profile for profile in profiles.values() if profile.default), None)
    if name not in profiles:
        known = ", ".join(profiles) or "none yet"
        raise ConfigError(
            f"there is no profile {name!r} in {file} (there are: {known})",
            reason="profile_missing",
            values={"name": name},
        )
    return profiles[name]


def put(file: Path, name: str, settings: Mapping[str, str], *, default: bool) -> Profile:
    """Write one profile, and keep the others; of several processes, one at a time.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    with _hold_lock(file):
        known = load(file)
        made = Profile(name, settings, default or (name in known and known[name].default))
        others = {each: replace(profile, default=profile.default and not default) for each, profile in known.items()}
        _save(file, {**others, name: made})
    return made


def delete(file: Path, name: str) -> Profile | None:
    """Delete one profile, and return it; None if there is none of that name.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    if name not in load(file):
        return None
    with _hold_lock(file):
        known = load(file)
        found = known.pop(name, None)
        if found is not None:
            _save(file, known)
    return found


@contextmanager
def _hold_lock(file: Path) -> Iterator[None]:
    """Keep other processes from changing the file; a system without locks keeps none away."""
    with ExitStack() as stack:
        with explain_unwritable(file):
            make_folder(file.parent)
            if locked_file.IS_SUPPORTED:
                stack.enter_context(locked_file.hold(file.with_name(f"{file.name}.lock"), _BUSY_SECONDS))
        yield


def _save(file: Path, profiles: Mapping[str, Profile]) -> None:
    """Write the file whole, readable by its owner only."""
    import tomli_w

    document: dict[str, object] = {}
    for profile in profiles.values():
        if profile.default:
            document["default"] = profile.name
    document["profiles"] = {profile.name: dict(profile.settings) for profile in profiles.values()}
    with explain_unwritable(file):
        write_atomically(file, tomli_w.dumps(document).encode(), 0o600)


def _require_valid(file: Path, name: str, settings: object, *, is_default: bool) -> Profile:
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ConfigError(f"{file}: profile {name!r} must hold only text values")
    unknown = sorted(set(settings) - set(KEYS))
    if unknown:
        raise ConfigError(
            f"{file}: profile {name!r} has an unknown setting {unknown[0]!r}",
            reason="profile_setting_unknown",
            values={"known": ", ".join(KEYS)},
        )
    if empty := next((key for key, value in settings.items() if not value.strip()), None):
        raise ConfigError(f"{file}: profile {name!r} has an empty {empty}")
    return Profile(name, settings, is_default)
