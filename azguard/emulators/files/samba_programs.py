"""The programs of Samba, and its config."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Every address of this machine.
ANY_HOST = "0.0.0.0"  # noqa: S104  # compared, not listened on
_NOT_INSTALLED = "Samba is not installed: install the packages samba and samba-common-bin"
_NO_CLIENT = "smbprotocol is not installed: install azguard with its extra emulator"
# On Debian they are not on the PATH of an ordinary user. Homebrew renames smbd, since macOS has another one.
_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin", "/opt/homebrew/bin")
_SERVERS = ("samba-dot-org-smbd", "smbd")

_GLOBAL = """\
[global]
server role = standalone
workgroup = AZURE
{interfaces}
disable netbios = yes
private dir = {folder}/private
lock directory = {folder}/lock
state directory = {folder}/state
cache directory = {folder}/cache
pid directory = {folder}/pid
ncalrpc dir = {folder}/ncalrpc
usershare path =
passdb backend = tdbsam
username map = {folder}/users
map to guest = never
server min protocol = SMB3_11
server smb encrypt = required
# A client that is gone loses its locks at once.
durable handles = no
# Locks and share modes are Samba's own; the emulator asks for each file through Samba.
kernel oplocks = no
posix locking = no
strict locking = yes
host msdfs = no
# A link that another program made would lead out of the share.
follow symlinks = no
load printers = no
printcap name = /dev/null
disable spoolss = yes
# Attributes are the emulator's; modes of the disk are no attributes.
store dos attributes = no
map archive = no
map readonly = no
hide dot files = no
mangled names = no
create mask = 0600
directory mask = 0700
read only = no
"""


class Unserved(Exception):
    """Samba cannot serve the shares; the message says why."""


class PortTaken(Unserved):
    """The chosen port is taken."""


@dataclass(frozen=True)
class Programs:
    """Where the programs of Samba are."""

    smbd: str
    pdbedit: str
    smbcontrol: str
    smbstatus: str
    net: str


def find_programs() -> Programs:
    """Return the programs of Samba.

    Raises:
        Unserved: Samba is not installed, or the library with which the emulator talks to it.
    """
    if importlib.util.find_spec("smbprotocol") is None:
        raise Unserved(_NO_CLIENT)
    folders = os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS])
    found = {name: shutil.which(name, path=folders) for name in ("pdbedit", "smbcontrol", "smbstatus", "net")}
    servers = [each for name in _SERVERS if (each := shutil.which(name, path=folders))]
    smbd = next((each for each in servers if _is_samba(each)), None)
    if smbd is None or not all(found.values()):
        raise Unserved(_NOT_INSTALLED)
    return Programs(smbd, **{name: each for name, each in found.items() if each})


def write_config(config: Path, host: str, shares: Mapping[str, Path]) -> None:
    """Write the config of a Samba that keeps its state in the folder of the config.

    ``host`` is the address to listen on; ``shares`` are the folders to serve, by name.
    """
    sections = "".join(f"[{name}]\npath = {folder}\n" for name, folder in sorted(shares.items()))
    interfaces = "" if host == ANY_HOST else f"interfaces = {host}\nbind interfaces only = yes"
    new = config.with_suffix(".new")
    new.write_text(_GLOBAL.format(folder=config.parent, interfaces=interfaces) + sections)
    new.replace(config)


def _is_samba(program: str) -> bool:
    """Return whether a program is Samba's smbd, and not the one of macOS."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return said.startswith("Version ")
