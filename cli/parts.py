"""Metadata, tags and policies of a resource: the commands that get and set them, and files as ``get`` prints them."""

import sys
from collections.abc import Callable
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.nouns import Look, Noun
from azguard.cli.options import common
from azguard.cli.parsing.tree import Group
from azguard.documents import metadata
from azguard.guards.resolve import Conditions
from azguard.guards.versions import SeenVersion, parse_blob_etag
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.resources import parts
from azguard.wire.rows import Operation, Part

# What a part is called, and its command.
_WORDS = {
    Part.METADATA: ("metadata", "metadata"),
    Part.TAGS: ("index tags", "tags"),
    Part.ACL: ("access policies", "acl"),
}
# How a write is guarded of which the service compares nothing.
_COMPARED = """The service cannot guard this write. With --allow-race azguard compares the policies with those that you
    read last, or with --etag. Another writer can still come in between."""
#: How a resource's ETag that the service does not give is made.
NO_ETAG = "The service gives them no ETag; azguard makes the one it shows from their content."
#: Replaces a part of a resource by another, under conditions.
Replace = Callable[[Environment, Target, Any, Conditions], Any]


def declare_part(app: Group, noun: Noun, part: Part, operation: Operation, look: Look, note: str = "") -> Group:
    """Declare the group of a part with its get, and return the group, for its set; ``note`` stands in the help of get.

    ``look`` returns the part, or a pair of it and its lineage.
    """

    def get(env: Environment, resource: Any) -> None:
        target = env.locate(resource, noun.kind)
        found = look(target, env.conditions(target), env.deadline)
        _deliver_part(env, target, part, *(found if isinstance(found, tuple) else (found,)))

    words, command = _WORDS[part]
    line = f"azguard {noun.kind} {command} get {noun.example}"
    text = f"""Read the {words} of a {noun.kind.noun} and remember their version, which guards the next {command} set.

    {note}

    Examples:
        {line}
        {line} > {words.split()[-1]}.json

    Topics: {noun.topic}
    """
    commands = Group(f"The {words} of a {noun.kind.noun}: get, set.")
    app.add(command, commands)
    noun.declare(commands, "get", common.operation(operation), text, get)
    return commands


def declare_set(commands: Group, noun: Noun, part: Part, operation: Operation, replace: Replace, text: str) -> None:
    """Declare the set of metadata or policies; ``text`` is its help."""

    def write(env: Environment, resource: Any, read: Callable[[], Any]) -> None:
        target = noun.locate(env, resource)
        # Read first: where get is at the other end of the pipe, what guards this is recorded only then.
        wanted, seen = read()
        _record_set(env, target, part, replace(env, target, wanted, env.conditions(target, seen)))

    def set_metadata(
        env: Environment, resource: Any, metadata: common.Metadata = None, file: common.MetadataFile = None
    ) -> None:
        write(env, resource, lambda: read_metadata(metadata, file))

    def set_policies(env: Environment, resource: Any, file: common.JsonFile = None) -> None:
        write(env, resource, lambda: read_policies(file, noun.kind))

    callback: Callable[..., None] = set_metadata if part is Part.METADATA else set_policies
    noun.declare(commands, "set", common.operation(operation), text, callback)


def declare_policies(
    app: Group,
    noun: Noun,
    reads: Operation,
    writes: Operation,
    *,
    note: str = "",
    replace: Replace | None = None,
    guard: str = _COMPARED,
    accept: str = "--allow-race",
) -> None:
    """Declare get and set of access policies.

    ``note`` stands in the help of get, and ``guard`` in that of set, whose example has ``accept``. Without ``replace``
    the service cannot guard the write.
    """
    line = f"azguard {noun.kind} acl"
    text = f"""Replace all access policies of a {noun.kind.noun} by those of a JSON file, as acl get prints them.

    {guard} New policies take effect after up to 30 seconds.

    Examples:
        {line} get {noun.example} | {line} set {noun.example} {accept}

    Topics: {noun.topic}
    """
    commands = declare_part(app, noun, Part.ACL, reads, parts.get_policies, note)
    declare_set(commands, noun, Part.ACL, writes, replace or _replace_compared, text)


