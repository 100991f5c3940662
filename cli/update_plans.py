"""From the options of an update to what the core runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from azguard.accounts import trace
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import update_changes, update_parts
from azguard.cli.context import Environment
from azguard.cli.edit_options import TypedEdit
from azguard.cli.update_options import UpdateOptions
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.updates.plan import RAW_OP, UpdatePlan, choose_op
from azguard.updates.recording import LocalRecords, UpdateRequest
from azguard.updates.resource import UpdatableResource

if TYPE_CHECKING:
    from azguard.tables.update_many import ManyUpdates
    from azguard.updates.doubt import UpdateStatus
    from azguard.updates.recording import UpdateReport

# How long an update is tried for, unless --timeout says otherwise.
_SECONDS = 60.0


def request(env: Environment, target: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> UpdateRequest:
    """Return the update of one resource that the options describe; files that they name are read now and once.

    Raises:
        UsageError: an edit, or what to create, is malformed.
    """
    until = deadline(env, given)
    env.warn_of_end(target, until)
    chosen, change_made = update_changes.parse_edits(target.kind, given, typed)
    change = update_changes.build_change(env, target.kind, given, chosen)
    lease_id = env.reads.choose_lease_id(target, given.lease_id)
    plan = UpdatePlan(
        transform=lambda content: change(target, until, content),
        op=choose_op(target, given.op_id),
        is_keyed=given.op_id is not None,
        change=change_made,
        takes_any_change=given.op_id_any_change,
        typed_transform=update_changes.change_by_type(target, given, chosen),
        create=update_changes.initial_content(target, given, chosen),
        accept=update_changes.output_rule(target, given),
        list_created=update_changes.list_created(target, chosen, is_content=_is_content(target, given)),
        guard_by_lease=given.guard == "lease" or given.tags or target.kind in update_parts.LEASED,
        # Tags have no place for a lineage.
        stamps=not given.no_lineage and not given.tags,
        lease_id=lease_id,
        fence=given.read_fence(),
        ledger=given.by_ledger,
        guard_name=_name_guard(target, given, lease_id),
        wait_lease=given.wait_lease,
        max_attempts=given.read_max_attempts(),
        reach_seconds=_reach_seconds(given),
    )
    return UpdateRequest(
        resource=resource(env, target, given, plan),
        plan=plan,
        deadline=until,
        is_of_metadata=given.is_of_part,
        shows_content=bool(given.command),
    )


def run(env: Environment, request: UpdateRequest, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "UpdateReport":
    """Apply an update; to an append blob, text is appended alone."""
    from azguard.updates import recording

    if given.snapshot_first:
        from azguard.blobs import snapshots

        return snapshots.update_keeping(request, records(env))
    if not given.only_adds_text(request.target.address):
        return recording.update_and_record(request, records(env))
    from azguard.blobs.content import append_write
    from azguard.cli.lease_options import CacheRecords

    text = append_write.TextEdits(
        update_changes.parse_edits(Kind.BLOB, given, typed).edits, CacheRecords(env), env.reads
    )
    return append_write.update_text(request, records(env), text)


def deadline(env: Environment, given: UpdateOptions) -> Deadline:
    """Return a deadline for an update, which begins now."""
    return env.patience(given.timeout, _SECONDS)


def records(env: Environment) -> LocalRecords:
    """Return where an update keeps its records; its story is told for --verbose, with the time elapsed."""
    return LocalRecords(folders=env.folders, reads=env.reads, tell=trace.tell, warn=_warn_once(env))


def _warn_once(env: Environment) -> Callable[[str], None]:
    """Return what prints a warning, but no text twice."""
    said: set[str] = set()

    def warn(text: str) -> None:
        if text not in said:
            said.add(text)
            env.out.warn(text)

    return warn


def many(env: Environment, table: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "ManyUpdates":
    """Return the updates of the entities of a table that match the filter.

    Raises:
        UsageError: an edit or the filter is malformed.
    """
    from azguard.tables import filters
    from azguard.tables.update_many import ManyUpdates

    chosen, change_made = update_changes.parse_edits(Kind.ENTITY, given, typed)
    where = filters.bind_parameters(given.where, given.param or (), "where") or ""
    return ManyUpdates(
        table=table,
        where=where,
        change=update_changes.build_change(env, Kind.ENTITY, given, chosen),
        key=given.op_id,
        change_made=change_made,
        takes_any_change=given.op_id_any_change,
        list_created=update_changes.list_created(table, chosen, is_content=False),
        stamps=not given.no_lineage,
        ledger=given.by_ledger,
        max_attempts=given.read_max_attempts(),
        reach_seconds=_reach_seconds(given),
        query_deadline=env.deadline,
        patience=env.patience(given.timeout, _SECONDS),
        journals=env.folders.attempts,
        tell=lambda target, _, text: trace.tell(f"{target}: {text}"),
        warn=_warn_once(env),
    )


def find_status(env: Environment, target: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "UpdateStatus":
    """Return the outcome of the key that was given; where a change is typed too, of that change.

    Raises:
        Exists: the key names another change.
    """
    from azguard.updates import doubt

    is_compared = given.has_change and not given.op_id_any_change
    key = str(given.op_id)
    # Unless --timeout says otherwise, it is a read like any other.
    until = env.deadline if given.timeout is None else deadline(env, given)
    plan = UpdatePlan(transform=bytes, op=choose_op(target, key), is_keyed=True)
    return doubt.find_status(
        resource(env, target, given, plan),
        plan.op,
        until,
        is_keyed=not key.startswith(RAW_OP),
        change=update_changes.parse_edits(target.kind, given, typed).change if is_compared else None,
    )


def resource(env: Environment, target: Target, given: UpdateOptions, plan: UpdatePlan) -> UpdatableResource:
    """Return what is updated, as the core knows it."""
    lease_id = plan.lease_id
    if target.kind is Kind.ENTITY:
        from azguard.tables.updates import LedgeredEntity, VersionedEntity

        if not given.by_ledger:
            return VersionedEntity(target)
        change = None if plan.change is None else plan.change.digest
        return LedgeredEntity(target, op=plan.op, asks=plan.is_keyed, change=change)
    if target.kind is Kind.QUEUE:
        from azguard.queues.queues import QueueMetadataUpdate

        return QueueMetadataUpdate(target)
    if target.kind in (Kind.SHARE, Kind.DIR, Kind.FILE):
        from azguard.cli import file_options
        from azguard.files.updates import DirectoryMetadata, FileContent, LeasedMetadata

        if target.kind is Kind.DIR:
            return DirectoryMetadata(target)
        leased = LeasedMetadata if given.metadata else FileContent
        return leased(target, file_options.guarding(env), lease_id)
    return _blob_part(env, target, given, lease_id)


def _blob_part(env: Environment, target: Target, given: UpdateOptions, lease_id: str | None) -> UpdatableResource:
    if given.tags or target.kind is Kind.CONTAINER:
        from azguard.blobs.update_parts import BlobTags, ContainerMetadata

        if given.tags:
            return BlobTags(target, lease_id, given.read_fence(), reads=env.reads)
        return ContainerMetadata(target, lease_id)
    keeper = None
    if given.snapshot_first:
        from azguard.blobs.snapshots import VersionKeeper

        keeper = VersionKeeper(target)
    if given.metadata:
        from azguard.blobs.update_parts import BlobMetadata

        return BlobMetadata(target, lease_id, given.read_fence(), keeper)
    from azguard.blobs.update_content import BlobContent

    return BlobContent(target, lease_id, given.read_fence(), keeper)


def _is_content(target: Target, given: UpdateOptions) -> bool:
    return target.kind is not Kind.ENTITY and not given.is_of_part


def _name_guard(target: Target, given: UpdateOptions, lease_id: str | None) -> str | None:
    if target.kind in update_parts.COMPARED:
        return "compare"
    is_leased = target.kind in update_parts.LEASED and lease_id is not None
    return "lease" if given.tags or is_leased else None


def _reach_seconds(given: UpdateOptions) -> float | None:
    """Return how long the service may be unreachable: without --timeout as for every other command."""
    return PATIENCE_SECONDS if given.timeout is None else None
