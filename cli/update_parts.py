"""What goes together in an update of tags, of what is only compared, or of what is written under a lease."""

from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import values
from azguard.errors import UsageError

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
    typer.Option(
        "--allow-race", help="For a container, queue or directory: accept a gap between comparing and writing."
    ),
]


@dataclass(frozen=True)
class PartOptions:
    """What of the options of an update matters here."""

    metadata: bool
    tags: bool
    allow_race: bool
    status: bool
    snapshot_first: bool
    wait_lease: bool
    no_lineage: bool
    lease_id: str | None
    guard: str | None
    op_id: str | None
    create: str | None
    fence: str | None


def check(given: PartOptions, kind: Kind) -> None:
    """Refuse what does not apply to the part that is updated.

    Raises:
        UsageError: names the option, and what goes instead.
    """
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


def _check_compared(given: PartOptions, kind: Kind) -> None:
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


def _check_leased(given: PartOptions, kind: Kind) -> None:
    if kind is Kind.SHARE and not given.metadata:
        raise UsageError("of a share only the metadata can be updated", hint="add --metadata; or file:SHARE/PATH")
    refused = {f"--guard {given.guard}": given.guard in ("lineage", "ledger"), "--fence": bool(given.fence)}
    if (option := values.first_given(refused)) is not None:
        raise UsageError(f"{option} does not apply to {kind.one}: a lease guards each write", hint="leave it out")


def _check_tags(given: PartOptions, kind: Kind) -> None:
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
