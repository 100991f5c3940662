"""Puts under the fences of two holders of a lock; and index tags, which a lease guards, since they move no ETag."""

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs import tags
from azguard.blobs.content import put_blob
from azguard.blobs.content.upload import Settings, Upload
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.wire.rows import Condition
from tests.explorer import service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import Fault
from tests.explorer.foreign import FOREIGN, PATH, change_blob
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import Bound, Effect, Scenario, Services, Violation
from tests.explorer.updates import ONCE, Ghost, op_of, stored
from tests.explorer.writes import WriteRules
from tests.support.no_records import NoRecords

#: The fence of each holder: B has acquired the lock after A.
_FENCES = {"A": 1, "B": 2}
#: The exit status of a holder whose lock is lost.
_LOST = 77


class FenceRules(WriteRules):
    """No holder writes over what a holder with a higher fence has written."""

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        before = self.find(effect.before)
        theirs = "" if before is None else dict(before.tags).get(fences.TAG, "")
        if theirs and int(theirs) > _FENCES[effect.who]:
            raise Violation(f"{effect.who} wrote over what a holder with a higher fence has written")
        after = self.find(effect.after)
        if after is not None and int(dict(after.tags).get(fences.TAG, "0")) != _FENCES[effect.who]:
            raise Violation(f"{effect.who} left no fence of its own")
        return super().see_effect(ghost, effect)

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        # Lost, and so not applied.
        return super().see_end(ghost, who, ended._replace(status=75) if ended.status == _LOST else ended, services, now)


class TagRules(WriteRules):
    """The rules of single writes, for index tags; their version is azguard's own."""

    def find(self, services: Services) -> Blob | None:
        found = super().find(services)
        return None if found is None else replace(found, etag=tags.compute_etag(found.etag, dict(found.tags)))


def _target(process: Process) -> Target:
    return Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))


def _put(process: Process) -> str:
    fence, deadline = _FENCES[process.name], process.deadline(5)
    conditions = Conditions(fences.condition(fence), "fence", fence=fence)
    upload = Upload(_target(process), Settings(), conditions, deadline, op_of(process.name)).add_lineage()
    done = put_blob.put(upload, io.BytesIO(process.name.encode()), lambda length: None)
    process.tell("wrote", done.etag)
    return "committed"


def _tag(process: Process, condition: str | None = None) -> str:
    target, deadline = _target(process), process.deadline(5)
    found = tags.get(target, Conditions(), deadline)
    process.tell("read", found.etag)
    headers = {} if condition is None else {Condition.IF_TAGS.header: condition}
    conditions = Conditions(headers, guard="lease", expected_etag=found.etag)
    done = tags.replace_all(target, {"by": process.name}, conditions, NoRecords(), deadline)
    process.tell("wrote", done.etag)
    return "committed"


def _set_tags(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs[PATH]
    if service.is_locked(blob.lease, now):
        return None
    return {**services, "blob": replace(blobs, blobs={**blobs.blobs, PATH: replace(blob, tags=(("by", "f"),))})}


def _set_same_tags(services: Services, now: float) -> Services | None:
    """Take the lease over, and set the tags that A sets."""
    blobs: BlobService = services["blob"]
    if not service.is_locked(blobs.blobs[PATH].lease, now):
        return None
    lease = service.Lease("0ea5e000-0000-4000-8000-000000000000", 60.0, now + 60.0)
    same = replace(blobs.blobs[PATH], lease=lease, tags=(("by", "A"),))
    return {**services, "blob": replace(blobs, blobs={**blobs.blobs, PATH: same})}


def _break_and_set_tags(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs[PATH]
    if blob.lease is None or not service.is_locked(blob.lease, now):
        return None
    broken = replace(blob, lease=replace(blob.lease, broken=now), tags=(("by", "f"),))
    return {**services, "blob": replace(blobs, blobs={**blobs.blobs, PATH: broken})}


_BREAKS = {"breaks the lease": FOREIGN["breaks the lease"]}
# No name of a process is so low.
_UNMET = "\"by\" <= '0'"


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of fences and tags."""
    both = Program("A", _put), Program("B", _put)
    bound = Bound(faults=1, foreign=1, switches=1)
    unfenced = {"puts the blob without a fence": change_blob(content=b"f", metadata=(), tags=())}
    fenced: dict[str, Any] = {"rules": FenceRules(is_guarded=False), "foreign": unfenced, "bound": bound}
    yield _scenario("put, fenced", *both, **fenced, short=bound._replace(faults=0), alphabet=(Fault.LOST_AFTER,))
    bound, others = Bound(faults=1, foreign=1), {**unfenced, "sets the tags": _set_tags, **_BREAKS}
    others["takes the lease over, and sets the tags that A sets"] = _set_same_tags
    others["breaks the lease, and sets the tags"] = _break_and_set_tags
    # Not judged: tags have no version, and once the lease was lost another may have set the same, or the former ones.
    tag = Program("A", _tag)
    tagged: dict[str, Any] = {"rules": TagRules(), "bound": bound, "short": bound, "judges_doubts": False}
    yield _scenario("tags", tag, **tagged, foreign=others)
    # They are there already, and the condition does not hold: so nothing that is found makes it done. And whatever
    # becomes of the lease, a refusal is one: where every answer came, there is no doubt.
    same: BlobService = stored()["blob"]
    same = replace(same, blobs={PATH: replace(same.blobs[PATH], tags=(("by", "A"),))})
    unmet = Program("A", partial(_tag, condition=_UNMET))
    more: dict[str, Any] = {**tagged, "foreign": _BREAKS, "services": {"blob": same}}
    yield _scenario("tags, the same on a condition", unmet, **more)
    answered = Bound(foreign=1)
    more |= {"bound": answered, "short": answered, "stopped": answered._replace(kills=1), "judges_doubts": True}
    yield _scenario("tags, the same and answered", unmet, **more)


def _scenario(
    name: str,
    *programs: Program,
    alphabet: tuple[Fault, ...] = ONCE,
    services: Services | None = None,
    **more: Any,
) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services=services or stored(),
        alphabet=alphabet,
        has_own_clocks=True,
        **more,
    )
