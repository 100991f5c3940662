"""A private Samba in front of the shares: it runs as this user on a port of its own, and ends with this process.

Not guaranteed: that Samba answers as Windows or Azure Files does in everything. SMB snapshots are not served.
"""

import grp
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from azguard.frozen import frozen

_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.005
_GRACE_SECONDS = 5.0
# A free port can be taken by another process before Samba has it; five times in a row it is not chance.
_PORT_TRIES = 5
_LAST_WORDS = 3
_NOT_READ = "Can't load"
# Samba keeps sockets in its folders, whose paths the kernel limits to 108 bytes.
_LONGEST_FOLDER = 40
# The shell that runs smbd removes its folder in the end, also if we are killed. smbd signals its whole process group
# when it ends; the shell survives that. A Samba that never listened keeps its folder for our next try.
# Closing a handle has smbd start another server, which would stay.
_RUN_AND_REMOVE = """
trap : HUP INT TERM
"$@"
[ ! -s "$0/pid/samba-dcerpcd.pid" ] || kill "$(cat "$0/pid/samba-dcerpcd.pid")"
[ ! -e "$0/listens" ] || rm -rf -- "$0"
"""
_LISTENS = "listens"
_ADMINISTRATORS = "S-1-5-32-544"
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


class Samba:
    """A Samba that runs. Its shares are those that were published last."""

    def __init__(self, account: str, key: str, host: str, port: int) -> None:
        """Start it; port 0 takes a free one. ``key`` is the password: the account's key in base64.

        Raises:
            PortTaken: the port is taken.
            Unserved: Samba is not installed, or does not start.
        """
        self.programs = find_programs()
        #: Where a client in this machine finds it.
        self.host = "127.0.0.1" if host == ANY_HOST else host
        base = tempfile.gettempdir()
        self.folder = Path(tempfile.mkdtemp(prefix="azguard-smb-", dir=base if len(base) < _LONGEST_FOLDER else "/tmp"))  # noqa: S108  # mkdtemp's own
        self.config = self.folder / "smb.conf"
        self._listen_host = host
        self._shares: dict[str, Path] = {}
        self._may_close = False
        try:
            self._prepare(account, key)
            self.port, self._process = self._start(port)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def publish(self, shares: Mapping[str, Path]) -> list[str]:
        """Serve these folders under these names; clients of others lose them, with all they have open there.

        Return the names of those that are served no more, or from another folder.
        """
        if shares == self._shares:
            return []
        gone = [name for name, folder in self._shares.items() if shares.get(name) != folder]
        self._shares = dict(shares)
        self._write_config()
        self._control("reload-config")
        for name in gone:
            self._control("close-share", name)
        return gone

    def ask_status(self, *options: str) -> str:
        # smbstatus insists on being root. In a namespace of its own, an ordinary user is.
        prefix = () if os.getuid() == 0 else ("unshare", "--user", "--map-root-user")
        return self._run([*prefix, self.programs.smbstatus, "-s", str(self.config), *options]).stdout

    def allow_closing(self) -> None:
        """Make the account one of those who may close the handles of others: it is once its next session begins."""
        if self._may_close:
            return
        group = grp.getgrgid(os.getgid()).gr_name
        options = (f"sid={_ADMINISTRATORS}", f"unixgroup={group}", "type=builtin", "ntgroup=Administrators")
        self._run([self.programs.net, "-s", str(self.config), "groupmap", "add", *options])
        self._may_close = True

    def stop(self) -> None:
        _stop_process(self._process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self, account: str, key: str) -> None:
        for name in ("private", "lock", "state", "cache", "pid", "ncalrpc"):
            (self.folder / name).mkdir(mode=0o700 if name == "private" else 0o755)
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            raise Unserved(f"Samba needs a user with a name, and user {os.getuid()} has none") from None
        (self.folder / "users").write_text(f"{user} = {account}\n")
        self._write_config()
        command = [self.programs.pdbedit, "-s", str(self.config), "-a", "-t", "-u", user]
        self._run(command, f"{key}\n{key}\n")

    def _start(self, port: int) -> tuple[int, "subprocess.Popen[bytes]"]:
        for _ in range(1 if port else _PORT_TRIES):
            tried = _hold_port(self._listen_host, port)
            found = self._spawn(tried)
            if found is not None:
                return tried, found
        raise Unserved(f"Samba did not start: {self._read_last_words()}")

    def _spawn(self, port: int) -> "subprocess.Popen[bytes] | None":
        """Start smbd and wait until it listens; return None if it ended before."""
        options = ("--foreground", "--no-process-group", "--debug-stdout")
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _RUN_AND_REMOVE,
                    str(self.folder),
                    self.programs.smbd,
                    *options,
                    "-p",
                    str(port),
                    "-s",
                    str(self.config),
                    "-l",
                    str(self.folder),
                ],
                # It ends when this pipe closes, which the system sees to if we are killed.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                # When it ends, it signals its whole process group: ours must not be in it.
                start_new_session=True,
            )
        try:
            if self._await_port(process, port):
                (self.folder / _LISTENS).touch()
                return process
        except BaseException:
            _stop_process(process)
            raise
        _stop_process(process)
        return None

    def _await_port(self, process: "subprocess.Popen[bytes]", port: int) -> bool:
        """Wait until smbd listens; return False if it ended before."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while process.poll() is None:
            with suppress(OSError), socket.create_connection((self.host, port), _WAIT_SECONDS):
                return True
            if time.monotonic() > deadline:
                raise Unserved(f"Samba did not listen within {_WAIT_SECONDS:g} s: {self._read_last_words()}")
            time.sleep(_POLL_SECONDS)  # smbd tells by no signal that its port listens
        return False

    def _write_config(self) -> None:
        write_config(self.config, self._listen_host, self._shares)

    def _control(self, *message: str) -> None:
        self._run([self.programs.smbcontrol, "-s", str(self.config), "all", *message])

    def _run(self, command: list[str], text: str = "") -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=self.folder, check=False)
        # With a config that it cannot read, pdbedit would change that of the system.
        if done.returncode or _NOT_READ in done.stderr:
            said = (done.stderr or done.stdout).strip().splitlines()[-_LAST_WORDS:]
            raise Unserved(f"{Path(command[0]).name} failed: {'; '.join(said)}")
        return done

    def _read_last_words(self) -> str:
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "; ".join(said.splitlines()[-_LAST_WORDS:])

    @property
    def _log(self) -> Path:
        return self.folder / "smbd.log"


def _stop_process(process: "subprocess.Popen[bytes]") -> None:
    """End smbd and what it started."""
    import signal

    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _hold_port(host: str, port: int) -> int:
    """Return a port that is free now: the chosen one, or any for 0."""
    try:
        with socket.create_server((host, port)) as found:
            return int(found.getsockname()[1])
    except OSError as error:
        raise PortTaken(f"port {port}: {error.strerror}") from None


class Unserved(Exception):
    """Samba cannot serve the shares; the message says why."""


class PortTaken(Unserved):
    """The chosen port is taken."""


@frozen
class Programs:
    """Where the programs of Samba are."""

    smbd: str
    pdbedit: str
    smbcontrol: str
    smbstatus: str
    net: str


def find_programs() -> Programs:
    """Return the programs of Samba."""
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
