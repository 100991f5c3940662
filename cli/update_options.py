"""What safe-update's options mean for the kind of resource that is updated."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer

from azguard.accounts import endpoints
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import edit_options, inputs, values
from azguard.cli.context import Environment
from azguard.cli.run_keys import ORDER
from azguard.documents import edits
from azguard.errors import TransformFailed, UsageError
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, is_op, new_op, op_of_key
from azguard.updates.resource import UpdatableResource
from azguard.updates.result import RAW_OP

_EDITS = {"set_": "--set", "unset": "--unset", "increment": "--increment", "merge_patch": "--merge-patch",
          "json_patch": "--json-patch", "append": "--append"}  # fmt: skip
_ADDRESSES = "blob:CONTAINER/NAME or entity:TABLE/PARTITION/ROW"


@dataclass(frozen=True)
class UpdateOptions:
    """The options of safe-update as typed."""

    #: The built-in edits as (option, text), in the order they were typed.
    edits: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    metadata: bool
    create: str | None
    op_id: str | None
    guard: str | None
    lease_id: str | None
    fence: int | None
    wait_lease: bool
    no_lineage: bool
    max_attempts: int | None
    timeout: str | None
    allow_empty: bool = False
    any_content: bool = False

    @property
    def by_ledger(self) -> bool:
        """Return whether the update is to be kept in a ledger."""
        return self.guard == "ledger"

    def check(self, kind: Kind) -> None:
        """Refuse what contradicts itself, or does not apply to the kind of resource.

        Raises:
            UsageError: names what goes instead.
        """
        if kind is Kind.ENTITY:
            self._check_for_entity()
        elif kind is Kind.TABLE:
            raise UsageError(
                "which entities of the table?", hint="--where FILTER, or name one: entity:TABLE/PARTITION/ROW"
            )
        elif kind is not Kind.BLOB:
            raise UsageError(f"safe-update does not take a {kind} address", hint=_ADDRESSES)
        elif self.by_ledger:
            raise UsageError("--guard ledger is for entities", hint="for a blob that others write: --guard lease")
        chosen = values.choice(self.guard, "--guard", ("lineage", "lease", "ledger"))
        if chosen == "lease" and self.lease_id is not None:
            raise UsageError("--guard lease and --lease-id contradict each other", hint="leave one of them out")
        if chosen == "lineage" and self.no_lineage:
            raise UsageError("--guard lineage and --no-lineage contradict each other", hint="leave one of them out")
        if self.no_lineage and self.op_id is not None and chosen != "ledger":
            raise UsageError(
                "--no-lineage and --op-id contradict each other: the lineage is where the id is kept",
                hint="leave one of them out",
            )
        if self.wait_lease and self.lease_id is not None:
            raise UsageError("--wait-lease and --lease-id contradict each other", hint="leave one of them out")
        self._check_output_options(kind)

    def _check_output_options(self, kind: Kind) -> None:
        given = {"--allow-empty": self.allow_empty, "--any-content": self.any_content}
        for option in (option for option, is_given in given.items() if is_given):
            if self.metadata or kind is not Kind.BLOB:
                what = "metadata, which is" if self.metadata else "an entity, which is"
                raise UsageError(f"{option} does not apply to {what} always a JSON object", hint="leave it out")
            if not self.command:
                raise UsageError(f"{option} is about what a command prints, and there is none", hint="leave it out")

    def _check_for_entity(self) -> None:
        if self.guard == "lease":
            raise UsageError(
                "--guard lease: the Table service has no leases",
                hint="--guard ledger is sound beside any writer; "
                "or take a lock for a while: azguard lock run table:NAME",
            )
        given = {
            "--lease-id": self.lease_id is not None,
            "--wait-lease": self.wait_lease,
            "--fence": self.fence is not None,
            "--metadata": self.metadata,
        }
        for option, is_given in given.items():
            if is_given:
                raise UsageError(f"{option} does not apply to an entity", hint="leave it out")


# Makes new content of a resource's content, within a deadline.
Change = Callable[[Target, Deadline, bytes], bytes]


def in_order(ctx: typer.Context) -> tuple[tuple[str, str], ...]:
    """Return the built-in edits as (option, text) in the order they were typed."""
    texts: dict[str, Iterator[str]] = {name: iter(ctx.params.get(name) or ()) for name in _EDITS}
    return tuple((_EDITS[name], next(texts[name])) for name in ctx.meta[ORDER] if name in _EDITS)


def resource(target: Target, asked: UpdateOptions, op: str, lease_id: str | None = None) -> UpdatableResource:
    """Return what is updated, as the core knows it."""
    if target.kind is Kind.ENTITY:
        from azguard.tables.ledger import LedgeredEntity
        from azguard.tables.updating import VersionedEntity

        if not asked.by_ledger:
            return VersionedEntity(target)
        return LedgeredEntity(target, op=op, asks=asked.op_id is not None)
    from azguard.blobs import updating

    made = updating.BlobMetadata if asked.metadata else updating.BlobContent
    return made(target, lease_id, asked.fence)


def changes(env: Environment, kind: Kind, asked: UpdateOptions) -> Change:
    """Return what changes a resource's content: the command, or the edits, whose files are read now and once.

    Raises:
        UsageError: there is nothing to do, or an edit is malformed.
    """
    if asked.edits and asked.command:
        raise UsageError(f"{asked.edits[0][0]} and a command do not go together", hint="run safe-update twice")
    if not asked.edits and not asked.command:
        raise UsageError(
            "nothing to do: no edit and no command",
            hint="add --set PATH=JSON or another edit, or a command: -- jq '.replicas += 1'",
        )
    change = _by_command(env, asked.command) if asked.command else _by_edits(kind, asked)

    def changed(target: Target, deadline: Deadline, content: bytes) -> bytes:
        try:
            made = change(target, deadline, content)
            return _tidied(content, made) if kind is Kind.ENTITY else made
        except RecursionError:
            raise TransformFailed(
                "the content, or what is to be made of it, is nested too deeply",
                address=str(target.address),
                hint="some hundred levels are possible; a command can do more: -- CMD",
            ) from None

    return changed


def _tidied(content: bytes, made: bytes) -> bytes:
    from azguard.tables import entity_json

    return entity_json.drop_orphan_types(content, made)


def accept(target: Target, asked: UpdateOptions) -> Callable[[bytes, bytes, str | None], None]:
    """Return what refuses the output of a command; edits and what is always JSON need no such rule."""
    if not asked.command or asked.metadata or target.kind is not Kind.BLOB:
        return lambda source, made, content_type: None
    from azguard.documents.filter_output import OutputRule

    return OutputRule(target.address.name, asked.allow_empty, asked.any_content).check


def create(target: Target, asked: UpdateOptions) -> bytes | None:
    """Return the content to start from where there is nothing; None where nothing may be created.

    Raises:
        UsageError: it is none for this kind of resource.
    """
    if asked.create is None:
        return None
    if target.kind is Kind.ENTITY:
        from azguard.tables import entity_edits

        try:
            return entity_edits.initial(asked.create or None, target.address)
        except UsageError as error:
            raise error.but(message=f"--create: {error.message}") from None
    if asked.metadata:
        raise UsageError("--create and --metadata do not go together", hint="create the blob first: azguard blob put")
    chosen = [edit_options.parse(option, text, inputs.read) for option, text in asked.edits[:1]]
    return edits.initial(asked.create or None, chosen)


def op(target: Target, key: str | None) -> str:
    """Return the op id of an update: a fresh one, or that of the caller's key.

    Raises:
        UsageError: the key is empty, or looks like an id of ours and is none.
    """
    if key is None:
        return new_op(os.urandom(12))
    if not key.strip():
        raise UsageError("--op-id is empty", hint="an unset shell variable looks like this; leave it out, or set it")
    if not key.startswith(RAW_OP):
        return op_of_key(key, endpoints.plain(target.endpoint), str(target.address))
    found = key.removeprefix(RAW_OP)
    if not is_op(found):
        raise UsageError(
            f"--op-id: {key!r} is not an id that azguard made",
            hint=f"copy it whole from the result, or choose a key of your own that does not begin with {RAW_OP}",
        )
    return found


def _by_command(env: Environment, command: tuple[str, ...]) -> Change:
    def filtered(target: Target, deadline: Deadline, content: bytes) -> bytes:
        from azguard.processes import filter_command

        end = deadline.started + deadline.seconds
        environ = {**env.environ, "AZGUARD_ADDRESS": str(target.address)}
        return filter_command.run(command, content, environ=environ, deadline=end, clock=deadline.clock)

    return filtered


def _by_edits(kind: Kind, asked: UpdateOptions) -> Change:
    if kind is Kind.ENTITY:
        from azguard.tables import entity_edits

        typed = [edit_options.parse_for_entity(option, text, inputs.read) for option, text in asked.edits]
        return lambda target, deadline, content: entity_edits.apply(typed, content)
    chosen = [edit_options.parse(option, text, inputs.read, metadata=asked.metadata) for option, text in asked.edits]
    if asked.metadata:
        return lambda target, deadline, content: edits.apply_to_metadata_text(chosen, content, KEY)
    return lambda target, deadline, content: edits.apply(chosen, content)
