"""Checks of the way to the service: do its answers belong to our requests, are they new, and is its time right?"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus

from azguard.address import Kind
from azguard.doctor.checks import Check, CheckFinding, differs, holds, not_possible
from azguard.doctor.plays import CONTENT
from azguard.doctor.stage import CheckStage
from azguard.doctor.tap import Misnamed, find_origin
from azguard.requests.service_codes import CLOCK_SKEW
from azguard.times import find_http_date, span
from azguard.wire.catalogue import ALL
from azguard.wire.operations.blobs import BLOB_GET, BLOB_PUT_BLOCK_BLOB

PART = "answers"
# A cache on the way may keep the first answer; what it keeps it gives again.
_LOOKS = 3
# Last-Modified has whole seconds, and the clocks of the service's machines differ by a second.
_CLOCKS = timedelta(seconds=5)
_CREATE_ONLY = {"If-None-Match": "*"}


def list_checks(services: tuple[str, ...]) -> Iterator[Check]:
    """Yield the checks that come before all others, because these rest on the answers."""
    for service, kind in (("blob", Kind.BLOB), ("file", Kind.FILE)):
        if service in services:
            yield Check(PART, f"clock of the {service} service", partial(check_clock, kind), service, 2)
    if "blob" in services:
        yield Check(PART, "a request is carried out once", check_once, "blob", 1)
        yield Check(PART, "a read sees the last write", check_fresh_reads, "blob", 2 * _LOOKS + 1)


def list_last_checks(services: tuple[str, ...]) -> Iterator[Check]:
    """Yield the checks that come last, because they are of all answers."""
    for service in services:
        yield Check(PART, f"names in answers of the {service} service", partial(check_names, service), service)


def check_clock(kind: Kind, stage: CheckStage) -> CheckFinding:
    """Compare this machine's clock, and the Date of an answer, with the time of a write of ours."""
    began = datetime.now(UTC)
    target = stage.make(kind)
    answer = stage.require(stage.send(ALL[f"{kind.noun}.get_properties"], target), target)
    now, written = datetime.now(UTC), answer.last_modified
    date = find_http_date(answer.headers.get("Date"))
    if date is not None and (distance := _describe_distance(date, written, now - began)) is not None:
        return differs(f"Date of an answer is {distance} the service's own write: it is a gateway's")
    distance = _describe_distance(now, written, now - began)
    if abs(now - written) > CLOCK_SKEW:
        return differs(f"this machine's clock is {distance} the service's: signatures are refused")
    return holds("the clocks agree" if distance is None else f"this machine's clock is {distance} the service's")


def _describe_distance(moment: datetime, written: datetime, elapsed: timedelta) -> str | None:
    """Return how far a moment is from a write; None where the time that both took explains it."""
    ahead = moment - written
    if -_CLOCKS <= ahead <= _CLOCKS + elapsed:
        return None
    return f"{span(abs(ahead.total_seconds()))} {'ahead of' if ahead > _CLOCKS else 'behind'}"


def check_once(stage: CheckStage) -> CheckFinding:
    """Create a blob of a new name: if it is said to exist, the request was carried out twice."""
    blob = stage.name(Kind.BLOB)
    stage.note_made(blob)
    found = stage.send(BLOB_PUT_BLOCK_BLOB, blob, headers=_CREATE_ONLY, body=CONTENT)
    if found.is_done:
        return holds()
    if found.is_failure or found.is_denied:
        return not_possible(str(found.error))
    if found.status == HTTPStatus.CONFLICT and stage.look(blob) is not None:
        return differs(f"a create of a new name was answered with {found}, and it is there: it was sent twice")
    return differs(f"a create of a new name was answered with {found}")


def check_fresh_reads(stage: CheckStage) -> CheckFinding:
    """Write and read in turns: each read has to have the version that was written last."""
    blob = stage.make(Kind.BLOB)
    for number in range(_LOOKS):
        content = b"%d" % number
        written = stage.require(stage.send(BLOB_PUT_BLOCK_BLOB, blob, body=content), blob)
        read = stage.require(stage.send(BLOB_GET, blob), blob)
        if (read.etag, read.content) != (written.etag, content):
            return differs("a read after a write has an earlier version: a cache answers")
    return holds()


def check_names(service: str, stage: CheckStage) -> CheckFinding:
    """Tell whether all answers named their request."""
    misnamed = stage.tap.misnamed.get(find_origin(stage.account.endpoints[service]), set())
    worst = next((each for each in Misnamed if each in misnamed), None)
    return holds() if worst is None else differs(worst)
