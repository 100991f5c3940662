"""How an append can end that was not made, or not whole."""

from azguard.blobs import properties
from azguard.blobs.append import Append, End, Proof
from azguard.conditions.operations import Condition
from azguard.errors import AzguardError, Changed, GaveUp, Interrupted, OutcomeUnknown, Partial

#: How the service refuses an append at a place that is not the end.
NOT_AT_END = "AppendPositionConditionNotMet"


def explain(error: Changed, given: Append, end: End) -> AzguardError:
    """Return a failed condition with what is there now."""
    target = given.target
    if error.service_code == "MaxBlobSizeConditionNotMet":
        most = int(given.conditions.headers[Condition.MAX_SIZE.header])
        return error.but(
            message=f"{target} would be longer than {most:,} bytes; it was not appended to",
            facts={**error.facts, "position": end.position},
            reason="append_over_size",
        )
    if error.service_code == NOT_AT_END:
        error = error.but(message=f"{target} does not end at byte {end.position:,}", reason="append_elsewhere")
    return properties.describe_conflict(error, target, given.deadline)


def build_gave_up(given: Append, conflicts: int) -> GaveUp:
    """Return the error that other writers were first again and again."""
    return GaveUp(
        f"other writers appended to {given.target} first, {conflicts} times; nothing was appended",
        address=str(given.target.address),
        reason="append_gave_up",
    )


def build_unknown(given: Append, end: End, length: int, done: int) -> OutcomeUnknown:
    """Return the error that a piece was sent, and that it cannot be known whether it was appended."""
    where = "" if end.position is None else f" at byte {end.position:,}"
    before = f"{done:,} bytes before them were appended; " if done else ""
    return OutcomeUnknown(
        f"{before}{length:,} bytes were sent to the end of {given.target}{where}, and whether they were appended "
        "cannot be known",
        address=str(given.target.address),
        reason="append_unknown" if given.proof is Proof.NONE and end.position is not None else "outcome_unknown",
        facts={"position": end.position, "bytes": length, "appended_bytes": done},
    )


def build_created(given: Append, error: AzguardError | KeyboardInterrupt) -> AzguardError:
    """Return the error that the blob was created, and nothing is known to be appended to it."""
    told = f"{given.target} was created for it, and stays"
    if isinstance(error, KeyboardInterrupt):
        return Interrupted(
            f"interrupted: {told}, and nothing was appended",
            address=str(given.target.address),
            facts={"created": True},
            exit_status=getattr(error, "status", Interrupted.exit_code),
        )
    return error.but(detail=(*error.detail, told), facts={**error.facts, "created": True})


def build_partial(given: Append, error: AzguardError | KeyboardInterrupt, begun: int | None, done: int) -> AzguardError:
    """Return the error that the first ``done`` bytes were appended, and the next piece was not."""
    end = None if begun is None or given.is_lines else begun + done
    facts = {"position": begun, "appended_bytes": done, "next_position": end}
    told = f"{done:,} bytes were appended to {given.target}, and the rest was not"
    if isinstance(error, KeyboardInterrupt):
        status = getattr(error, "status", Interrupted.exit_code)
        return Interrupted(
            f"interrupted: {told}",
            address=str(given.target.address),
            facts=facts,
            reason="append_incomplete",
            exit_status=status,
        )
    if isinstance(error, OutcomeUnknown):
        return error
    return Partial(
        f"{told}: {error.message}",
        address=str(given.target.address),
        http_status=error.http_status,
        service_code=error.service_code,
        request_id=error.request_id,
        detail=error.detail,
        facts={**facts, "cause": error.kind},
        reason="append_incomplete" if end is not None else "append_lines_incomplete",
    )
