"""The metadata, tags or policies of a resource: how they are given, and how they are delivered."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from azguard.accounts.target import Target
from azguard.cli import deliveries, inputs, values
from azguard.cli.context import Environment
from azguard.conditions.operations import Part
from azguard.errors import UsageError
from azguard.requests.lineage import KEY

if TYPE_CHECKING:
    from azguard.conditions.seen import SeenVersion
    from azguard.documents.policies import Policies, PolicyRules

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE|-", help="Read this JSON file, as get prints it; by default, stdin."),
]


def read_metadata(texts: list[str] | None, file: str | None) -> "tuple[dict[str, str], SeenVersion | None]":
    """Return the metadata to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed, or given in two ways.
    """
    from azguard.documents import metadata

    refuse_both(texts, "--metadata", file)
    if texts:
        return metadata.refuse_reserved(values.metadata(texts), KEY), None
    found = metadata.parse(inputs.read_json(file, "--metadata KEY=VALUE"), KEY)
    return found.value, seen(found.etag)


def read_tags(texts: list[str] | None, file: str | None) -> "tuple[dict[str, str], SeenVersion | None]":
    """Return the index tags to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed, or given in two ways.
    """
    from azguard.documents import metadata

    refuse_both(texts, "--tags", file)
    if texts:
        return values.tags(texts), None
    found = metadata.parse_tags(inputs.read_json(file, "--tags KEY=VALUE"))
    return found.value, seen(found.etag)


def read_policies(file: str | None, rules: "PolicyRules") -> "tuple[Policies, SeenVersion | None]":
    """Return the access policies to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    from azguard.documents import metadata, policies

    document = inputs.read_json(file)
    return policies.parse(document, rules), seen(metadata.take_part(document, "policies").etag)


def refuse_both(texts: list[str] | None, option: str, file: str | None) -> None:
    """Refuse the values as options and as a file.

    Raises:
        UsageError: they are given as both.
    """
    if texts and file is not None:
        raise UsageError(f"{option} and --file do not go together", hint="leave one of them out")


def seen(etag: str | None) -> "SeenVersion | None":
    """Return the version that a file names; it guards the write of what is in it."""
    from azguard.conditions.etags import parse_blob_etag
    from azguard.conditions.seen import SeenVersion

    return None if etag is None else SeenVersion(parse_blob_etag(etag))


def deliver(env: Environment, target: Target, part: Part, found: Any, lineage: str | None = None) -> None:
    """Show a part, and remember its version if all of it was shown."""
    env.out.show(found)
    env.out.flush()
    # What was shown in part, or went to /dev/null, was not read.
    if env.out.shows_whole(found) and deliveries.to_stream(sys.stdout).is_kept:
        env.reads.record_part(target, part, found, lineage)
