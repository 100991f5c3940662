"""The options of a read-modify-write, and what of them goes together."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

import typer

from azguard.address import Address, Kind
from azguard.cli import options, update_parts, values
from azguard.cli.edit_options import TypedEdit
from azguard.cli.update_parts import PartOptions
from azguard.errors import UsageError
from azguard.updates.plan import RAW_OP

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


AnyChange = Annotated[
    bool, typer.Option("--op-id-any-change", help="Count the key as done, even if it was used for another change.")
]


@dataclass(frozen=True)
class UpdateOptions:
    """The options of safe-update, as typed."""

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- CMD...]",
            help="A command that reads the content from stdin and prints the new one, or edits the file {}.",
        ),
    ] = None
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=JSON", help="Set a value.")] = None
    set_string: Annotated[
        list[str] | None,
        typer.Option("--set-string", metavar="PATH=TEXT", help="Set a text; it needs no JSON quotes."),
    ] = None
    unset: Annotated[list[str] | None, typer.Option("--unset", metavar="PATH", help="Remove a value.")] = None
    increment: Annotated[
        list[str] | None, typer.Option("--increment", metavar="PATH[=N]", help="Add N to a number; by default, 1.")
    ] = None
    merge_patch: Annotated[
        list[str] | None,
        typer.Option("--merge-patch", metavar="FILE|-", help="Apply a JSON merge patch (RFC 7396)."),
    ] = None
    json_patch: Annotated[
        list[str] | None,
        typer.Option("--json-patch", metavar="FILE|-", help="Apply a JSON patch (RFC 6902)."),
    ] = None
    append: Annotated[list[str] | None, typer.Option("--append", metavar="TEXT", help="Add this text at the end.")] = (
        None
    )
    append_line: Annotated[
        list[str] | None,
        typer.Option("--append-line", metavar="TEXT", help="Add this line at the end."),
    ] = None
    metadata: Annotated[
        bool,
        typer.Option("--metadata", help="Update the metadata, not the content."),
    ] = False
    tags: Annotated[bool, typer.Option("--tags", help="Update the index tags, not the content.")] = False
    allow_race: update_parts.AllowRace = False
    create: Annotated[
        str | None,
        typer.Option(
            "--create",
            metavar="[INITIAL]",
            help="Create it from INITIAL if it is missing.",
        ),
    ] = None
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Let the output be empty.")] = False
    any_content: Annotated[bool, typer.Option("--any-content", help="Let JSON become something else.")] = False
    snapshot_first: options.SnapshotFirst = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference; write nothing.")] = False
    op_id: Annotated[
        str | None,
        typer.Option(
            "--op-id",
            metavar="KEY",
            help="Apply this change at most once for KEY, such as the id of a CI run.",
        ),
    ] = None
    op_id_any_change: AnyChange = False
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Ask for the outcome of --op-id.",
        ),
    ] = False
    guard: Annotated[
        str | None,
        typer.Option(
            "--guard",
            metavar="lineage|lease|ledger",
            help="Choose the guard; see azguard help updates.",
        ),
    ] = None
    lease_id: Annotated[
        str | None, typer.Option("--lease-id", metavar="ID|@held", help="Use the lease that you hold.")
    ] = None
    fence: Annotated[
        str | None,
        typer.Option(
            "--fence",
            metavar="N",
            help="Your lock's number: refused if a later holder has written.",
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="ODATA", help="Update each entity of the table that matches."),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME[:TYPE]=VALUE", help="Give @NAME in the filter this value."),
    ] = None
    jobs: Annotated[
        str | None, typer.Option("--jobs", metavar="N", help="Update N entities at a time; by default, 16.")
    ] = None
    wait_lease: Annotated[bool, typer.Option("--wait-lease", help="Wait until another holder releases its lease.")] = (
        False
    )
    no_lineage: options.NoLineage = False
    max_attempts: Annotated[str | None, typer.Option("--max-attempts", metavar="N", help="Give up after N writes.")] = (
        None
    )
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Give up after this long; by default, 60s."),
    ] = None

    @property
    def is_of_part(self) -> bool:
        """Return whether it is not the content that is updated."""
        return self.metadata or self.tags

    @property
    def has_change(self) -> bool:
        """Return whether it says what to change; a question for the outcome of a key need not."""
        return bool(self._edits or self.command)

    @property
    def by_ledger(self) -> bool:
        """Return whether the update is to be kept in a ledger."""
        return self.guard == "ledger"

    def only_adds_text(self, address: Address) -> bool:
        """Return whether a blob could be updated by appending alone, which keeps neither a key nor a fence."""
        kept = (self.op_id, self.fence, self.max_attempts, self.command)
        adds = set(self._edits) <= {"--append", "--append-line"}
        return address.kind is Kind.BLOB and adds and not self.is_of_part and not self.wait_lease and not any(kept)

    def read_fence(self) -> int | None:
        """Return the number of the lock that the caller holds."""
        if self.fence is None:
            return None
        from azguard.conditions import fences

        return fences.parse(self.fence)

    def read_max_attempts(self) -> int | None:
        """Return how many writes may be sent; None is as many as the deadline allows."""
        return values.count(self.max_attempts, "--max-attempts")

    def read_jobs(self) -> int:
        """Return how many entities are updated at a time."""
        from azguard.requests import pool

        return pool.DEFAULT_JOBS if self.jobs is None else values.whole(self.jobs, "--jobs", 1, pool.MOST_JOBS)

    def edits_in(self, order: Sequence[str]) -> tuple[TypedEdit, ...]:
        """Return the built-in edits as (option, text) in the order in which their names were typed."""
        texts = {name: iter(getattr(self, name) or ()) for name in _EDITS}
        return tuple((_EDITS[name], next(texts[name])) for name in order if name in _EDITS)

    def check(self, address: Address) -> None:
        """Refuse what contradicts itself, is malformed, or does not apply to what is updated.

        Raises:
            UsageError: names the options, and what goes instead.
        """
        if self.where is None and (self.param or self.jobs):
            raise UsageError("--param and --jobs are for many entities", hint="choose them with --where")
        values.not_empty(self.op_id, "--op-id")
        if self.op_id_any_change and self.op_id is None:
            raise UsageError("--op-id-any-change is about a key", hint="name it with --op-id KEY")
        if self.status:
            self._check_status()
        if self.where is not None:
            self._check_where(address)
        kind = address.kind if self.where is None else Kind.ENTITY
        self._check_kind(kind)
        update_parts.check(PartOptions(**{each.name: getattr(self, each.name) for each in fields(PartOptions)}), kind)
        self._check_guard()
        self._check_output_options(kind)
        if not self.status or self.has_change:
            self._check_change()
        self._check_numbers()

    def _check_status(self) -> None:
        if self.dry_run or self.op_id is None or self.where is not None:
            raise UsageError(
                "--status asks for the outcome of an update",
                hint="name it with --op-id KEY, without --dry-run or --where",
            )

    def _check_where(self, address: Address) -> None:
        if address.kind is not Kind.TABLE:
            raise UsageError(f"--where is about the entities of a table, not {address}", hint="table:NAME")
        values.not_empty(self.where, "--where")
        if self.create is not None:
            raise UsageError(
                "--create and --where do not go together", hint="name the entity: entity:TABLE/PARTITION/ROW"
            )
        if self.op_id is not None and self.op_id.startswith(RAW_OP):
            raise UsageError("--op-id: an id that azguard made is of one entity", hint="choose a key of your own")

    def _check_kind(self, kind: Kind) -> None:
        """Refuse a kind of resource that cannot be updated, and options that are not for it."""
        if kind is Kind.ENTITY:
            self._check_for_entity()
        elif kind is Kind.TABLE:
            raise UsageError(
                "which entities of the table?", hint="entity:TABLE/PARTITION/ROW, or safe-update with --where FILTER"
            )
        elif kind not in (Kind.BLOB, *update_parts.COMPARED, *update_parts.LEASED):
            raise UsageError(
                f"the content of {kind.one} cannot be updated",
                hint="blob:CONTAINER/NAME, file:SHARE/PATH, entity:TABLE/PARTITION/ROW, or --metadata of what has them",
            )
        elif self.by_ledger:
            raise UsageError("--guard ledger is for entities", hint="for a blob that others write: --guard lease")

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
        if (option := values.first_given(given)) is not None:
            raise UsageError(f"{option} does not apply to an entity", hint="leave it out")

    def _check_guard(self) -> None:
        """Refuse pairs of options that say opposite things of the guard."""
        values.choice(self.guard, "--guard", ("lineage", "lease", "ledger"))
        if self.guard == "lease" and self.lease_id is not None:
            raise _contradict("--guard lease", "--lease-id")
        if self.guard == "lineage" and self.no_lineage:
            raise _contradict("--guard lineage", "--no-lineage")
        if self.no_lineage and self.op_id is not None and not self.by_ledger:
            raise _contradict("--no-lineage", "--op-id", ": the lineage is where the id is kept")
        if self.wait_lease and self.lease_id is not None:
            raise _contradict("--wait-lease", "--lease-id")

    def _check_output_options(self, kind: Kind) -> None:
        option = values.first_given({"--allow-empty": self.allow_empty, "--any-content": self.any_content})
        if option is None:
            return
        if self.is_of_part or kind not in (Kind.BLOB, Kind.FILE):
            what = "metadata, which is" if self.is_of_part else "an entity, which is"
            raise UsageError(f"{option} does not apply to {what} always a JSON object", hint="leave it out")
        if not self.command:
            raise UsageError(f"{option} is about what a command prints, and there is none", hint="leave it out")

    def _check_change(self) -> None:
        if self._edits and self.command:
            from azguard.processes.filter_command import show

            hint = "run safe-update twice; if it is part of an edit, write the edit as one word, such as 'replicas=3'"
            raise UsageError(f"{self._edits[0]} and a command do not go together: {show(self.command)}", hint=hint)
        if not self._edits and not self.command:
            raise UsageError(
                "nothing to do: no edit and no command",
                hint="add --set PATH=JSON or another edit, or a command: -- jq '.replicas += 1'",
            )
        if self.create is not None and self.metadata:
            hint = "create the blob first: azguard blob put"
            raise UsageError("--create and --metadata do not go together", hint=hint)

    def _check_numbers(self) -> None:
        """Refuse numbers that are malformed."""
        self.read_fence()
        self.read_max_attempts()
        if self.jobs is not None:
            self.read_jobs()

    @property
    def _edits(self) -> list[str]:
        return [option for name, option in _EDITS.items() if getattr(self, name)]


def _contradict(one: str, other: str, why: str = "") -> UsageError:
    return UsageError(f"{one} and {other} contradict each other{why}", hint="leave one of them out")
