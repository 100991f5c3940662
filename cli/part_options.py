"""The metadata, tags or policies of a resource: how they are given, and how they are delivered."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from azguard.accounts.target import Target
from azguard.cli import deliveries, inputs, options, values
from azguard.cli.context import Environment
from azguard.cli.groups import Commands, group
from azguard.cli.lifecycle_options import Look, Noun
from azguard.conditions.operations import Operation, Part
from azguard.errors import UsageError
from azguard.requests.lineage import KEY

if TYPE_CHECKING:
    from azguard.conditions.seen import SeenVersion
    from azguard.documents.policies import Policies, PolicyRules

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE|-", help="Read this JSON file, as get prints it; by default, stdin."),
]

# What a part is called, and its command.
_WORDS = {
    Part.METADATA: ("metadata", "metadata"),
    Part.TAGS: ("index tags", "tags"),
    Part.ACL: ("access policies", "acl"),
}


def declare(app: Commands, noun: Noun, part: Part, operation: Operation, look: Look, note: str = "") -> Commands:
    """Declare the group of a part with its get, and return the group, for its set; ``note`` stands in the help of get.

    ``look`` returns the part, or a pair of it and its lineage.
    """

    def run(env: Environment, target: Target) -> None:
        found = look(target, env.conditions(target), env.deadline)
        deliver(env, target, part, *(found if isinstance(found, tuple) else (found,)))

    words, command = _WORDS[part]
    line = f"azguard {noun.word} {command} get {noun.example}"
    text = f"""Read the {words} of a {noun.called} and remember their version, which guards the next {command} set.

    {note}

    Examples:
        {line}
        {line} > {words.split()[-1]}.json

    Topics: {noun.topic}
    """
    commands = group(f"The {words} of a {noun.called}: get, set.")
    app.add_typer(commands, name=command)
    noun.declare(commands, "get", options.operation(operation), text, run)
    return commands


def record_replaced(env: Environment, target: Target, part: Part, done: Any) -> None:
    """Record a part that was replaced, and show it; what was read of the rest of the resource stays known."""
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, part, done.written, done.lineage)
    env.out.show(done.written)


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
