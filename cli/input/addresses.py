"""Which blob, snapshot, file, tree or lock an address on the command line names."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import argument
from azguard.errors import ConfigError, UsageError
from azguard.guards.resolve import Conditions
from azguard.naming import same_host

if TYPE_CHECKING:
    from azguard.blobs.trees import BlobTree
    from azguard.files.guarding import Guarding
    from azguard.files.trees import FileTree


Share = Annotated[str, argument("SHARE", "The share, or its URL.", completer=completers.shares)]
Directory = Annotated[str, argument("SHARE/PATH", "The directory, or its URL.", completer=completers.files)]
File = Annotated[str, argument("SHARE/PATH", "The file, or its URL.", completer=completers.files)]
Folder = Annotated[
    str,
    argument("SHARE[/PATH]", "The share or directory, or its URL.", completer=completers.files),
]
Path = Annotated[
    str,
    argument("SHARE[/PATH]", "The file, directory or share, or its URL.", completer=completers.files),
]
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://"
_SNAPSHOT = "?snapshot="
_WHICH = ("snapshot=", "versionid=")
_NEWEST = ("snapshot", "version")
Lock = Annotated[
    str,
    argument(
        "ADDRESS",
        "The lock, e.g. deploy-prod (which is blob:locks/deploy-prod), blob:site/state or table:Orders.",
        completer=completers.locks,
    ),
]
#: What else than a blob is a lock of a run: its own lease.
FILES = (Kind.SHARE, Kind.FILE)


def locate_folder(env: Environment, text: str, *, writable: bool = False) -> Target:
    """Return the directory, or the share whose root, a command looks into; ``writable`` refuses a snapshot.

    Raises:
        UsageError: the address is malformed, or names something else.
    """
    return _locate(env, text, Kind.DIR, writable=writable)


def locate_path(env: Environment, text: str) -> Target:
    """Return the file, directory or share that an address names; without a prefix, a path is that of a file.

    Raises:
        UsageError: the address is malformed, or names something else.
    """
    return _locate(env, text, Kind.DIR if text.startswith(f"{Kind.DIR}:") else Kind.FILE)


def _is_share_url(env: Environment, text: str) -> bool:
    """Return whether a URL has no path in its share; one that tells no service is read as that of a container."""
    return env.location(text).address.kind in (Kind.SHARE, Kind.CONTAINER)


def _locate(env: Environment, text: str, inside: Kind, *, writable: bool = False) -> Target:
    if re.match(_URL, text):
        return env.locate(text, Kind.SHARE if _is_share_url(env, text) else inside, writable=writable)
    prefix, colon, _ = text.partition("?")[0].partition(":")
    is_share = prefix == Kind.SHARE if colon else "/" not in prefix
    return env.locate(text, Kind.SHARE if is_share else inside, writable=writable)


def guarding(env: Environment) -> "Guarding":
    """Return where the lease of a guarded write is recorded, and who takes it."""
    from azguard.cli.options import leases
    from azguard.files.guarding import Guarding
    from azguard.leases.process_leases import ProcessLeases
    from azguard.processes.locked_file import ProcessNotes

    owner = leases.this_process(env, f"azguard {env.command}")
    return Guarding(
        records=env.lease_records,
        owner=owner,
        processes=ProcessLeases(env.folders.process_leases),
        temporary=ProcessNotes(env.folders.process_files),
    )


def record_written(env: Environment, target: Target, conditions: Conditions, done: Any) -> None:
    """Record the version that was written, if the rest of the file is known here."""
    if conditions.expected_etag is not None:
        env.reads.record(target, done)


def blob_tree(env: Environment, text: str, **settings: Any) -> "BlobTree":
    """Return the blobs under an address: a container, or a prefix in it, with or without a slash at its end.

    Raises:
        UsageError: it names something else.
    """
    from azguard.blobs.trees import BlobTree

    _check_end(text)
    is_url = "://" in text
    plain = text if is_url else text.rstrip("/").removeprefix("blob:").removeprefix("container:")
    kind = Kind.BLOB if "/" in plain else Kind.CONTAINER
    target = env.locate(plain, None if is_url else kind, writable=True)
    address = target.address
    if address.kind not in (Kind.BLOB, Kind.CONTAINER):
        raise UsageError(f"{text!r} names {address.kind.one}, and this command takes blobs")
    container = Target(target.account, Address(Kind.CONTAINER, (address.container,)))
    prefix = "" if address.kind is Kind.CONTAINER else f"{address.name.rstrip('/')}/"
    return BlobTree(root=container, prefix=prefix, **settings)


def file_tree(env: Environment, text: str, *, writable: bool = True, **settings: Any) -> "FileTree":
    """Return the files under an address: a share, or a directory in it, with or without a slash at its end.

    Raises:
        UsageError: it names something else, or a snapshot where something is to be written.
    """
    from azguard.files.trees import FileTree

    _check_end(text)
    is_url = "://" in text
    plain = text if is_url else _clean(text)
    is_share = _is_share_url(env, text) if is_url else "/" not in plain
    kind: Kind | None = Kind.SHARE if is_share else Kind.DIR
    if is_url and env.find_service(text) is not None:
        # Of other URLs nothing tells the service: an emulator may listen on any port.
        kind = None
    target = env.locate(plain, kind, writable=writable)
    address = target.address
    if address.kind.service != Kind.FILE.service:
        raise UsageError(f"{text!r} names {address.kind.one}, and this command takes files of a share")
    share = Target(target.account, Address(Kind.SHARE, (address.container,), address.snapshot))
    prefix = f"{address.path}/" if address.path else ""
    return FileTree(root=share, prefix=prefix, guarding=guarding(env), **settings)


def _check_end(text: str) -> None:
    """Refuse an address whose last part is empty: without that part it would mean far more."""
    path = text.partition("?")[0]
    if path.endswith("//"):
        raise UsageError(
            f"{path!r} has an empty part at its end",
            hint="an unset shell variable looks like this; one slash at the end is enough",
        )


def _clean(text: str) -> str:
    """Return a plain address without its prefix, and without a slash at the end of its path."""
    path, mark, snapshot = text.partition(_SNAPSHOT)
    for each in (Kind.FILE, Kind.DIR, Kind.SHARE):
        path = path.removeprefix(f"{each}:")
    return f"{path.rstrip('/')}{mark}{snapshot}"


def locate_kept(env: Environment, target: Target, text: str) -> Target:
    """Return the snapshot or version of a blob that a text names: the newest, or by its id, or as an address.

    Raises:
        UsageError: it is malformed, names neither, or is of another blob.
        NotFound: the newest is meant, and there is none.
    """
    if text in _NEWEST:
        from azguard.blobs import listing

        return Target(target.account, listing.find_newest(target, text, env.deadline))
    if text[0].isdigit() and "/" not in text:
        from azguard.blobs import listing

        return Target(target.account, listing.find_by_id(target, text, env.deadline))
    named = text.removeprefix("?")
    is_id = named.startswith(_WHICH)
    found = env.location(f"{target.address}?{named}" if is_id else named, Kind.BLOB) if is_id or "/" in named else None
    if found is None or (found.address.snapshot is None and found.address.version is None):
        raise UsageError(
            f"--from {named!r} names neither a snapshot nor a version",
            hint="--from snapshot is the newest; azguard blob list CONTAINER --include snapshots,versions shows all",
        )
    is_elsewhere = found.endpoint is not None and same_host(found.endpoint) != same_host(target.endpoint)
    if found.address.parts != target.address.parts or is_elsewhere or found.sas is not None:
        raise UsageError(
            f"--from is not of {target}",
            hint="azguard blob copy SOURCE CONTAINER/NAME copies another blob",
        )
    return Target(target.account, found.address)


def refuse_snapshot_first(blob: str, *, given: bool) -> None:
    """Refuse to keep a snapshot of what is deleted.

    Raises:
        UsageError: that was asked for.
    """
    if given:
        raise UsageError(
            "--snapshot-first is not for a delete: the service deletes a blob only together with its snapshots",
            hint=f"keep a copy first: azguard blob copy {shlex.quote(blob)} CONTAINER/COPY",
        )


def lock(env: Environment, text: str, container: str | None, *, also: Sequence[Kind] = ()) -> Target:
    """Return the blob that a lock's address names: itself, the one of a bare name, or the one that stands for a table.

    ``also`` are the kinds of other resources that are a lock here by their own lease.

    Raises:
        UsageError: neither a blob nor a table, or a container is named that it is not in.
    """
    return locks(env, [text], container, also=also)[0]


def locks(env: Environment, texts: Sequence[str], container: str | None, *, also: Sequence[Kind] = ()) -> list[Target]:
    """Return the blobs that locks' addresses name."""
    found = [_locate_lock(env, text, container, also) for text in texts]
    if container is not None and not any(
        _is_bare(text) or env.location(text).address.kind is Kind.TABLE for text in texts
    ):
        raise UsageError(
            f"--lock-container is for bare names, and {found[0].address} names its own container",
            hint="leave the option out, or give a bare name such as deploy-prod",
        )
    return found


