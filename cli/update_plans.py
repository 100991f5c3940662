"""From the options of an update to what the core runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from azguard.accounts import trace
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import edit_options, inputs, update_parts
from azguard.cli.context import Environment
from azguard.cli.edit_options import TypedEdit
from azguard.cli.update_options import UpdateOptions
from azguard.documents import edits
from azguard.documents.edits import Edit
from azguard.documents.formats import is_yaml
from azguard.errors import UsageError
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.requests.lineage import KEY
from azguard.updates.op_ids import choose_op
from azguard.updates.plan import UpdatePlan
from azguard.updates.recording import LocalRecords, UpdateRequest
from azguard.updates.resource import UpdatableResource

if TYPE_CHECKING:
    from azguard.tables.update_many import ManyUpdates
    from azguard.updates.result import UpdateReport

# ``yq .a=1 {}`` prints the new content, and leaves the file as it was.
_UNREAD_OUTPUT = (
    "the command printed something and left the file {} as it was; to take its output as the new content, leave {} out"
)
# ``helm repo index --merge {} .`` reads the file, and writes another.
_UNTOUCHED = "the command did not write to its file {}, which is what is read back"
# How long an update is tried for, unless --timeout says otherwise.
_SECONDS = 60.0
#: Makes new content of a resource's content, within a deadline.
Change = Callable[[Target, Deadline, bytes], bytes]


def request(env: Environment, target: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> UpdateRequest:
    """Return the update of one resource that the options describe; files that they name are read now and once.

    Raises:
        UsageError: an edit, or what to create, is malformed.
    """
    until = deadline(env, given)
    env.warn_of_end(target, until)
    chosen = _parse(target.kind, given, typed)
    change = _change(env, target.kind, given, chosen)
    lease_id = env.reads.choose_lease_id(target, given.lease_id)
    plan = UpdatePlan(
        transform=lambda content: change(target, until, content),
        op=choose_op(target, given.op_id),
        typed_transform=_change_by_type(target, given, chosen),
        create=_initial(target, given, chosen),
        accept=_output_rule(target, given),
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
        resource=resource(env, target, given, plan.op, plan.lease_id),
        plan=plan,
        deadline=until,
        is_keyed=given.op_id is not None,
        is_of_metadata=given.is_of_part,
        shows_content=bool(given.command),
    )


def run(env: Environment, request: UpdateRequest, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "UpdateReport":
    """Apply an update; to an append blob, text is appended alone."""
    from azguard.updates import recording

    if given.snapshot_first:
        from azguard.blobs import kept_versions

        return kept_versions.update_keeping(request, records(env))
    if not given.only_adds_text(request.target.address):
        return recording.update_and_record(request, records(env))
    from azguard.blobs import append_updates
    from azguard.cli.lease_options import CacheRecords

    text = append_updates.TextEdits(_parse(Kind.BLOB, given, typed), CacheRecords(env), env.reads)
    return append_updates.update(request, records(env), text)


def deadline(env: Environment, given: UpdateOptions) -> Deadline:
    """Return a deadline for an update, which begins now."""
    return env.patience(given.timeout, _SECONDS)


def records(env: Environment) -> LocalRecords:
    """Return where an update keeps its records; its story is told for --verbose, with the time elapsed."""
    return LocalRecords(folders=env.folders, reads=env.reads, tell=trace.tell)


def many(env: Environment, table: Target, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> "ManyUpdates":
    """Return the updates of the entities of a table that match the filter.

    Raises:
        UsageError: an edit or the filter is malformed.
    """
    from azguard.tables import filters
    from azguard.tables.update_many import ManyUpdates

    where = filters.bind_parameters(given.where, given.param or (), "where") or ""
    return ManyUpdates(
        table=table,
        where=where,
        change=_change(env, Kind.ENTITY, given, _parse(Kind.ENTITY, given, typed)),
        key=given.op_id,
        stamps=not given.no_lineage,
        ledger=given.by_ledger,
        max_attempts=given.read_max_attempts(),
        reach_seconds=_reach_seconds(given),
        query_deadline=env.deadline,
        patience=env.patience(given.timeout, _SECONDS),
        journals=env.folders.attempts,
        tell=lambda target, _, text: trace.tell(f"{target}: {text}"),
    )


def resource(
    env: Environment, target: Target, given: UpdateOptions, op: str, lease_id: str | None = None
) -> UpdatableResource:
    """Return what is updated, as the core knows it."""
    if target.kind is Kind.ENTITY:
        from azguard.tables.ledger import LedgeredEntity
        from azguard.tables.updating import VersionedEntity

        if not given.by_ledger:
            return VersionedEntity(target)
        return LedgeredEntity(target, op=op, asks=given.op_id is not None)
    if target.kind is Kind.QUEUE:
        from azguard.queues.updating import QueueMetadataUpdate

        return QueueMetadataUpdate(target)
    if target.kind in (Kind.SHARE, Kind.DIR, Kind.FILE):
        from azguard.cli import file_options
        from azguard.files.updating_parts import DirectoryMetadata, FileContent, LeasedMetadata

        if target.kind is Kind.DIR:
            return DirectoryMetadata(target)
        leased = LeasedMetadata if given.metadata else FileContent
        return leased(target, file_options.guarding(env), lease_id)
    if given.tags or target.kind is Kind.CONTAINER:
        from azguard.blobs.updating_parts import BlobTags, ContainerMetadata

        if given.tags:
            return BlobTags(target, lease_id, given.read_fence(), reads=env.reads)
        return ContainerMetadata(target, lease_id)
    from azguard.blobs import updating
    from azguard.blobs.kept_versions import VersionKeeper

    made = updating.BlobMetadata if given.metadata else updating.BlobContent
    return made(target, lease_id, given.read_fence(), VersionKeeper(target) if given.snapshot_first else None)


def _name_guard(target: Target, given: UpdateOptions, lease_id: str | None) -> str | None:
    if target.kind in update_parts.COMPARED:
        return "compare"
    is_leased = target.kind in update_parts.LEASED and lease_id is not None
    return "lease" if given.tags or is_leased else None


def _reach_seconds(given: UpdateOptions) -> float | None:
    """Return how long the service may be unreachable: without --timeout as for every other command."""
    return PATIENCE_SECONDS if given.timeout is None else None


def _parse(kind: Kind, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> list[Edit]:
    """Return the edits that were typed; the files of their patches are read here, once."""
    if kind is Kind.ENTITY:
        return [edit_options.parse_for_entity(option, text, inputs.read) for option, text in typed]
    is_of = {"metadata": given.metadata, "tags": given.tags}
    return [edit_options.parse(each, text, inputs.read, **is_of) for each, text in typed]


def _change(env: Environment, kind: Kind, given: UpdateOptions, chosen: list[Edit]) -> Change:
    """Return what changes the content of a resource: the command, or the edits."""
    change = _by_command(env, given) if given.command else _by_edits(kind, chosen, given)
    if kind is not Kind.ENTITY:
        return change

    def change_entity(target: Target, deadline: Deadline, content: bytes) -> bytes:
        from azguard.tables import entity_json

        return entity_json.drop_orphan_types(content, change(target, deadline, content))

    return change_entity


def _by_command(env: Environment, given: UpdateOptions) -> Change:
    command = given.command or []

    def filter_content(target: Target, deadline: Deadline, content: bytes) -> bytes:
        from azguard.processes import file_command, filter_command

        end = deadline.started + deadline.seconds
        environ = {**env.environ, "AZGUARD_ADDRESS": str(target.address)}
        if not file_command.names_file(command):
            return filter_command.run(command, content, environ=environ, deadline=end, clock=deadline.clock)
        printed = _Printed(env)
        name = file_name(target, metadata=given.is_of_part)
        made = file_command.run(
            command, content, name, environ=environ, deadline=end, clock=deadline.clock, relay=printed.take
        )
        if made.content == content and (printed.something or not made.is_touched):
            env.out.warn_once(_UNREAD_OUTPUT if printed.something else _UNTOUCHED)
        return made.content

    return filter_content


class _Printed:
    """What a command prints that edits a file: it goes to stderr, because it is not the content."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.something = False

    def take(self, chunk: bytes) -> None:
        self.something = self.something or bool(chunk)
        self._env.out.pass_on(chunk)


