"""Addresses of trees → what is under them, by service."""

from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.cli.context import Environment
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.blobs.trees import BlobTree
    from azguard.files.trees import FileTree

_SNAPSHOT = "?snapshot="


def blobs(env: Environment, text: str, **settings: Any) -> "BlobTree":
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
    return BlobTree(container=container, prefix=prefix, **settings)


def files(env: Environment, text: str, *, writable: bool = True, **settings: Any) -> "FileTree":
    """Return the files under an address: a share, or a directory in it, with or without a slash at its end.

    Raises:
        UsageError: it names something else, or a snapshot where something is to be written.
    """
    from azguard.cli import file_options
    from azguard.files.trees import FileTree

    _check_end(text)
    is_url = "://" in text
    plain = text if is_url else _clean(text)
    is_share = file_options.is_share_url(env, text) if is_url else "/" not in plain
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
    return FileTree(share=share, prefix=prefix, guarding=file_options.guarding(env), **settings)


def _check_end(text: str) -> None:
    """Refuse an address whose last part is empty: without that part it would mean far more.

    Raises:
        UsageError: there are two slashes at its end.
    """
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
