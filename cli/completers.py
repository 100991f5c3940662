"""What may stand in the place of a value: each argument and option names its completer.

A completer is given the line that was typed, and the word that is not finished yet. It yields
pairs of a value and its meaning, and leaves out the values that it cannot find in time.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from azguard.address import Address, Kind, parse
from azguard.frozen import frozen
from azguard.requests.deadline import Deadline

#: A value, and what it is.
Candidate = tuple[str, str]

# A shell that hangs after Tab is worse than one that offers nothing.
SECONDS = 2.0
_MOST = 200
# The kinds of resources whose names can be offered.
_LEASABLE = (Kind.BLOB, Kind.CONTAINER, Kind.SHARE, Kind.FILE)
_NAMED = (*_LEASABLE, Kind.TABLE, Kind.ENTITY, Kind.QUEUE, Kind.DIR)


@frozen
class TypedLine:
    """The line up to the cursor, as far as a completer needs it."""

    #: The values of the options that were typed, by name.
    options: Mapping[str, Any]
    environ: Mapping[str, str]
    #: The words of the command, and its arguments.
    path: Sequence[str] = ()
    arguments: Sequence[str] = ()


Completer = Callable[[TypedLine, str], list[Candidate]]
#: Asks an account for what begins with the unfinished word.
Listing = Callable[[Any, str, TypedLine], Iterator[Candidate]]


def _complete_prefixed(kinds: Sequence[Kind], line: TypedLine, incomplete: str) -> list[Candidate]:
    prefix, colon, rest = incomplete.partition(":")
    if not colon and "/" in incomplete:
        return blobs(line, incomplete)
    if not colon:
        return [(f"{kind}:", kind.form) for kind in kinds]
    if prefix not in kinds:
        return []
    return [(f"{prefix}:{name}", meaning) for name, meaning in _BY_KIND[prefix](line, rest)]


def _in_time(listing: Listing, line: TypedLine, incomplete: str) -> list[Candidate]:
    """Return names that the service lists, in time or not at all."""
    try:
        with _at_most(SECONDS):
            return list(islice(listing(_account(line), incomplete, line), _MOST))
    # Whatever keeps the names from being known, the line being typed must stay as it is.
    except Exception:  # noqa: BLE001  # a completion that fails offers nothing
        return []


def _account(line: TypedLine) -> Any:
    from azguard.cli.input import accounts
    from azguard.folders import Folders

    folders = Folders.of(line.environ)
    return accounts.choose(line.options, line.environ, Path(folders.profiles), lambda: accounts.local_emulator(folders))


def list_names(kind: str, account: Any, deadline: Deadline, prefix: str | None, most: int) -> Iterator[str]:
    """Yield the names of the containers, queues, shares or tables of an account."""
    if kind == Kind.TABLE:
        from azguard.tables.tables import list_tables

        return (each.name for each in list_tables(account, deadline, prefix, most))
    from azguard.resources.lifecycles import list_all

    return (address.container for address, _ in list_all(account, Kind(kind), deadline, prefix, most))


def _list_of(kind: str, account: Any, incomplete: str, _line: TypedLine) -> Iterator[Candidate]:
    return ((name, kind) for name in list_names(kind, account, Deadline(SECONDS), incomplete or None, _MOST))


def _list_files(account: Any, incomplete: str, line: TypedLine) -> Iterator[Candidate]:
    from azguard.accounts.account import Target
    from azguard.files.entries import list_entries

    folder, slash, begun = incomplete.rpartition("/")
    if not slash:
        yield from ((f"{name}/", meaning) for name, meaning in _list_of("share", account, incomplete, line))
        return
    share, _, path = folder.partition("/")
    target = Target(account, Address(Kind.DIR, (share, path)))
    for entry in list_entries(target, Deadline(SECONDS), prefix=begun or None, limit=_MOST):
        name = f"{folder}/{entry.name}"
        yield (f"{name}/", "dir") if entry.type == Kind.DIR else (name, "file")


def _list_blobs(account: Any, incomplete: str, line: TypedLine) -> Iterator[Candidate]:
    from azguard.accounts.account import Target
    from azguard.blobs.listing import BlobPrefix, list_blobs

    container, slash, prefix = incomplete.partition("/")
    if not slash:
        yield from ((f"{name}/", meaning) for name, meaning in _list_of("container", account, container, line))
        return
    target = Target(account, parse(container, Kind.CONTAINER).address)
    for item in list_blobs(target, Deadline(SECONDS), prefix=prefix or None, delimiter="/", limit=_MOST):
        yield f"{container}/{item.name}", "folder" if isinstance(item, BlobPrefix) else "blob"


def _list_kept(account: Any, _incomplete: str, line: TypedLine) -> Iterator[Candidate]:
    from azguard.accounts.account import Target
    from azguard.blobs.listing import list_blobs

    blob = parse(line.arguments[0], Kind.BLOB).address
    container = Target(account, Address(Kind.CONTAINER, (blob.container,)))
    listed = list_blobs(container, Deadline(SECONDS), prefix=blob.name, include=("snapshots", "versions"))
    for item in listed:
        address = parse(item.address).address
        if address.parts == blob.parts and address.snapshot:
            yield f"snapshot={address.snapshot}", "snapshot"
        elif address.parts == blob.parts and address.version:
            yield f"versionid={address.version}", "version"


def _list_locks(account: Any, incomplete: str, line: TypedLine) -> Iterator[Candidate]:
    from azguard.locks.lock_blobs import choose_container

    container = choose_container(line.options.get("lock_container"), line.environ)
    for value, meaning in _list_blobs(account, f"{container}/{incomplete}", line):
        # What has this mark is the history of a lock, or the place of a waiter.
        if meaning == "blob" and "!" not in value:
            yield value.removeprefix(f"{container}/"), "lock"


def _list_etags(account: Any, _incomplete: str, line: TypedLine) -> Iterator[Candidate]:
    from datetime import UTC, datetime

    from azguard.accounts.account import Target
    from azguard.cache.etag_cache import EtagCache
    from azguard.cache.records import Key
    from azguard.cache.scope import find_scope
    from azguard.folders import Folders

    noun = line.path[0]
    location = parse(line.arguments[0], Kind(noun) if noun in list(Kind) else None)
    scope = find_scope(line.options.get("scope"), line.environ)
    cache = EtagCache.open(Folders.of(line.environ).cache, scope, warn=lambda _: None, now=lambda: datetime.now(UTC))
    last = cache.find_last(Key.of(Target(account.at(location), location.address)))
    if last is not None:
        # Bare, that of a blob needs no quotes of the shell's. That of an entity is taken byte for byte alone.
        etag = last.etag if location.address.kind is Kind.ENTITY else last.etag.strip('"')
        yield etag, f"read at {last.time}"


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError once the time is up, where the system has a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


#: Containers, then the folders and blobs in one of them.
blobs = partial(_in_time, _list_blobs)
containers = partial(_in_time, partial(_list_of, "container"))
tables = partial(_in_time, partial(_list_of, "table"))
queues = partial(_in_time, partial(_list_of, "queue"))
shares = partial(_in_time, partial(_list_of, "share"))
#: Shares, then the directories and files in one of them.
files = partial(_in_time, _list_files)


def file_sources(line: TypedLine, incomplete: str) -> list[Candidate]:
    """Return the sources that a file can be copied from: files, and blobs with their prefix."""
    if incomplete.startswith("blob:"):
        return addresses(line, incomplete)
    found = files(line, incomplete)
    return found if "/" in incomplete else [*found, ("blob:", "a blob of the same account")]


def _begin(listing: Completer, line: TypedLine, incomplete: str) -> list[Candidate]:
    return [(f"{name}/", meaning) for name, meaning in listing(line, incomplete)]


#: Tables and queues, as the beginning of an entity and of a message.
entities = partial(_begin, tables)
messages = partial(_begin, queues)
#: Addresses of all kinds, and of resources that can be leased.
addresses = partial(_complete_prefixed, _NAMED)
leasable_addresses = partial(_complete_prefixed, _LEASABLE)


def locks(line: TypedLine, incomplete: str) -> list[Candidate]:
    """Return addresses of all kinds, and the bare names of the locks in the container of locks."""
    found = addresses(line, incomplete)
    return found if ":" in incomplete or "/" in incomplete else [*found, *_in_time(_list_locks, line, incomplete)]


def etags(line: TypedLine, _incomplete: str) -> list[Candidate]:
    """Return the ETag that this scope last read of the resource on the line, and the name for it."""
    return [("@last", "what this scope last read"), *_in_time(_list_etags, line, "")]


def kept_versions(line: TypedLine, _incomplete: str) -> list[Candidate]:
    """Return the snapshots and earlier versions of the blob on the line."""
    return _in_time(_list_kept, line, "")


def profiles(line: TypedLine, _incomplete: str) -> list[Candidate]:
    """Return the profiles of the configuration file."""
    from azguard.accounts.profiles import load
    from azguard.errors import AzguardError
    from azguard.folders import Folders

    try:
        return [(name, "") for name in load(Folders.of(line.environ).profiles)]
    except AzguardError:
        return []


_BY_KIND: Mapping[str, Completer] = {
    "blob": blobs, "container": containers, "table": tables, "entity": entities, "queue": queues, "share": shares,
    "dir": files, "file": files,
}  # fmt: skip
