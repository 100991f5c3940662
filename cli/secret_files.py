"""Secrets as ``@FILE``, so that none need stand in the process list."""

from azguard.errors import ConfigError

# A device may never end. The longest secret is a token of a few thousand letters.
_MOST_LETTERS = 65536


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
        with open(name, encoding="utf-8-sig") as file:
            text = file.read(_MOST_LETTERS + 1).strip()
    except OSError as error:
        raise ConfigError(f"the secret's file {name!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"the secret's file {name!r} is not text") from None
    if len(text) > _MOST_LETTERS:
        raise ConfigError(f"the secret's file {name!r} is longer than {_MOST_LETTERS:,} letters")
    if not text:
        raise ConfigError(f"the secret's file {name!r} is empty")
    return text
