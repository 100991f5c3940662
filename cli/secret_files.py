"""Secrets as ``@FILE``, so that none need stand in the process list."""

from pathlib import Path

from azguard.errors import ConfigError


def secret(value: str) -> str:
    """Return the value, or what stands in the file for ``@FILE``, without the line end behind it.

    Raises:
        ConfigError: there is no such file, or no text in it.
    """
    if not value.startswith("@"):
        return value
    name = value[1:]
    if not name.strip():
        raise ConfigError("@ names no file", hint="write @FILE, for example @/run/secrets/storage")
    try:
        # A file that was made on Windows may begin with a byte order mark.
        text = Path(name).read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise ConfigError(f"the secret's file {name!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"the secret's file {name!r} is not text") from None
    if not text:
        raise ConfigError(f"the secret's file {name!r} is empty")
    return text
