"""The version of a blob that a write replaces, kept as a snapshot before.

The snapshot is of the very version that the write is for: both name its ETag. So what is replaced is what was kept. If
another writer comes between them, nothing is replaced, and the snapshot is of a version that the other has replaced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import properties, snapshots
from azguard.blobs.snapshots import BlobSnapshot
from azguard.blobs.upload import BlobPut, Upload
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, NotFound, OutcomeUnknown, Unavailable, UsageError
from azguard.requests import commits
from azguard.requests.calls import send_once, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.updates import recording
from azguard.updates.recording import LocalRecords, UpdateRequest
from azguard.updates.result import UpdateReport


@dataclass(frozen=True)
class BlobPutKept(BlobPut):
    """What a put wrote, and the snapshot of what it replaced."""

    #: The address of the snapshot; None where nothing was replaced.
    snapshot: str | None = None


@dataclass(frozen=True)
class UpdateReportKept(UpdateReport):
    """How an update ended, and the snapshot of what it replaced."""

    #: The address of the snapshot; None where nothing was replaced.
    snapshot: str | None = None


@dataclass
class VersionKeeper:
    """Keeps the versions of one blob that one write is about to replace."""

    target: Target
    #: The snapshots, by the ETag of the version; the last is of the version that the last attempt was for.
    made: dict[str, BlobSnapshot] = field(default_factory=dict)

    def keep(self, etag: str, lease_id: str | None, deadline: Deadline) -> None:
        """Keep a version, once.

        Raises:
            Changed: it is not the current version any more.
            Unavailable: it is not known to be kept, so that nothing was written.
        """
        if etag in self.made:
            return
        given = snapshots.Snapshot(
            target=self.target,
            conditions=Conditions({"If-Match": etag}, "if-match", etag, lease_id=lease_id),
            deadline=deadline,
            op=fresh_op(),
            may_repeat=True,
        )
        try:
            # A step towards the write that the caller asked for.
            with commits.step():
                self.made[etag] = snapshots.take_version(given)
        except NotFound as error:
            raise properties.to_gone(self.target, etag, error) from error
        except Changed as error:
            told = f"{self.target} changed since you read it"
            # What is there now is told with the write that was meant.
            raise error.but(message=told, expected_etag=etag, detail=()) from error
        except OutcomeUnknown as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from None
            told = f"whether {self.target} was kept as a snapshot is not known, so it was not written"
            raise error.as_kind(Unavailable, message=told, reason="keeping_unknown") from error

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Add to an error the snapshot that was made before."""
        try:
            yield
        except AzguardError as error:
            if not self.made:
                raise
            raise error.but(facts={**error.facts, "snapshot": self._newest}) from error

    def name_in(self, result: Any) -> Any:
        """Return the result of the write, with the snapshot of the version that it replaced."""
        kinds = {BlobPut: BlobPutKept, UpdateReport: UpdateReportKept}
        if type(result) not in kinds:
            return result
        known = {each.name: getattr(result, each.name) for each in fields(result)}
        replaced = self._newest if result.outcome == "committed" else None
        return kinds[type(result)](**known, snapshot=replaced)

    def drop_others(self, outcome: str, deadline: Deadline) -> None:
        """Delete the snapshots of versions that other writers have replaced. What cannot be deleted stays."""
        others = list(self.made.values())
        for each in others[:-1] if outcome == "committed" else others:
            self._drop(each, deadline)

    def _drop(self, made: BlobSnapshot, deadline: Deadline) -> None:
        address = replace(self.target.address, snapshot=made.snapshot)
        send_once(lambda: self.target.account.blob(address).delete_blob(**write_timeouts(deadline)))

    @property
    def _newest(self) -> str | None:
        return list(self.made.values())[-1].snapshot_address if self.made else None


def write_keeping(upload: Upload, write: Callable[[Upload], Any]) -> Any:
    """Return the result of a put that keeps what it replaces, with the snapshot.

    Raises:
        UsageError: the put is for no one version: then what is kept may not be what is replaced.
    """
    conditions = upload.conditions
    if conditions.expected_etag is None and not conditions.creates_only:
        raise UsageError(
            "what is replaced can be kept only if the write is for one version",
            argument="snapshot_first",
            reason="snapshot_first_needs_version",
        )
    keeper = VersionKeeper(upload.target)

    def keep(under: Conditions) -> None:
        if under.expected_etag is not None:
            keeper.keep(under.expected_etag, under.lease_id, upload.deadline.fresh())

    with keeper.name_in_errors():
        return keeper.name_in(write(replace(upload, before_commit=keep)))


def update_keeping(request: UpdateRequest, records: LocalRecords) -> UpdateReport:
    """Return the report of an update that keeps what it replaces, with the snapshot.

    Raises:
        AzguardError: as ``recording.update_and_record`` says.
    """
    keeper: VersionKeeper = request.resource.keeper  # type: ignore[attr-defined]  # of blobs alone
    with keeper.name_in_errors():
        report = recording.update_and_record(request, records)
    keeper.drop_others(report.outcome, request.deadline.fresh())
    kept: UpdateReport = keeper.name_in(report)
    return kept
