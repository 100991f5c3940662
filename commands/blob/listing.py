"""``azguard blob``: show, exists, list, wait."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.blobs import listing
from azguard.cli import completers, context
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.options.types import TEXT, ValueType, choice, read_included
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, needs, one_of
from azguard.errors import NotFound, UsageError
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.times import span
from azguard.wire.operations.blobs import BLOB_GET_PROPERTIES
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from azguard.blobs.waiting import Waiting

_UNTIL = ("exists", "absent", "changed", "unleased")
_KINDS = ValueType("kinds", lambda text, _: read_included(text))

_LAST = "@last"
_NOW = {
    "exists": "does not exist yet",
    "absent": "still exists",
    "changed": "is unchanged",
}
app = Group()


@app.command(spec=common.operation(BLOB_GET_PROPERTIES))
def show(env: Environment, blob: common.Blob) -> None:
    """Show a blob's properties, without its content.

    Examples:
        azguard blob show site/config.json
        azguard blob show site/config.json --query etag -o tsv
        azguard blob show site/config.json -o json > properties.json

    Topics: conditions
    """
    target = env.locate(blob, Kind.BLOB)
    env.out.show(listing.show(target, env.conditions(target), env.deadline))


@app.command(spec=common.operation(BLOB_GET_PROPERTIES))
def exists(env: Environment, blob: common.Blob) -> int:
    """Exit 0 if the blob exists, 44 if not. Where its container does not exist, an error says so (44).

    Examples:
        azguard blob exists site/config.json
        azguard blob exists site/config.json -o none && echo "it is there"

    Topics: conditions
    """
    from azguard.resources import lifecycles

    target = env.locate(blob, Kind.BLOB)
    conditions = env.conditions(target)
    found = lifecycles.ask_whether_exists(target, lambda: listing.show(target, conditions, env.deadline))
    return env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(
    name="list",
    spec=common.operation(CONTAINER_LIST_BLOBS),
    rules=(
        needs("--show-next-marker", "--num-results", "the list is whole without it"),
        checked("--marker --show-next-marker", "no versions, snapshots or deleted blobs", "listing.list_"),
    ),
)
def list_(
    env: Environment,
    container: common.Container,
    prefix: common.Prefix = None,
    delimiter: Annotated[
        str | None,
        option("--delimiter", "TEXT", "Show one line for all names that are equal up to this text.", TEXT),
    ] = None,
    include: Annotated[
        Sequence[str] | None,
        option(
            "--include", "KINDS", "Show also metadata, snapshots, versions, deleted, tags, uncommittedblobs.", _KINDS
        ),
    ] = None,
    num_results: common.Limit = None,
    marker: Annotated[
        str | None, option("--marker", "MARKER", "Go on where a list with --num-results was cut.", TEXT)
    ] = None,
    show_next_marker: Annotated[
        bool, flag("--show-next-marker", "If the list is cut, end the result with its marker.")
    ] = False,
) -> None:
    """List a container's blobs.

    If --num-results cuts the list, stderr tells the marker with which the next list goes on. With --show-next-marker
    the last item of the result tells it, as next_marker. Blobs that are written between two lists appear where their
    names stand.

    Examples:
        azguard blob list site
        azguard blob list site --query '[].name' -o tsv
        azguard blob list site --num-results 100 --show-next-marker
    """
    target = env.locate(container, Kind.CONTAINER)
    env.conditions(target)
    kinds = list(include or ())
    if listing.repeat_names(kinds) and (marker is not None or show_next_marker):
        raise UsageError(
            "a list of versions, snapshots or deleted blobs has no marker: those of one blob may stand on two pages",
            hint="leave --include out, or list them all",
        )
    cut: list[str] = []
    found = listing.list_blobs(
        target,
        env.deadline,
        prefix=prefix,
        delimiter=delimiter,
        include=kinds,
        limit=num_results,
        marker=marker,
        tell=cut.append,
    )
    # Known once the others were shown.
    last = map(listing.NextMarker, cut)
    env.out.show_each(chain(found, last) if show_next_marker else found)
    if cut and not show_next_marker:
        env.out.info(f"there are more: --marker {command_line.quote(cut[0])}")


@app.command(
    "wait",
    spec=common.remote("blob wait only looks, until the blob is as you say", takes_key=True),
    rules=(
        one_of("--until", "what to wait for", f"--until {'|'.join(_UNTIL)}"),
        needs("--if-none-match", "--until=changed", hint="--until changed"),
    ),
)
def wait_for_blob(
    env: Environment,
    blob: common.Blob,
    until: Annotated[
        str | None,
        option("--until", "|".join(_UNTIL), "Say what to wait for.", choice),
    ] = None,
    if_none_match: Annotated[
        str | None,
        option(
            "--if-none-match",
            "ETAG|@last",
            "With --until changed: from this version.",
            completer=completers.etags,
            otherwise="from what you last read",
        ),
    ] = None,
    *,
    given: common.WaitOptions,
    timeout: common.NoTimeout = None,
) -> None:
    """Wait until a blob exists, is absent, has changed or is not leased.

    changed: the blob is another version than the one that you last read, or than the ETag of --if-none-match. If it is
    deleted meanwhile, the exit status is 44. To wait and read in one go: azguard blob get --wait-changed.

    absent: where the container does not exist, nothing proves that the name is right: the exit status is 44.

    Each look is one small request, every few seconds, for as long as --wait says. With --no-wait there is one look.
    Errors that may pass are tolerated until the time is up. A change that is undone between two looks is not noticed.

    Examples:
        azguard blob wait site/config.json --until exists --wait 10m
        azguard blob wait site/config.json --until changed --if-none-match 0x8DC1
        azguard blob wait site/config.json --until unleased && echo free

    Topics: conditions, leases
    """
    from azguard.blobs import waiting

    assert until is not None  # says the rule
    which = waiting.Until(until)
    target = env.locate(blob, Kind.BLOB)
    conditions = Conditions()
    if which is waiting.Until.CHANGED:
        conditions = resolve_change(env, target, BLOB_GET_PROPERTIES, if_none_match)
    env.out.show(waiting.wait(target, which, conditions, describe_wait(env, target, which, given.wait_seconds)))


def describe_wait(env: Environment, target: Target, until: str, seconds: float) -> "Waiting":
    """Return how to wait for so many seconds, telling what is waited for; for none, it is looked once."""
    import random

    from azguard.blobs.waiting import Waiting
    from azguard.cli.options import leases

    patience = env.patience(seconds or None, seconds)

    def tell() -> None:
        env.out.info(f"waiting up to {span(seconds)}: {target.address} {_NOW[until]}")

    context.warn_of_end(target, patience.seconds, env.out.warn_once)
    return Waiting(
        patience=patience,
        tell=lambda: tell() if seconds else None,
        tell_lease=lambda state: leases.say_waiting(env, state),
        uniform=random.SystemRandom().uniform,
    )


def resolve_change(env: Environment, target: Target, operation: Operation, etag: str | None = None) -> Conditions:
    """Return the conditions of a read that answers only with another version: than ``etag``, or than what was read.

    Raises:
        Changed: this scope never read the blob, so that there is no version to compare with.
    """
    from azguard.blobs.waiting import check_was_read

    asked = RequestedConditions.of(env.shared)
    if etag is not None:
        asked = replace(asked, if_none_match=etag)
    if asked.if_none_match is None and asked.if_modified_since is None:
        asked = replace(asked, if_none_match=_LAST)
    if asked.if_none_match == _LAST:
        check_was_read(target, env.reads.find_last(target))
    return env.reads.resolve_conditions(operation, asked, target)
