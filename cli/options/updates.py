"""The options of a read-modify-write, and what of them goes together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from azguard.address import Address, Kind
from azguard.cli.input import values
from azguard.cli.options import common
from azguard.cli.options.types import INITIAL
from azguard.cli.parsing.rows import argument, flag, option
from azguard.errors import UsageError
from azguard.updates.plan import RAW_OP

#: An edit as typed: the option, and its text.
TypedEdit = tuple[str, str]
#: What has metadata whose version the service does not compare → why no lease helps.
COMPARED = {
    Kind.CONTAINER: "its lease keeps no writer of metadata out",
    Kind.QUEUE: "the Queue service has no leases",
    Kind.DIR: "a directory has no lease",
}
#: What is written under a lease always.
LEASED = (Kind.SHARE, Kind.FILE)
AllowRace = Annotated[
    bool,
    flag("--allow-race", "For a container, queue or directory: accept a gap between comparing and writing."),
]
OpId = Annotated[
    str | None,
    option("--op-id", "KEY", "Apply this change at most once for KEY, such as the id of a CI run."),
]
Guard = Annotated[
    str | None,
    option("--guard", "lineage|lease|ledger", "Choose the guard; see azguard help updates."),
]
LeaseId = Annotated[str | None, option("--lease-id", "ID|@held", "Use the lease that you hold.")]
Fence = Annotated[
    str | None,
    option("--fence", "N", "Your lock's number: refused if a later holder has written."),
]
WaitLease = Annotated[bool, flag("--wait-lease", "Wait until another holder releases its lease.")]
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
    bool, flag("--op-id-any-change", "Count the key as done, even if it was used for another change.")
]


@dataclass(frozen=True)
class UpdateOptions:
    """The options of safe-update, as typed."""

    command: Annotated[
        list[str] | None,
        argument(
            "[-- CMD...]", "A command that reads the content from stdin and prints the new one, or edits the file {}."
        ),
    ] = None
    set_: Annotated[list[str] | None, option("--set", "PATH=JSON", "Set a value.")] = None
    set_string: Annotated[
        list[str] | None,
        option("--set-string", "PATH=TEXT", "Set a text; it needs no JSON quotes."),
    ] = None
    unset: Annotated[list[str] | None, option("--unset", "PATH", "Remove a value.")] = None
    increment: Annotated[list[str] | None, option("--increment", "PATH[=N]", "Add N to a number; by default, 1.")] = (
        None
    )
    merge_patch: Annotated[
        list[str] | None,
        option("--merge-patch", "FILE|-", "Apply a JSON merge patch (RFC 7396)."),
    ] = None
    json_patch: Annotated[
        list[str] | None,
        option("--json-patch", "FILE|-", "Apply a JSON patch (RFC 6902)."),
    ] = None
    append: Annotated[list[str] | None, option("--append", "TEXT", "Add this text at the end.")] = None
    append_line: Annotated[
        list[str] | None,
        option("--append-line", "TEXT", "Add this line at the end."),
    ] = None
    metadata: Annotated[
        bool,
        flag("--metadata", "Update the metadata, not the content."),
    ] = False
    tags: Annotated[bool, flag("--tags", "Update the index tags, not the content.")] = False
    allow_race: AllowRace = False
    create: Annotated[
        str | None,
        option("--create", "[INITIAL]", "Create it from INITIAL if it is missing.", INITIAL, bare=""),
    ] = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Let the output be empty.")] = False
    any_content: Annotated[bool, flag("--any-content", "Let JSON become something else.")] = False
    snapshot_first: common.SnapshotFirst = False
    dry_run: Annotated[bool, flag("--dry-run", "Show the difference; write nothing.")] = False
    op_id: OpId = None
    op_id_any_change: AnyChange = False
    status: Annotated[
        bool,
        flag("--status", "Ask for the outcome of --op-id."),
    ] = False
    guard: Guard = None
    lease_id: LeaseId = None
    fence: Fence = None
    where: Annotated[
        str | None,
        option("--where", "ODATA", "Update each entity of the table that matches."),
    ] = None
    param: Annotated[
        list[str] | None,
        option("--param", "NAME[:TYPE]=VALUE", "Give @NAME in the filter this value."),
    ] = None
    jobs: Annotated[str | None, option("--jobs", "N", "Update N entities at a time; by default, 16.")] = None
    wait_lease: WaitLease = False
    no_lineage: common.NoLineage = False
    max_attempts: Annotated[str | None, option("--max-attempts", "N", "Give up after N writes.")] = None
    timeout: Annotated[
        str | None,
        option("--timeout", "DURATION", "Give up after this long; by default, 60s."),
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
        from azguard.guards import fences

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
        _check_part(self, kind)
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
        elif kind not in (Kind.BLOB, *COMPARED, *LEASED):
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


def _check_part(given: UpdateOptions, kind: Kind) -> None:
    """Refuse what does not apply to the part that is updated: content, metadata or tags."""
    if given.snapshot_first and kind is not Kind.BLOB:
        raise UsageError("--snapshot-first is of blobs: nothing else has snapshots", hint="leave it out")
    if kind in COMPARED:
        _check_compared(given, kind)
    elif kind in LEASED and not given.allow_race:
        _check_leased(given, kind)
    elif given.allow_race:
        raise UsageError(
            "--allow-race changes nothing here: the service, or a lease, keeps other writers out", hint="leave it out"
        )
    if given.tags:
        _check_tags(given, kind)


def _check_compared(given: UpdateOptions, kind: Kind) -> None:
    if not given.metadata:
        raise UsageError(f"of {kind.one} only the metadata can be updated", hint="add --metadata --allow-race")
    refused = {"--guard lease": given.guard == "lease", "--wait-lease": given.wait_lease, "--fence": bool(given.fence)}
    if kind is not Kind.CONTAINER:
        refused["--lease-id"] = given.lease_id is not None
    if (option := values.first_given(refused)) is not None:
        raise UsageError(f"{option} does not apply to {kind.one}: {COMPARED[kind]}", hint="leave it out")
    if not given.allow_race and not given.status:
        raise UsageError(
            f"the service compares no version of {kind.one}, so another writer may come between",
            hint="add --allow-race",
        )


def _check_leased(given: UpdateOptions, kind: Kind) -> None:
    if kind is Kind.SHARE and not given.metadata:
        raise UsageError("of a share only the metadata can be updated", hint="add --metadata; or file:SHARE/PATH")
    refused = {f"--guard {given.guard}": given.guard in ("lineage", "ledger"), "--fence": bool(given.fence)}
    if (option := values.first_given(refused)) is not None:
        raise UsageError(f"{option} does not apply to {kind.one}: a lease guards each write", hint="leave it out")


def _check_tags(given: UpdateOptions, kind: Kind) -> None:
    if kind is not Kind.BLOB:
        raise UsageError("--tags is for blobs", hint="leave it out")
    if given.metadata:
        raise UsageError("--tags and --metadata do not go together", hint="run safe-update twice")
    refused = {
        "--op-id": given.op_id is not None,
        "--status": given.status,
        "--snapshot-first": given.snapshot_first,
        "--create": given.create is not None,
        "--guard lineage": given.guard == "lineage",
        "--no-lineage": given.no_lineage,
    }
    if (option := values.first_given(refused)) is not None:
        raise UsageError(
            f"{option} does not apply to tags: they hold no lineage, and a lease guards them", hint="leave it out"
        )


def _contradict(one: str, other: str, why: str = "") -> UsageError:
    return UsageError(f"{one} and {other} contradict each other{why}", hint="leave one of them out")
