"""Updates and puts of one file, which the service guards by its lease alone, and a lease of a file has no end."""

import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.files import guarding, replacing
from azguard.files.entries import SmbProperties
from azguard.files.guarding import Guarding
from azguard.files.replacing import FileUpload
from azguard.files.updates import FileContent, LeasedMetadata
from azguard.guards.resolve import Conditions
from azguard.leases import owners
from azguard.leases.owners import OWNER, Owner
from azguard.leases.process_leases import ProcessLease, ProcessLeases
from azguard.processes.locked_file import ProcessNote, ProcessNotes
from azguard.requests.lineage import new_op
from azguard.resources import properties
from azguard.resources.properties import ContentHeaders
from azguard.updates.resource import UpdateHooks, UpdatePlan
from azguard.updates.update import update
from tests.explorer import service
from tests.explorer.blob_service import Blob
from tests.explorer.faults import Fault
from tests.explorer.file_service import File, FileService
from tests.explorer.foreign import LINEAGE
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import (
    STOPPED,
    STOPPED_ALONE,
    STOPPED_BESIDE,
    Bound,
    Foreign,
    Scenario,
    Services,
    Violation,
)
from tests.explorer.updates import Even, Ghost, MemoryJournal, UpdateRules, op_of
from tests.support.no_records import NoRecords

PATH = "share/a"
# What updates of the metadata change.
_KEY = "v"
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.BUSY_AFTER, Fault.STORED)


class _Note(ProcessNote):
    """A note on a disk that a story remembers."""

    def __init__(self, process: Process, name: str, facts: dict[str, str]) -> None:
        super().__init__(Path(name), facts)
        self._process = process

    def write(self, **facts: str) -> None:
        self.facts |= facts
        self._process.tell("disk", self.path.name, json.dumps(self.facts))

    def close(self, *, is_done: bool) -> None:
        if is_done and not self.is_left:
            self._process.tell("disk", self.path.name, None)


class _Leases(ProcessLeases):
    """Notes of leases, of which those are abandoned that were there when the process began."""

    def __init__(self, process: Process) -> None:
        object.__setattr__(self, "folder", Path("/nowhere"))
        object.__setattr__(self, "_process", process)

    def open(self, target: Target, lease_id: str) -> ProcessLease:
        address = target.address
        facts = {"endpoint": target.endpoint, "kind": str(address.kind), "container": address.container}
        note = _Note(self._process, f"lease {lease_id}", {})  # type: ignore[attr-defined]  # set in __init__
        note.write(**facts, path=address.path, lease_id=lease_id, since=f"{time.time():.0f}")
        return ProcessLease(lease_id, note)

    def find_abandoned(self, target: Target) -> Iterator[ProcessLease]:
        process: Process = self._process  # type: ignore[attr-defined]  # set in __init__
        for name, text in process.given:
            if name.startswith("lease "):
                facts = json.loads(text)
                yield ProcessLease(facts["lease_id"], _Note(process, name, facts))


class _Notes(ProcessNotes):
    """Notes of temporary files, as ``_Leases`` has those of leases."""

    def __init__(self, process: Process) -> None:
        object.__setattr__(self, "_process", process)

    def open(self, name: str, facts: Mapping[str, str]) -> ProcessNote:
        note = _Note(self._process, f"file {name}", {})  # type: ignore[attr-defined]  # set in __init__
        note.write(**facts, since=f"{time.time():.0f}")
        return note

    def find_abandoned(self) -> Iterator[ProcessNote]:
        process: Process = self._process  # type: ignore[attr-defined]  # set in __init__
        yield from (_Note(process, name, json.loads(text)) for name, text in process.given if name.startswith("file "))


