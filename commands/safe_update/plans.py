"""From the options of ``safe-update`` and ``edit`` to what the core runs."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options.types import TEXT
from azguard.cli.parsing.rows import option
from azguard.cli.rules import Rule, checked, only_for
from azguard.commands.safe_update import options, typed_edits
from azguard.commands.safe_update.options import TypedEdit, UpdateOptions, WriteOptions
from azguard.documents import formats
from azguard.frozen import frozen
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.updates import doubt
from azguard.updates.recording import LocalRecords, UpdateReport, UpdateRequest, update_and_record
from azguard.updates.resource import RAW_OP, UpdatableResource, UpdateHooks, UpdatePlan, choose_op
from azguard.wire import listeners

if TYPE_CHECKING:
    from azguard.processes.file_command import Editor
    from azguard.tables.update_many import ManyUpdates
    from azguard.updates.doubt import UpdateStatus
    from azguard.updates.editing import EditTools


# What was made of a source of a content type is refused by TransformFailed.
_Check = Callable[[bytes, bytes, str | None], None]


def request(env: Environment, target: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> UpdateRequest:
    """Return the update of one resource that the options describe; files that they name are read now and once.

    Raises:
        UsageError: an edit, or what to create, is malformed.
    """
    until = deadline(env, given)
    env.warn_of_end(target, until)
    chosen, change_made = typed_edits.parse_edits(target.kind, given, typed)
    change = typed_edits.build_change(env, target.kind, given, chosen)
    lease_id = env.reads.choose_lease_id(target, given.lease_id)
    plan = UpdatePlan(
        transform=lambda content: change(target, until, content),
        op=choose_op(target, given.op_id),
        is_keyed=given.op_id is not None,
        change=change_made,
        takes_any_change=given.op_id_any_change,
        typed_transform=typed_edits.change_by_type(target, given, chosen),
        create=typed_edits.initial_content(target, given, chosen),
        accept=typed_edits.choose_output_rule(target, given),
        list_created=typed_edits.list_created(
            target, chosen, is_content=target.kind is not Kind.ENTITY and not given.is_of_part
        ),
        guard_by_lease=given.guard == "lease" or given.tags or target.kind in options.LEASED,
        # Tags have no place for a lineage.
        stamps=not given.no_lineage and not given.tags,
        lease_id=lease_id,
        fence=given.fence,
        ledger=given.by_ledger,
        guard_name=_name_guard(target, given, lease_id),
        wait_seconds=given.waiting.wait,
        max_attempts=given.max_attempts,
        reach_seconds=_reach_seconds(env, given),
    )
    return UpdateRequest(
        resource=resource(env, target, given, plan),
        plan=plan,
        deadline=until,
        is_of_metadata=given.is_of_part,
        shows_content=bool(given.command),
    )


def run(env: Environment, request: UpdateRequest, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> UpdateReport:
    """Apply an update; to an append blob, text is appended alone."""
    if given.snapshot_first:
        from azguard.blobs import snapshots

        return snapshots.update_keeping(request, records(env))
    if not given.only_adds_text(request.target.address):
        return update_and_record(request, records(env))
    from azguard.blobs import updates

    text = updates.TextEdits(typed_edits.parse_edits(Kind.BLOB, given, typed).edits, env.lease_records, env.reads)
    return updates.update_text(request, records(env), text)


def deadline(env: Environment, given: UpdateOptions) -> Deadline:
    """Return a deadline for an update, which begins now."""
    # What waits for others is no part of what the requests may take.
    seconds = given.timeout + (given.waiting.wait or 0.0)
    return env.patience(seconds if _is_timed(env) else None, seconds)


def records(env: Environment) -> LocalRecords:
    """Return where an update keeps its records; its story is told for --verbose, with the time elapsed."""
    return LocalRecords(
        folders=env.folders,
        reads=env.reads,
        hooks=UpdateHooks(tell=listeners.tell_listeners, warn=_warn_once(env), once_told=env.once_told.append),
    )


def _warn_once(env: Environment) -> Callable[[str], None]:
    """Return a function that prints a warning, but each text only once."""
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
    from azguard.tables import entities
    from azguard.tables.update_many import ManyUpdates

    chosen, change_made = typed_edits.parse_edits(Kind.ENTITY, given, typed)
    where = entities.bind_parameters(given.where, given.param or (), "where") or ""
    return ManyUpdates(
        table=table,
        where=where,
        change=typed_edits.build_change(env, Kind.ENTITY, given, chosen),
        key=given.op_id,
        plan=UpdatePlan(
            transform=bytes,
            op="",
            change=change_made,
            takes_any_change=given.op_id_any_change,
            list_created=typed_edits.list_created(table, chosen, is_content=False),
            stamps=not given.no_lineage,
            ledger=given.by_ledger,
            max_attempts=given.max_attempts,
            reach_seconds=_reach_seconds(env, given),
        ),
        query_deadline=env.deadline,
        patience=deadline(env, given),
        journals=env.folders.attempts,
        tell=lambda target, _, text: listeners.tell_listeners(f"{target}: {text}"),
        warn=_warn_once(env),
    )


def find_status(env: Environment, target: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "UpdateStatus":
    """Return the outcome of the key that was given; where a change is typed too, of that change.

    Raises:
        Exists: the key names another change.
    """
    is_compared = given.has_change and not given.op_id_any_change
    key = str(given.op_id)
    # Unless --timeout says otherwise, it is a read like any other.
    until = deadline(env, given) if _is_timed(env) else env.deadline
    plan = UpdatePlan(transform=bytes, op=choose_op(target, key), is_keyed=True)
    return doubt.find_status(
        resource(env, target, given, plan),
        plan.op,
        until,
        is_keyed=not key.startswith(RAW_OP),
        change=typed_edits.parse_edits(target.kind, given, typed).change if is_compared else None,
    )


def resource(env: Environment, target: Target, given: UpdateOptions, plan: UpdatePlan) -> UpdatableResource:
    """Return the resource to update, as the core knows it."""
    lease_id = plan.lease_id
    if target.kind is Kind.ENTITY:
        from azguard.tables.updates import LedgeredEntity, VersionedEntity

        if not given.by_ledger:
            return VersionedEntity(target)
        change = None if plan.change is None else plan.change.digest
        return LedgeredEntity(target, op=plan.op, asks=plan.is_keyed, change=change)
    if target.kind in options.COMPARED:
        from azguard.resources import parts, properties
        from azguard.updates.compared import ComparedMetadata

        return ComparedMetadata(target, properties.fetch, parts.send_metadata, lease_id)
    if target.kind in (Kind.SHARE, Kind.FILE):
        from azguard.cli.input import addresses
        from azguard.files.updates import FileContent, LeasedMetadata

        leased = LeasedMetadata if given.metadata else FileContent
        return leased(target, addresses.guarding(env), lease_id)
    return _blob_part(env, target, given, lease_id)


def _blob_part(env: Environment, target: Target, given: UpdateOptions, lease_id: str | None) -> UpdatableResource:
    if given.tags:
        from azguard.blobs.tags import BlobTags

        return BlobTags(target, lease_id, given.fence, reads=env.reads)
    keeper = None
    if given.snapshot_first:
        from azguard.blobs.snapshots import VersionKeeper

        keeper = VersionKeeper(target)
    if given.metadata:
        from azguard.blobs.updates import BlobMetadata

        return BlobMetadata(target, lease_id, given.fence, keeper)
    from azguard.blobs.updates import BlobContent

    return BlobContent(target, lease_id, given.fence, keeper)


def _name_guard(target: Target, given: UpdateOptions, lease_id: str | None) -> str | None:
    if target.kind in options.COMPARED:
        return "compare"
    is_leased = target.kind in options.LEASED and lease_id is not None
    return "lease" if given.tags or is_leased else None


def _reach_seconds(env: Environment, given: UpdateOptions) -> float:
    """Return how long the service may be unreachable: without --timeout as for every other command."""
    return given.timeout if _is_timed(env) else PATIENCE_SECONDS


def _is_timed(env: Environment) -> bool:
    """Return whether --timeout was typed."""
    return "timeout" in env.order


@frozen
class EditorOptions(WriteOptions):
    """The options of edit."""

    resume: Annotated[str | None, option("--resume", "FILE", "Continue the edit that was kept in FILE.", TEXT)] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        only_for("ADDRESS", "blob container queue entity share dir file", hint="entity:TABLE/PARTITION/ROW"),
        checked("--resume", "an edit left the file", "editing.check_resumable"),
    )

    def as_update(self) -> UpdateOptions:
        """Return the options of the update that an edit is: one by a command, which is a person."""
        given = {each.name: getattr(self, each.name) for each in fields(WriteOptions)}
        return UpdateOptions(command=["edit"], **given)

    def read_resumed(self) -> Path | None:
        """Return the file of an earlier edit to go on with.

        Raises:
            UsageError: an edit did not leave it.
        """
        from azguard.updates import editing

        if self.resume is None:
            return None
        path = Path(self.resume).absolute()
        editing.check_resumable(path)
        return path


def tools(
    env: Environment, target: Target, given: UpdateOptions, request: UpdateRequest, editor: "Editor"
) -> "EditTools":
    """Return the tools that a session of editing one resource uses."""
    from azguard.updates.editing import EditTools

    return EditTools(
        run_editor=editor.run,
        ask=streams.asks_to_go_on if streams.on_terminal() else None,
        tell=env.out.say,
        folder=env.folders.kept,
        name=typed_edits.file_name(target, metadata=given.is_of_part),
        check=_rule(target, given, request),
        complete=_complete(target),
    )


def _rule(target: Target, given: UpdateOptions, request: UpdateRequest) -> _Check:
    complete = _complete(target)
    name = target.address.name if target.kind is Kind.BLOB else ""
    is_content = target.kind is Kind.BLOB and not given.is_of_part
    rule = formats.OutputRule(name, given.allow_empty, given.any_content, formats.EDITOR)

    def check(source: bytes, made: bytes, content_type: str | None) -> None:
        if is_content:
            rule.check(source, made, content_type)
            if made and not given.any_content and formats.is_yaml(name, content_type):
                formats.check_yaml(source, made)
        request.resource.canonicalize(complete(source, made))

    return check


def _complete(target: Target) -> Callable[[bytes, bytes], bytes]:
    if target.kind is not Kind.ENTITY:
        return lambda source, made: made
    from azguard.tables import entity_json

    return entity_json.drop_orphan_types