def file_name(target: Target, *, metadata: bool) -> str:
    """Return the name for a file with the content: its end tells programs the format."""
    name = target.address.short
    if metadata:
        return f"{name}.metadata.json"
    return f"{name}.json" if target.kind is Kind.ENTITY else name


def _by_edits(kind: Kind, chosen: list[Edit], given: UpdateOptions) -> Change:
    if kind is Kind.ENTITY:
        from azguard.tables import entity_edits

        return lambda target, deadline, content: entity_edits.apply(chosen, content)
    if given.metadata:
        return lambda target, deadline, content: edits.apply_to_metadata_text(chosen, content, KEY)
    if given.tags:
        return lambda target, deadline, content: edits.apply_to_tags_text(chosen, content)
    return lambda target, deadline, content: edits.apply(chosen, content)


def _change_by_type(
    target: Target, given: UpdateOptions, chosen: list[Edit]
) -> Callable[[bytes, str | None], bytes] | None:
    """Return what edits the content of a blob as its type requires; None for what has one format, and for a command."""
    if given.command or given.is_of_part or target.kind is Kind.ENTITY:
        return None
    name = target.address.name
    return lambda content, content_type: edits.apply(chosen, content, is_yaml=is_yaml(name, content_type))


def _initial(target: Target, given: UpdateOptions, chosen: list[Edit]) -> bytes | None:
    """Return the content to start from where there is nothing; None where nothing may be created.

    Raises:
        UsageError: it is none for this kind of resource.
    """
    if given.create is None:
        return None
    if target.kind is Kind.ENTITY:
        from azguard.tables import entity_edits

        try:
            return entity_edits.build_initial(given.create or None, target.address)
        except UsageError as error:
            raise error.but(message=f"--create: {error.message}") from None
    return edits.initial(given.create or None, chosen, is_yaml=is_yaml(target.address.name, None))


def _output_rule(target: Target, given: UpdateOptions) -> Callable[[bytes, bytes, str | None], None]:
    """Return what refuses what was made; edits of content and what is always JSON need no such rule."""
    if given.tags and given.fence:
        from azguard.conditions import fences

        return fences.refuse_changed_tag
    if given.metadata:
        from azguard.documents.metadata import refuse_made

        return lambda source, made, content_type: refuse_made(made, KEY)
    if not given.command or given.is_of_part or target.kind not in (Kind.BLOB, Kind.FILE):
        return lambda source, made, content_type: None
    from azguard.documents import filter_output
    from azguard.processes import file_command

    maker = filter_output.FILE_COMMAND if file_command.names_file(given.command) else filter_output.FILTER
    return filter_output.OutputRule(target.address.name, given.allow_empty, given.any_content, maker).check
