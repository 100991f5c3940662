"""Parts of a resource in files, as ``get`` prints them; and the version that a file came with."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.guards.versions import SeenVersion
    from azguard.resources.access_policies import Policies

_Texts = dict[str, str]


def read_metadata(texts: _Texts | None, file: str | None) -> "tuple[_Texts, SeenVersion | None]":
    """Return the metadata to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    from azguard.documents import metadata
    from azguard.requests.lineage import KEY

    return _read(texts, file, "--metadata KEY=VALUE", lambda value: metadata.parse(value, KEY))


def read_tags(texts: _Texts | None, file: str | None) -> "tuple[_Texts, SeenVersion | None]":
    """Return the index tags to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    from azguard.documents import metadata

    return _read(texts, file, "--tags KEY=VALUE", metadata.parse_tags)


def _read(
    texts: _Texts | None, file: str | None, typed: str, parse: Callable[[object], Any]
) -> "tuple[_Texts, SeenVersion | None]":
    if texts:
        return texts, None
    found = parse(streams.read_json(file, typed))
    return found.value, _read_seen(found.etag)


def read_policies(file: str | None, kind: Kind) -> "tuple[Policies, SeenVersion | None]":
    """Return the access policies to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    from azguard.documents import metadata
    from azguard.resources import access_policies

    document = streams.read_json(file)
    return access_policies.parse(document, access_policies.RULES[kind]), _read_seen(
        metadata.take_part(document, "policies").etag
    )


def _read_seen(etag: str | None) -> "SeenVersion | None":
    """Return the version that a file names; it guards the write of what is in it."""
    from azguard.guards.versions import SeenVersion, parse_blob_etag

    return None if etag is None else SeenVersion(parse_blob_etag(etag))


def find_version_of(env: Environment, target: Target, file: str) -> "SeenVersion":
    """Return the version that came with a copy of a resource on this machine.

    Raises:
        UsageError: the file cannot be read, or it is no copy that this scope has read.
    """
    from azguard.guards.versions import SeenVersion

    with streams.source(file) as stream:
        copy = streams.copy(stream)
    known = None if copy is None else env.reads.recall(target, copy)
    if known is None or known.copy is None or known.other is not None:
        raise UsageError(
            f"--version-of: {file} came with no version of {target}",
            hint=f"name the version: --etag ETAG, or read it: azguard {target.kind} get {target} -f FILE",
        )
    return SeenVersion(known.copy.etag)