class FileRules(UpdateRules):
    """The rules of updates, for a file; nothing is left beside it that no note tells of."""

    def find(self, services: Services) -> Blob | None:
        found: File | None = services["file"].files.get(PATH)
        if found is None:
            return None
        others = tuple(pair for pair in found.metadata if pair[0] != OWNER)
        return Blob(found.etag, found.written, found.content, others)

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if ended.status in (49, 75) and who in self._before and who not in dict(ghost.stopped):
            raise Violation(f"{who} ended {ended.status}, and only a killed process of its machine held the lease")
        return super().see_end(ghost, who, ended, services, now)

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        files: FileService = services["file"]
        known = [text for name, text in ghost.disk if name.startswith("lease ")]
        noted = [json.loads(text)["path"] for name, text in ghost.disk if name.startswith("file ")]
        for path, each in files.files.items():
            is_known = path.partition("/")[2] in noted or any(json.loads(text)["lease_id"] in path for text in known)
            if path != PATH and not is_known:
                raise Violation(f"{path} is left, and no note tells of it")
            lease = each.lease
            if lease is not None and lease.state(now) == "leased" and not any(lease.id in text for text in known):
                raise Violation(f"the lease of {path} is left, and no note tells of it")
            noted_ids = [json.loads(text).get("record", "") for text in known]
            owner = owners.read_owner(dict(each.metadata))
            if owner is not None and owner.lease not in [owners.make_digest(each) for each in noted_ids if each]:
                raise Violation("the record of a holder is left, and no note tells of it")


class MetadataRules(FileRules):
    """The rules of updates, for one key of the metadata of a file."""

    def find(self, services: Services) -> Blob | None:
        found = super().find(services)
        if found is None:
            return None
        others = tuple(pair for pair in found.metadata if pair[0] != _KEY)
        return Blob(found.etag, found.written, dict(found.metadata).get(_KEY, "").encode(), others)


def _guarding(process: Process) -> Guarding:
    owner = Owner(process.name, "host", 1, "sh", None)
    return Guarding(NoRecords(), owner, _Leases(process), _Notes(process))


def _target(process: Process) -> Target:
    return Target(process.account, Address(Kind.FILE, tuple(PATH.split("/", 1))))


def _updater(name: str, *, op: str | None = None, after: str | None = None, of_metadata: bool = False) -> Program:
    letter, key = op or name, op_of(op or name)

    def change(content: bytes) -> bytes:
        if not of_metadata:
            return content + letter.encode()
        metadata = json.loads(content)
        return json.dumps({**metadata, _KEY: metadata.get(_KEY, "") + letter}).encode()

    def main(process: Process) -> str:
        plan = UpdatePlan(change, key, guard_by_lease=True, is_keyed=op is not None)
        hooks = UpdateHooks(
            chance=Even(),
            new_op=lambda: new_op(process.make(12)),
            now=lambda: service.moment(process.now),
            journal=MemoryJournal(process, key, keyed=plan.is_keyed),
        )
        made = (LeasedMetadata if of_metadata else FileContent)(_target(process), _guarding(process))
        return update(made, plan, process.deadline(60), hooks).outcome

    return Program(name, main, after=after, op=op)


def _tidier(name: str, *, after: str) -> Program:
    """Return a process that ends what one before it has left, and writes nothing itself."""

    def main(process: Process) -> str:
        guarding.end_abandoned(_target(process), _guarding(process), process.deadline(30))
        return "tidied"

    return Program(name, main, after=after, other="tidies")


def _putter(name: str, *, after: str | None = None) -> Program:
    """Return a process that reads a file, and puts what it read with its letter."""

    def main(process: Process) -> str:
        target, held_by = _target(process), _guarding(process)
        found = properties.fetch(target, Conditions(), process.deadline(30))
        etag = found.etag
        size = found.size
        upload = FileUpload(
            target=target,
            metadata={key: value for key, value in found.metadata.items() if key == "owner"},
            conditions=Conditions({"If-Match": etag}, "if-match", etag),
            deadline=process.deadline(30),
            op=op_of(name),
            headers=ContentHeaders(),
            smb=SmbProperties(),
        )
        # What it read is told by the length: only other programs wrote before.
        content = b"s".ljust(size, b"f") + name.encode()
        replacing.put(upload, io.BytesIO(content), len(content), held_by, lambda done: None)
        return "committed"

    return Program(name, main, after=after)


def _foreign(change: Callable[[FileService, File, float], FileService]) -> Foreign:
    def act(services: Services, now: float) -> Services | None:
        files: FileService = services["file"]
        found = files.files.get(PATH)
        if found is None:
            return None
        return {**services, "file": change(files, found, now)}

    return act


