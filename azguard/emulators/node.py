"""A Node.js program that ends when we end."""

import os
from collections.abc import Mapping
from pathlib import Path

from azguard.errors import ConfigError


def check_system(system: str = os.name) -> None:
    """Refuse a system on which the emulator is not started.

    Raises:
        ConfigError: it is Windows.
    """
    if system == "nt":
        raise ConfigError(
            "azguard starts the emulator on Linux and macOS only",
            reason="emulator_on_windows",
        )


def tie_to_us(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a Node.js program ends by itself once its standard input closes.

    With a pipe of ours as that input, it ends when we do, ``kill -9`` included; a byte written to the pipe
    sets it free.
    """
    import json

    # JSON quotes a path the way Node.js reads one in NODE_OPTIONS.
    guard = json.dumps(str(Path(__file__).with_name("guard.js")), ensure_ascii=False)
    return {**environ, "NODE_OPTIONS": f"{environ.get('NODE_OPTIONS', '')} --require {guard}".strip()}
