"""``azguard blob``: legal-hold, immutability."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import values
from azguard.cli.options import common
from azguard.cli.options.types import ValueType, spelt
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, checked, needs, one_of
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.times import parse_http_date, read_http_date
from azguard.wire.operations.blobs import (
    BLOB_DELETE_IMMUTABILITY_POLICY,
    BLOB_GET_PROPERTIES,
    BLOB_SET_IMMUTABILITY_POLICY,
    BLOB_SET_LEGAL_HOLD,
)


def _read_end(text: str, name: str) -> datetime:
    """Return a time in whole seconds, as the service keeps it."""
    values.not_empty(text, name)
    try:
        return read_http_date(parse_http_date(text, name))
    except UsageError:
        raise UsageError(f"{name}: {text!r} is not a time", hint="write for example 2031-01-01T00:00:00Z") from None


_TIME = ValueType("time", _read_end)
app = Group("What keeps a blob from being changed and deleted: legal-hold, immutability.")
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
        checked("UNTIL --expiry-time", "a time that is still to come", "retention.set_policy"),
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
