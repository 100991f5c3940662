"""``azguard blob``: metadata, tags, set-properties, tier."""

from typing import Annotated, Any, ClassVar

from azguard.address import Kind
from azguard.blobs import headers
from azguard.cli import parts
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.content_headers import HEADERS, NAME_HEADER, NOTHING_TO_SET, HeaderOptions
from azguard.cli.options.types import spelt
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, any_of, checked, one_of
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.wire.operations.blobs import (
    BLOB_GET_PROPERTIES,
    BLOB_GET_TAGS,
    BLOB_SET_METADATA,
    BLOB_SET_PROPERTIES,
    BLOB_SET_TAGS,
    BLOB_SET_TIER,
)
from azguard.wire.rows import Part


def _read_tags(*asked: Any) -> Any:
    from azguard.blobs import tags

    return tags.get(*asked)


_TIER = spelt("|".join(headers.TIERS))
app = Group("Properties of a blob: metadata, tags, set-properties, tier.")
_BLOB = Noun(Kind.BLOB, "blob", common.Blob, "site/config.json", "conditions")
metadata_app = parts.declare_part(
    app,
    _BLOB,
    Part.METADATA,
    BLOB_GET_PROPERTIES,
    headers.get_metadata,
    "What you read of the content still guards the next put.",
)
parts.declare_set(
    metadata_app,
    _BLOB,
    Part.METADATA,
    BLOB_SET_METADATA,
    lambda env, target, wanted, conditions: headers.replace_metadata(
        target, wanted, conditions, lambda: env.lease_records, env.deadline
    ),
    """Replace all metadata of a blob, but only of the version you have seen.

    A file that metadata get printed names its version, which guards the write. Without such a file, the version that
    you read last does: by metadata get, else by blob get. To change one entry and keep the others, use
    azguard safe-update --metadata.

    azguard reads the blob first. It keeps its own entries, and those of a lock. With a condition other than
    --if-match it takes a lease meanwhile.

    The ETag of the blob changes, its content does not. So a file that you read with blob get can still be put.

    Examples:
        azguard blob metadata set site/config.json --metadata owner=ops
        echo '{"owner": "ops"}' | azguard blob metadata set site/config.json

    Topics: conditions
    """,
)
tags_app = parts.declare_part(
    app,
    _BLOB,
    Part.TAGS,
    BLOB_GET_TAGS,
    _read_tags,
    "The service gives tags no version. azguard makes the ETag that it shows from the ETag of the blob and the tags.",
)


@frozen
class PropertyOptions(HeaderOptions):
    """The content headers, and whether the others are cleared."""

    clear_content_settings: Annotated[
        bool, flag("--clear-content-settings", "Clear the headers that you do not set.")
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (any_of(f"{HEADERS} --clear-content-settings", NOTHING_TO_SET, NAME_HEADER),)


@tags_app.command(
    name="set",
    spec=common.operation(BLOB_SET_TAGS),
    rules=(checked("BLOB", "no snapshot, whose tags stay", "properties.set_tags"),),
)
def set_tags(env: Environment, blob: common.Blob, tags: common.Tags = None, file: common.TagsFile = None) -> None:
    """Replace all index tags of a blob, but only those you have seen, on the version you have seen.

    A file that tags get printed names its version, which guards the write. Without such a file, what tags get read last
    does. If another writer changed the tags or the blob since, the exit status is 42. To change one tag and keep the
    others, use azguard safe-update --tags.

    The service compares no version here. So azguard takes a lease of 15 seconds, compares, writes and releases it. With
    --lease-id it uses yours.

    --etag also takes the ETag of the blob. Then the tags are not compared: those of another writer are replaced.

    The tag of a fence stays, unless you set it. With --fence the number of your lock guards the write, not the version,
    and the blob gets a new version of the same content.

    A version, ?versionid=…, cannot be leased. Its tags are set only with --last-writer-wins.

    Examples:
        azguard blob tags set site/config.json --tags stage=live --last-writer-wins
        azguard blob tags get site/config.json > tags.json
        azguard blob tags set site/config.json -f tags.json

    Topics: conditions, fences
    """
    from azguard.blobs.tags import replace_all
    from azguard.guards import fences

    target = env.locate(blob, Kind.BLOB)
    if target.address.snapshot:
        raise UsageError(f"{target} is a snapshot, which keeps its tags", hint="leave ?snapshot=… out")
    wanted, seen = parts.read_tags(tags, file)
    if tags and RequestedConditions.of(env.shared).fence is not None:
        fences.check_tags(wanted)
    written = replace_all(target, wanted, env.conditions(target, seen), env.lease_records, env.deadline)
    env.reads.record_part(target, Part.TAGS, written)
    env.out.show(written)


@app.command(name="set-properties", spec=common.operation(BLOB_SET_PROPERTIES))
def set_properties(env: Environment, blob: common.Blob, given: PropertyOptions) -> None:
    """Change content headers of a blob, but only of the version you have seen. The others stay.

    The service clears each header that is not sent. So azguard first reads the headers and sends them all, guarded by
    the ETag of that read. With a condition other than --if-match it takes a lease meanwhile. --clear-content-settings
    clears the headers that you do not name.

    The ETag of the blob changes, its content does not. So a file that you read with blob get can still be put.

    If the answer is lost, it cannot be known whether the headers are yours (exit 74), unless you hold a lease.

    Examples:
        azguard blob set-properties site/config.json --content-type application/json
        azguard blob set-properties site/config.json --content-cache no-store

    Topics: conditions
    """
    from azguard.resources.properties import ContentHeaders

    target = env.locate(blob, Kind.BLOB, writable=True)
    wanted = ContentHeaders(**given.read_headers())
    done = headers.change_headers(
        target,
        wanted,
        env.conditions(target),
        lambda: env.lease_records,
        env.deadline,
        clear_others=given.clear_content_settings,
    )
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.out.show(done.written)


@app.command(spec=common.operation(BLOB_SET_TIER), rules=(one_of("TIER --tier", hint="Hot, Cool, Cold or Archive"),))
def tier(
    env: Environment,
    blob: common.Blob,
    tier: Annotated[
        str | None, argument("TIER", "Hot, Cool, Cold or Archive; of a premium page blob, P4 to P80.", _TIER)
    ] = None,
    tier_: Annotated[str | None, option("--tier", "TIER", "The tier, where it is not the second word.", _TIER)] = None,
    rehydrate_priority: Annotated[
        str | None,
        option(
            "--rehydrate-priority",
            "Standard|High",
            "Choose how fast it leaves the archive.",
            spelt,
        ),
    ] = None,
) -> None:
    """Change the access tier of a blob, but only of the version you have seen.

    The service compares no version here, and a change of the tier makes none. So azguard takes a lease of 15 seconds,
    compares the ETag, changes the tier and releases it. With --lease-id it uses yours. Another writer's change of the
    tier is not noticed: it makes no version.

    A blob that leaves the archive cannot be read for hours; the result then says "rehydrating".

    A snapshot or version never changes, so its address is guard enough.

    Examples:
        azguard blob tier site/config.json Cool
        azguard blob tier site/config.json Hot --rehydrate-priority High

    Topics: conditions
    """
    target = env.locate(blob, Kind.BLOB)
    change = headers.TierChange(
        target=target,
        tier=tier or tier_ or "",
        priority=rehydrate_priority,
        conditions=env.conditions(target),
        deadline=env.deadline,
    )
    env.out.show(change.make(env.lease_records))