def _locate_lock(env: Environment, text: str, container: str | None, also: Sequence[Kind]) -> Target:
    from azguard.locks import log

    target = env.locate(_expand_name(env, text, container), writable=True)
    if target.kind is Kind.BLOB and (lock := log.find_name_of_lock(target.address.short)) is not None:
        raise UsageError(f"{target} is the history of a lock", hint=f"azguard lock log {command_line.quote(lock)}")
    if target.kind is Kind.BLOB or target.kind in also:
        return target
    if target.kind in FILES:
        raise _refuse_file(env, target)
    if target.kind is not Kind.TABLE:
        raise UsageError(
            f"a lock is a blob, a share, a file, or a table that a blob stands for; not {target.kind.one}",
            hint="NAME or blob:CONTAINER/NAME, or lease a container with azguard lease acquire",
        )
    return locate_designated(env, target, container)


def _refuse_file(env: Environment, target: Target) -> UsageError:
    """Return the refusal of a share or a file by a command that needs more than its lease."""
    word = command_line.quote(str(target.address))
    if env.command == "lock log":
        return UsageError(
            f"a {target.kind} has no history: it takes a blob beside the lock", hint="lock a name instead"
        )
    return UsageError(
        f"a {target.kind} is held by lock run alone: its lease would stay if its holder were killed",
        hint=f"azguard lock run {word} -- COMMAND, or lease it: azguard lease acquire {word} --infinite",
    )