def _unless_leased(change: Callable[[FileService, File, float], FileService]) -> Foreign:
    act = _foreign(change)

    def guarded(services: Services, now: float) -> Services | None:
        found: File | None = services["file"].files.get(PATH)
        return None if found is None or service.is_locked(found.lease, now) else act(services, now)

    return guarded


FOREIGN: dict[str, Foreign] = {
    "writes the content": _unless_leased(
        lambda files, found, now: files.write(PATH, now, content=found.content + b"f")
    ),
    "wipes the metadata": _unless_leased(lambda files, found, now: files.write(PATH, now, metadata=())),
}


def _clear_up(files: FileService, found: File, now: float) -> FileService:
    """Break the lease of a run that is taken for dead, and delete its temporary files."""
    for path in [each for each in files.files if each != PATH]:
        files = files.delete(path)
    if found.lease is None or not service.is_locked(found.lease, now):
        return files
    return files.with_lease(PATH, replace(found.lease, broken=now))


#: Another program may also remove the lease and the temporary files of a run that still goes on.
BEYOND: dict[str, Foreign] = {**FOREIGN, "clears up after the run": _foreign(_clear_up)}


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of one file."""
    alike: dict[str, Any] = {"is_symmetric": True, "has_own_clocks": True, "stopped": STOPPED_ALONE}
    both = _updater("A"), _updater("B")
    yield _scenario("file updates", *both, bound=Bound(switches=1), short=Bound(switches=0), **alike)
    # What comes late to two writers at once takes minutes: here they follow one another.
    prompt = tuple(each for each in _ALPHABET if each is not Fault.LATE)
    taken: dict[str, Any] = {**alike, "bound": Bound(switches=0), "deep": Bound(faults=1, switches=0), "stopped": None}
    yield _scenario("file updates, with a fault", *both, alphabet=prompt, **taken)
    turns = _updater("A"), _updater("B", after="A")
    late: dict[str, Any] = {"bound": Bound(faults=1, kills=1), "stopped": Bound(faults=1, stops=1)}
    yield _scenario("file updates, late", *turns, alphabet=(Fault.LATE,), **late)
    yield _scenario("file update", _updater("A"), bound=Bound(faults=1, foreign=1), short=Bound(faults=1))
    of_metadata = _updater("A", of_metadata=True)
    once: dict[str, Any] = {"bound": Bound(faults=1, foreign=1), "short": Bound(faults=1)}
    # The acquire of the lease and the record under it both come after the release.
    late = {"bound": Bound(faults=2), "stopped": Bound(faults=2, kills=1, stops=1), "alphabet": (Fault.LATE,)}
    tidied: dict[str, Any] = {"bound": Bound(faults=1, kills=1), "stopped": STOPPED}
    for name, programs, more in (
        ("file metadata update", (of_metadata,), once),
        ("file metadata update, late", (of_metadata,), late),
        ("file metadata update, tidied", (of_metadata, _tidier("B", after="A")), tidied),
    ):
        yield replace(_scenario(name, *programs, **more), rules=MetadataRules(programs))
    yield _scenario("file put", _putter("A"), bound=Bound(faults=1, foreign=1), short=Bound(faults=1))
    yield _scenario(
        "file update, killed",
        _updater("A", op="K"),
        _updater("B", op="K", after="A"),
        bound=Bound(foreign=1, kills=1),
        stopped=STOPPED_BESIDE,
        short=Bound(kills=1),
    )


def _scenario(name: str, *programs: Program, bound: Bound, short: Bound | None = None, **more: Any) -> Scenario:
    metadata = (LINEAGE, f"{op_of('first')}.-"), ("owner", "them")
    files = FileService().write(PATH, 0.0, content=b"s", metadata=metadata)
    return Scenario(
        name=name,
        programs=programs,
        services={"file": files},
        rules=FileRules(programs),
        bound=bound,
        short=short,
        foreign=FOREIGN,
        alphabet=more.pop("alphabet", _ALPHABET),
        beyond=BEYOND,
        **more,
    )
