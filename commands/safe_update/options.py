"""The options of a read-modify-write, and what of them goes together."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from azguard.address import Address, Kind
from azguard.cli.options import common
from azguard.cli.options.types import COUNT, DURATION, FENCE, INITIAL, TEXT, choice, whole
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.rules import Rule, any_of, checked, excludes, needs, only_for
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.resources import pool
from azguard.updates.resource import RAW_OP

#: An edit as typed: the option, and its text.
TypedEdit = tuple[str, str]
#: How many seconds an update is tried for.
SECONDS = 60.0
#: What has metadata whose version the service does not compare.
COMPARED = (Kind.CONTAINER, Kind.QUEUE, Kind.DIR)
#: What is written under a lease always.
LEASED = (Kind.SHARE, Kind.FILE)
_EDITS = {
    "set_": "--set",
    "set_string": "--set-string",
    "unset": "--unset",
    "increment": "--increment",
    "merge_patch": "--merge-patch",
    "json_patch": "--json-patch",
    "append": "--append",
    "append_line": "--append-line",
}
_TYPED_EDITS = " ".join(_EDITS.values())


@frozen
class WriteOptions:
    """The options that safe-update and edit share."""

    metadata: Annotated[bool, flag("--metadata", "The part to change: the metadata, not the content.")] = False
    tags: Annotated[bool, flag("--tags", "The part to change: the index tags, not the content.")] = False
    allow_race: Annotated[bool, flag("--allow-race", "Accept a gap between comparing and writing.")] = False
    create: Annotated[
        str | None,
        option("--create", "[INITIAL]", "Create it from INITIAL if it is missing.", INITIAL, bare=""),
    ] = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Let the new content be empty.")] = False
    any_content: Annotated[bool, flag("--any-content", "Let JSON become something else.")] = False
    op_id: Annotated[
        str | None,
        option("--op-id", "KEY", "Apply this change at most once for KEY, such as the id of a CI run.", TEXT),
    ] = None
    op_id_any_change: Annotated[
        bool, flag("--op-id-any-change", "Count the key as done, even if it was used for another change.")
    ] = False
    guard: Annotated[
        str | None,
        option(
            "--guard",
            "lineage|lease|ledger",
            "Choose the guard; see azguard help updates.",
            choice,
        ),
    ] = None
    lease_id: Annotated[str | None, option("--lease-id", "ID|@held", "Use the lease that you hold.")] = None
    fence: Annotated[
        int | None, option("--fence", "N", "Your lock's number: refused if a later holder has written.", FENCE)
    ] = None
    waiting: common.OptionalWaitOptions = field(default_factory=common.OptionalWaitOptions)
    no_lineage: common.NoLineage = False
    timeout: Annotated[float, option("--timeout", "DURATION", "Give up a write after this long.", DURATION)] = SECONDS

    RULES: ClassVar[tuple[Rule, ...]] = (
        needs("--op-id-any-change", "--op-id", "it is about a key"),
        # The kind of resource.
        needs(
            "container: queue: dir: share:",
            "--metadata",
            "only its metadata can be updated",
            "add --metadata; or name a blob, a file or an entity",
        ),
        only_for("--metadata", "blob container queue share dir file"),
        only_for("--tags --snapshot-first --encryption-key --encryption-scope", "blob"),
        only_for("--fence", "blob", "only a blob can keep the number"),
        only_for("--lease-id", "blob container share file"),
        only_for("--wait", "blob share file", "no lease keeps its writers out"),
        only_for(
            "--guard=lease",
            "blob share file",
            "no lease keeps its writers out",
            "of an entity: --guard ledger, which is sound beside any writer",
        ),
        only_for("--guard=ledger", "entity table", hint="for a blob that others write: --guard lease"),
        only_for("--guard=lineage", "blob container queue dir entity table", "a lease guards each write"),
        only_for("--allow-race", "container queue dir", "elsewhere the service, or a lease, keeps other writers out"),
        only_for("--allow-empty --any-content", "blob file", "all else is always a JSON object"),
        needs(
            "container: queue: dir:",
            "--allow-race",
            "the service compares no version, so another writer may come between",
            unless="--status",
        ),
        # The part that is updated.
        excludes("--tags", "--metadata", hint="run safe-update twice"),
        excludes(
            "--tags",
            "--op-id --status --snapshot-first --create --guard=lineage --no-lineage",
            "tags hold no lineage, and a lease guards them",
        ),
        excludes("--metadata --tags", "--allow-empty --any-content", "they are always a JSON object"),
        excludes("--create", "--metadata", hint="create the blob first: azguard blob put"),
        # The guard.
        excludes("--lease-id", "--guard=lease --wait"),
        checked("--lease-id", "@held: this scope holds a lease of it", "requested.resolve_lease_id"),
        excludes("--no-lineage", "--guard=lineage"),
        excludes("--no-lineage", "--op-id", "the lineage is where the id is kept", unless="--guard=ledger"),
    )

    @property
    def is_of_part(self) -> bool:
        """Return whether it is not the content that is updated."""
        return self.metadata or self.tags

    @property
    def by_ledger(self) -> bool:
        """Return whether the update is to be kept in a ledger."""
        return self.guard == "ledger"


@frozen
class _EditOptions:
    """What is to change: a command, or built-in edits."""

    command: Annotated[
        list[str] | None,
        argument(
            "[-- CMD...]", "A command that reads the content from stdin and prints the new one, or edits the file {}."
        ),
    ] = None
    set_: Annotated[list[str] | None, option("--set", "PATH=JSON", "Set a value.")] = None
    set_string: Annotated[
        list[str] | None, option("--set-string", "PATH=TEXT", "Set a text; it needs no JSON quotes.")
    ] = None
    unset: Annotated[list[str] | None, option("--unset", "PATH", "Remove a value.")] = None
    increment: Annotated[
        list[str] | None, option("--increment", "PATH[=N]", "Add N to a number; PATH alone adds 1.")
    ] = None
    merge_patch: Annotated[
        list[str] | None, option("--merge-patch", "FILE|-", "Apply a JSON merge patch (RFC 7396).")
    ] = None
    json_patch: Annotated[list[str] | None, option("--json-patch", "FILE|-", "Apply a JSON patch (RFC 6902).")] = None
    append: Annotated[list[str] | None, option("--append", "TEXT", "Add this text at the end.")] = None
    append_line: Annotated[list[str] | None, option("--append-line", "TEXT", "Add this line at the end.")] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        excludes(
            _TYPED_EDITS,
            "CMD...",
            hint="run safe-update twice; if it is part of an edit, write the edit as one word, such as 'replicas=3'",
        ),
        any_of(
            f"{_TYPED_EDITS} CMD...",
            "nothing to do: no edit and no command",
            "add --set PATH=JSON or another edit, or a command: -- jq '.replicas += 1'",
            unless="--status",
        ),
        checked("CMD...", "it stands after --", "command_line.require_divider"),
        checked("--append --append-line", "of content alone, not of metadata or tags", "typed_edits.parse_edit"),
        checked("--append --append-line", "an entity has no end to add to", "typed_edits.parse_for_entity"),
        checked("--append-line", "one line", "typed_edits._parse_append"),
        checked("--set --set-string --unset --increment", "PATH names one element", "typed_edits._path_of"),
        checked("--set", "PATH=JSON", "typed_edits._parse_set"),
        checked("--set-string", "PATH=TEXT", "typed_edits._parse_set_string"),
        checked("--increment", "N is a number", "typed_edits._parse_increment"),
        checked("--merge-patch --json-patch", "the file holds JSON", "typed_edits._read_json"),
        checked("--json-patch", "the file holds operations", "typed_edits._operations"),
    )

    @property
    def edits(self) -> list[str]:
        """Return the options of the built-in edits that were typed."""
        return [typed for name, typed in _EDITS.items() if getattr(self, name)]


@frozen
class UpdateOptions(WriteOptions, _EditOptions):
    """The options of safe-update."""

    snapshot_first: common.SnapshotFirst = False
    dry_run: Annotated[bool, flag("--dry-run", "Show the difference; write nothing.")] = False
    status: Annotated[bool, flag("--status", "Ask for the outcome of --op-id.")] = False
    where: Annotated[str | None, option("--where", "ODATA", "Update each entity of the table that matches.", TEXT)] = (
        None
    )
    param: common.Param = None
    jobs: Annotated[int, option("--jobs", "N", "Update N entities at a time.", whole(1, pool.MOST_JOBS))] = (
        pool.DEFAULT_JOBS
    )
    max_attempts: Annotated[int | None, option("--max-attempts", "N", "Give up after N writes.", COUNT)] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        only_for("ADDRESS", "blob container queue entity table share dir file"),
        needs("--param --jobs", "--where", "they are for many entities"),
        only_for("--where", "table"),
        needs("table:", "--where", "which entities?", "entity:TABLE/PARTITION/ROW, or add --where FILTER"),
        excludes("--where", "--create", hint="name the entity: entity:TABLE/PARTITION/ROW"),
        needs("--status", "--op-id"),
        excludes("--status", "--dry-run --where", "it asks for the outcome of one update"),
        needs("--allow-empty --any-content", "CMD...", "it is about what a command prints"),
        checked("--where --param", "each @NAME has one value", "entities.bind_parameters"),
        checked("--op-id --where", "an id that azguard made is of one entity", "options.check_key"),
    )

    @property
    def has_change(self) -> bool:
        """Return whether it says what to change; a question for the outcome of a key need not."""
        return bool(self.edits or self.command)

    def only_adds_text(self, address: Address) -> bool:
        """Return whether a blob could be updated by appending alone, which keeps neither a key nor a fence."""
        is_kept = bool(self.op_id or self.max_attempts or self.command or self.waiting.wait) or self.fence is not None
        adds = set(self.edits) <= {"--append", "--append-line"}
        return address.kind is Kind.BLOB and adds and not self.is_of_part and not is_kept

    def edits_in(self, order: Sequence[str]) -> tuple[TypedEdit, ...]:
        """Return the built-in edits as (option, text) in the order in which their names were typed."""
        texts = {name: iter(getattr(self, name) or ()) for name in _EDITS}
        return tuple((_EDITS[name], next(texts[name])) for name in order if name in _EDITS)

    def check_key(self) -> None:
        """Refuse an id that azguard made as the key of many updates: it is of one entity.

        Raises:
            UsageError: the key is such an id.
        """
        if self.where is not None and self.op_id is not None and self.op_id.startswith(RAW_OP):
            raise UsageError("--op-id: an id that azguard made is of one entity", hint="choose a key of your own")
