"""Where the SMB server of an account is, and as whom to ask it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from azguard.accounts.account import Account, Auth
from azguard.errors import ConfigError

#: The variable that names another port than SMB's own, as the emulator needs it.
PORT = "AZGUARD_SMB_PORT"
# The only port of SMB on Azure.
_USUAL_PORT = 445
_HIGHEST_PORT = 65535
_PROOFS = {Auth.SAS: "a SAS", Auth.LOGIN: "a login", Auth.ANONYMOUS: "no credential"}


@dataclass(frozen=True)
class SmbPlace:
    """A server, and the account that is known there by its name and key."""

    host: str
    port: int
    account: str
    key: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def find(account: Account, port: int | None, environ: Mapping[str, str]) -> SmbPlace:
    """Return where the file service of an account answers to SMB.

    Raises:
        ConfigError: the caller has no account key, which is all that SMB takes; or the port of the environment is none.
    """
    endpoint = account.endpoint("file")
    if account.auth is not Auth.KEY or not account.secret:
        raise ConfigError(
            f"SMB takes the account key only, and {_PROOFS.get(account.auth, 'no key')} was given",
            reason="smb_needs_key",
        )
    host = urlsplit(endpoint).hostname or ""
    return SmbPlace(host, _read_port(environ) if port is None else port, account.name, account.secret)


def _read_port(environ: Mapping[str, str]) -> int:
    text = environ.get(PORT, "")
    if not text:
        return _USUAL_PORT
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _HIGHEST_PORT:
        return int(text)
    raise ConfigError(f"{PORT} is {text!r}, which is not a port", reason="smb_port_malformed")
