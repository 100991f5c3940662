"""``azguard blob``: copy, abort-copy, snapshot, restore, undelete."""

from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers, signals
from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.content import RULES, declare_abort, find_ends, locate_source
from azguard.cli.options.types import TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import one_of
from azguard.frozen import frozen
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles
from azguard.wire.operations.blobs import BLOB_ABORT_COPY, BLOB_COPY, BLOB_SNAPSHOT, BLOB_UNDELETE

if TYPE_CHECKING:
    from azguard.blobs.copies import BlobCopy, CopySettings
    from azguard.requests.results import Written
    from azguard.resources.copies import Copied

_Destination = Annotated[
    str,
    argument("BLOB", "The destination: CONTAINER/NAME, or its URL.", completer=completers.blobs),
]


@frozen
class CopyOptions:
    """The options of blob copy."""

    source: Annotated[
        str | None,
        option(
            "--source, --source-uri",
            "BLOB|URL",
            "Copy this; the only word is then the destination.",
            TEXT,
            completer=completers.blobs,
        ),
    ] = None
    source_sas: common.SourceSas = None
    waiting: common.OptionalWaitOptions = field(default_factory=common.OptionalWaitOptions)
    metadata: common.Metadata = None
    tags: common.Tags = None
    tier: common.Tier = None
    if_exists: common.IfExists = None
    no_lineage: common.NoLineage = False

    RULES: ClassVar = (*RULES,)

    def build_settings(self) -> "CopySettings":
        from azguard.blobs.copies import CopySettings

        return CopySettings(metadata=self.metadata, tags=self.tags or {}, tier=self.tier)


app = Group()


@app.command(spec=common.operation(BLOB_COPY))
def copy(
    env: Environment,
    blob: Annotated[
        str,
        argument("SOURCE", "The blob, snapshot or version to copy, or its URL.", completer=completers.blobs),
    ],
    to: Annotated[
        str | None, argument("DESTINATION", "Where it goes: CONTAINER/NAME.", completer=completers.blobs)
    ] = None,
    *,
    given: CopyOptions,
) -> None:
    """Copy a blob over the version you have seen, or to where nothing is.

    The source comes first, as with cp. It is an address in the same account, or a URL. For a source in another account
    the URL has a SAS, or --source-sas has it.

    The service copies the content and its headers. azguard sends the metadata of the source along, unless you give
    --metadata, which replaces all of it. Index tags, the access tier and snapshots are not copied: set --tags and
    --tier.

    One version of the source is copied. If the source changes before the copy begins, azguard reads its metadata
    again. With --source-if-match the exit status is then 42. The error says which side has changed.

    Within an account a copy usually ends at once. From another account it may take hours: then copy_status is pending,
    and the destination cannot be written until the copy ends. --wait waits for the end; if the copy is
    still pending then, the exit status is 75, and the copy goes on. If it fails or is aborted, an empty blob remains.

    With --fence the number of your lock guards the destination, not the version.

    Examples:
        azguard blob copy site/config.json site/copy.json
        azguard blob copy site/config.json site/copy.json --wait 1h
        azguard blob copy site/config.json site/copy.json --if-exists skip

    Topics: copies, conditions, fences
    """
    from azguard.blobs import copies
    from azguard.blobs.content.upload import create_only

    source, destination = find_ends(blob, to, given.source)
    target = env.locate(destination, Kind.BLOB, writable=True)
    skip = given.if_exists is not None
    plan = copies.BlobCopy(
        target=target,
        source=locate_source(env, target, source, given.source_sas),
        settings=given.build_settings(),
        conditions=create_only(target) if skip else env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        has_lineage=not given.no_lineage,
    )
    copied = lifecycles.create_unless_exists(
        lambda: copies.copy(plan), lambda: lifecycles.find_existing(target, plan.op, plan.deadline), skip=skip
    )
    if given.waiting.wait is not None and isinstance(copied, copies.BlobCopied):
        _say_waiting(env, copied)
        patience = env.patience(given.waiting.wait, given.waiting.wait)
        with signals.heed(), env.out.progress_bar(f"copy {target}") as progress:
            copied = copies.await_copy(copied, target, patience, progress.at)
    _record(env, target, copied, plan)
    env.out.show(copied)


declare_abort(app, Noun(Kind.BLOB, _Destination, "site/copy.json", "copies"), BLOB_ABORT_COPY)