def choose_container(named: str | None, environ: Mapping[str, str]) -> str:
    """Return the container of locks: the one that is named, else that of the environment, else the usual one.

    Raises:
        UsageError: it is no name of a container.
        ConfigError: that of the environment is empty: the lock would not be the one that other jobs hold.
    """
    from azguard.locks import lock_blobs

    variable = lock_blobs.CONTAINER_VARIABLE
    if named is None and not environ.get(variable, lock_blobs.CONTAINER).strip():
        raise ConfigError(f"{variable} is set but empty", hint=f"set it, or remove it: unset {variable}")
    return lock_blobs.choose_container(named, environ)


def _expand_name(env: Environment, text: str, container: str | None) -> str:
    """Return the address that a bare name stands for, and anything else as it is."""
    if not _is_bare(text):
        return text
    return f"{Kind.BLOB}:{choose_container(container, env.environ)}/{text}"


def _is_bare(text: str) -> bool:
    # With a colon it is more likely a misspelt kind of resource than a name: it would be a lock of its own.
    return bool(text.strip()) and "/" not in text and ":" not in text


def locate_designated(env: Environment, table: Target, container: str | None) -> Target:
    """Return the blob that stands for a table, and say so."""
    from azguard.locks import lock_blobs

    blob = lock_blobs.choose_lock_blob(table, choose_container(container, env.environ))
    env.out.info(f"{table.address} has no lease of its own; its lock is {blob.address}")
    return blob