def _replace_compared(env: Environment, target: Target, wanted: Any, conditions: Conditions) -> Any:
    return parts.replace_policies(target, wanted, conditions, env.deadline)


def _record_set(env: Environment, target: Target, part: Part, done: Any) -> None:
    if isinstance(done, parts.Rewritten):
        record_replaced(env, target, part, done)
    else:
        _record(env, target, part, done)
        env.out.show(done)


def _record(env: Environment, target: Target, part: Part, found: Any, lineage: str | None = None) -> None:
    if target.kind is Kind.TABLE:  # which has no other version
        env.reads.record(target, found)
    else:
        env.reads.record_part(target, part, found, lineage)


def declare_metadata(
    app: Group, noun: Noun, reads: Operation, writes: Operation, note: str, *, first: str = "", last: str = ""
) -> None:
    """Declare get and set of metadata in a share; ``note`` says in the help of set what guards it.

    ``first`` and ``last`` end its examples.
    """

    def replace(env: Environment, target: Target, wanted: Any, conditions: Conditions) -> Any:
        from azguard.cli.input import addresses
        from azguard.files import entries

        return entries.replace_metadata(target, wanted, conditions, addresses.guarding(env), env.deadline)

    line, called = f"azguard {noun.kind} metadata", noun.kind.noun
    text = f"""Replace all metadata of a {called}, if they are still those that you read. azguard keeps its own entry.

    {note}

    Examples:
        {line} set {noun.example} --metadata owner=ops{first}
        {line} get {noun.example} > metadata.json
        {line} set {noun.example} -f metadata.json{last}

    Topics: {noun.topic}
    """
    commands = declare_part(app, noun, Part.METADATA, reads, _get_metadata)
    declare_set(commands, noun, Part.METADATA, writes, replace, text)


def record_replaced(env: Environment, target: Target, part: Part, done: Any) -> None:
    """Record a part that was replaced, and show it; what was read of the rest of the resource stays known."""
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, part, done.written, done.lineage)
    env.out.show(done.written)


def _deliver_part(env: Environment, target: Target, part: Part, found: Any, lineage: str | None = None) -> None:
    """Show a part, and remember its version if all of it was shown."""
    env.out.show(found)
    env.out.flush()
    # What was shown in part, or went to /dev/null, was not read.
    if env.out.shows_whole(found) and streams.to_stream(sys.stdout).is_kept:
        _record(env, target, part, found, lineage)


def _get_metadata(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    from azguard.files.entries import drop_own

    return parts.get_metadata(target, conditions, deadline, drop_own)


_Texts = dict[str, str]


def read_metadata(texts: _Texts | None, file: str | None) -> tuple[_Texts, SeenVersion | None]:
    """Return the metadata to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    return _read(texts, file, "--metadata KEY=VALUE", lambda value: metadata.parse(value, KEY))


def read_tags(texts: _Texts | None, file: str | None) -> tuple[_Texts, SeenVersion | None]:
    """Return the index tags to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    return _read(texts, file, "--tags KEY=VALUE", metadata.parse_tags)


def _read(
    texts: _Texts | None, file: str | None, typed: str, parse: Callable[[object], Any]
) -> tuple[_Texts, SeenVersion | None]:
    if texts:
        return texts, None
    found = parse(streams.read_json(file, typed))
    return found.value, _read_seen(found.etag)


def read_policies(file: str | None, kind: Kind) -> tuple[parts.Policies, SeenVersion | None]:
    """Return the access policies to set, and the version that the file with them came with.

    Raises:
        UsageError: they are malformed.
    """
    document = streams.read_json(file)
    return parts.parse_policies(document, parts.POLICY_RULES[kind]), _read_seen(
        metadata.take_part(document, "policies").etag
    )


def _read_seen(etag: str | None) -> SeenVersion | None:
    """Return the version that a file names; it guards the write of what is in it."""
    return None if etag is None else SeenVersion(parse_blob_etag(etag))
