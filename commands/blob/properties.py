"""``azguard blob``: metadata, tags, set-properties, tier, legal-hold, immutability."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from azguard.address import Kind
from azguard.blobs import headers
from azguard.cli import parts
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.content import HEADERS, NAME_HEADER, NOTHING_TO_SET, HeaderOptions
from azguard.cli.options.types import ValueType, require_text, spelt
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, any_of, checked, needs, one_of
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.resources.properties import ContentHeaders
from azguard.times import parse_http_date, read_http_date
from azguard.wire.operations.blobs import (
    BLOB_DELETE_IMMUTABILITY_POLICY,
    BLOB_GET_PROPERTIES,
    BLOB_GET_TAGS,
    BLOB_SET_IMMUTABILITY_POLICY,
    BLOB_SET_LEGAL_HOLD,
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
app = Group()
_BLOB = Noun(Kind.BLOB, common.Blob, "site/config.json", "conditions")
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


def _read_end(text: str, name: str) -> datetime:
    """Return a time in whole seconds, as the service keeps it."""
    require_text(text, name)
    try:
        return read_http_date(parse_http_date(text, name))
    except UsageError:
        raise UsageError(f"{name}: {text!r} is not a time", hint="write for example 2031-01-01T00:00:00Z") from None


_TIME = ValueType("time", _read_end)
hold_app = Group("The legal hold of a blob: set, clear, show.")
policy_app = Group("Until when a blob is immutable: set, clear, show.")
app.add("legal-hold", hold_app)
app.add("immutability", policy_app)


def _change(env: Environment, blob: str, **given: object) -> None:
    from azguard.blobs.retention import RetentionChange

    target = env.locate(blob, Kind.BLOB)
    change = RetentionChange(**given)  # type: ignore[arg-type]  # its fields
    env.out.show(change.make(target, env.conditions(target), env.deadline))


def _declare_show(commands: Group, name: str, what: str) -> None:
    def show(env: Environment, blob: common.Blob) -> None:
        from azguard.blobs import retention

        target = env.locate(blob, Kind.BLOB)
        env.out.show(retention.show(target, env.conditions(target), env.deadline))

    text = f"""Show {what}, and what else keeps it.

    Examples:
        azguard blob {name} show site/config.json

    Topics: conditions
    """
    commands.command("show", spec=common.operation(BLOB_GET_PROPERTIES), text=text)(show)


@hold_app.command("set", spec=common.operation(BLOB_SET_LEGAL_HOLD))
def set_hold(env: Environment, blob: common.Blob) -> None:
    """Put the version you have seen under a legal hold, which keeps it from being changed and deleted.

    A hold has no holder: of two who set one, the first who clears it ends it. After a lost answer it is sent again.

    The service compares no ETag here. So azguard reads the blob, compares, and names that version in its request: a
    version never changes, and a later one is left alone. Another's change of the hold in between is not noticed.

    Examples:
        azguard blob legal-hold set site/config.json

    Topics: conditions
    """
    _change(env, blob, legal_hold=True)


@hold_app.command("clear", spec=common.operation(BLOB_SET_LEGAL_HOLD))
def clear_hold(env: Environment, blob: common.Blob, dry_run: common.DryRun = False) -> None:
    """Take the legal hold from the version you have seen.

    After a lost answer azguard looks. If the hold is still there, the outcome is unknown (exit 74): a request that
    comes late could end a hold that was set meanwhile.

    The service compares no ETag here. So azguard reads the blob, compares, and names that version in its request: a
    version never changes, and a later one is left alone. Another's change of the hold in between is not noticed.

    Examples:
        azguard blob legal-hold clear site/config.json

    Topics: conditions
    """
    _change(env, blob, legal_hold=False, is_tried=dry_run)


_declare_show(hold_app, "legal-hold", "whether a blob is under a legal hold")


@frozen
class PolicyOptions:
    """The options of blob immutability set."""

    expiry_time: Annotated[
        datetime | None, option("--expiry-time", "TIME", "The end, as another way to say it.", _TIME)
    ] = None
    policy_mode: Annotated[
        str | None,
        option("--policy-mode", "unlocked|locked", "Set the mode.", spelt, otherwise="as it is, else unlocked"),
    ] = None
    shorten: Annotated[bool, flag("--shorten", "End it earlier than what is set now.")] = False
    cannot_be_undone: Annotated[
        bool, flag("--cannot-be-undone", "Lock it, or make a locked one longer. This is final.")
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        one_of("UNTIL --expiry-time", "when it ends", "write it behind the blob, as in: site/config.json 2031-01-01"),
        needs(
            "--policy-mode=locked --policy-mode=Locked",
            "--cannot-be-undone",
            "a locked policy is never shortened or taken away",
        ),
        checked("UNTIL --expiry-time", "a time that is still to come", "properties.set_policy"),
    )


@policy_app.command("set", spec=common.operation(BLOB_SET_IMMUTABILITY_POLICY))
def set_policy(
    env: Environment,
    blob: common.Blob,
    until: Annotated[datetime | None, argument("[UNTIL]", "When it ends: 2031-01-01T00:00:00Z.", _TIME)] = None,
    *,
    given: PolicyOptions,
) -> None:
    """Keep the version you have seen from being changed and deleted until a date.

    An unlocked policy can be changed and taken away. A locked one cannot be undone, by anyone: its end only moves on.
    So to lock one, or to prolong a locked one, takes --cannot-be-undone. An earlier end than that which is set takes
    --shorten.

    The service compares no ETag here. So azguard reads the blob, compares, and names that version in its request: a
    version never changes, and a later one is left alone. Another's change of the policy in between is not noticed.

    Examples:
        azguard blob immutability set site/config.json 2031-01-01
        azguard blob immutability set site/config.json 2030-01-01 --shorten

    Topics: conditions
    """
    end = given.expiry_time if until is None else until
    assert end is not None  # says the rule
    if end <= datetime.now(UTC):
        raise UsageError(f"{end:%Y-%m-%dT%H:%M:%SZ} is over already", hint="write a time that is still to come")
    _change(env, blob, until=end, mode=given.policy_mode, shortens=given.shorten, is_final=given.cannot_be_undone)


@policy_app.command("clear", spec=common.operation(BLOB_DELETE_IMMUTABILITY_POLICY))
def clear_policy(env: Environment, blob: common.Blob, dry_run: common.DryRun = False) -> None:
    """Take the policy from the version you have seen, if it is not locked.

    After a lost answer azguard looks. If the policy is still there, the outcome is unknown (exit 74), since a request
    that comes late could end a policy that was set meanwhile.

    Examples:
        azguard blob immutability clear site/config.json

    Topics: conditions
    """
    _change(env, blob, clears_policy=True, is_tried=dry_run)


_declare_show(policy_app, "immutability", "until when a blob is immutable")