@app.command(spec=common.operation(BLOB_SNAPSHOT))
def snapshot(
    env: Environment, blob: common.Blob, metadata: common.Metadata = None, no_lineage: common.NoLineage = False
) -> None:
    """Keep a blob as it is now. The blob itself does not change.

    The snapshot_address of the result is taken by all commands that read a blob, and by blob restore. With --metadata
    the snapshot has this metadata and none of the blob's.

    azguard marks the snapshot in its metadata, so that it finds it after a lost answer. With --no-lineage, and with
    --if-tags, it cannot: then the exit status is 74, and the snapshot may be there.

    Examples:
        azguard blob snapshot site/config.json
        azguard blob snapshot site/config.json --etag @last
        azguard blob snapshot site/config.json --query snapshot_address -o tsv

    Topics: snapshots, conditions
    """
    from azguard.blobs import snapshots

    target = env.locate(blob, Kind.BLOB, writable=True)
    given = snapshots.Snapshot(
        target=target,
        conditions=env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        metadata=metadata,
        has_lineage=not no_lineage,
    )
    env.out.show(snapshots.take_snapshot(given))


@app.command(
    spec=common.operation(BLOB_COPY),
    rules=(one_of("--from", hint="--from snapshot restores the newest snapshot"),),
)
def restore(
    env: Environment,
    blob: common.Blob,
    from_: Annotated[
        str | None,
        option(
            "--from",
            "ID|snapshot|version",
            "Restore the kept version with this id, or the newest one; always needed.",
            TEXT,
            completer=completers.kept_versions,
        ),
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Show the difference; write nothing.")] = False,
    no_lineage: common.NoLineage = False,
) -> None:
    """Write a snapshot or an earlier version of a blob over the version you have seen.

    --from snapshot is the newest snapshot, and --from version the version before the current one. To name another, give
    the id that blob list --include snapshots,versions shows, also as snapshot=ID or versionid=ID; or its address.

    Content, headers, metadata and index tags are those that were kept. If the blob was deleted, it is created. If it
    exists and you never read it, the exit status is 45.

    --dry-run shows what would change in the content, the headers, the metadata and the tags, and says if the restore
    would be refused now.

    Examples:
        azguard blob restore site/config.json --from snapshot
        azguard blob restore site/config.json --from snapshot --dry-run
        azguard blob restore site/config.json --from snapshot --etag @last

    Topics: snapshots, conditions
    """
    from azguard.blobs import copies

    target = env.locate(blob, Kind.BLOB, writable=True)
    plan = copies.BlobCopy(
        target=target,
        source=target,
        settings=copies.CopySettings(keeps_tags=True),
        conditions=env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        has_lineage=not no_lineage,
    )
    # Before the look for what was kept: a condition that cannot be is refused before any request.
    plan.check()
    plan = replace(plan, source=addresses.locate_kept(env, target, from_ or ""))
    if dry_run:
        _show_preview(env, plan)
        return
    copied = copies.copy(plan)
    _record(env, target, copied, plan)
    env.out.show(copied)


def _show_preview(env: Environment, plan: "BlobCopy") -> None:
    from azguard.blobs import snapshots

    found = snapshots.preview_restore(plan)
    env.out.show_preview(found, found.diff, f"{plan.target} would not change")
    if found.reason is not None:
        env.out.info(f"the restore would be refused now: {found.reason}")


@app.command(spec=common.operation(BLOB_UNDELETE))
def undelete(env: Environment, blob: common.Blob) -> None:
    """Bring back a deleted blob and its snapshots, while the account still keeps them.

    The account must have soft delete. A blob that is there stays as it is. Where the account keeps versions, it may
    have no current version afterwards (exit 44): restore one. The emulator cannot do this (exit 40).

    Examples:
        azguard blob undelete site/config.json

    Topics: snapshots
    """
    from azguard.blobs import snapshots

    target = env.locate(blob, Kind.BLOB, writable=True)
    env.conditions(target)
    env.out.show(snapshots.undelete(target, env.deadline))


def _say_waiting(env: Environment, copied: "Copied") -> None:
    """Say that a copy is waited for, and that it goes on if the wait is interrupted."""
    if copied.copy_status != "success":
        name = copied.address.partition(":")[2]
        env.out.info(f"waiting for copy {copied.copy_id} to {name}; it goes on if you stop waiting")


def _record(env: Environment, target: Target, copied: "Written", plan: "BlobCopy") -> None:
    """Record the version that a copy has written; a copy that is pending gets another version when it ends."""
    if getattr(copied, "copy_status", None) == "pending":
        env.reads.forget(target)
        return
    env.reads.record(target, copied, lineage=plan.stamp)
