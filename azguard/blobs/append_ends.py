"""The end of an append blob: found, or made by creating the blob."""

from typing import Any

from azguard.blobs import append_errors, existing, properties, types
from azguard.blobs.append import APPEND_BLOB, MOST_BLOCKS, Append, End, Proof
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, Changed, Forbidden, NotFound
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled


def find_end(given: Append, deadline: Deadline) -> tuple[End, bool]:
    """Return the end of the blob, and whether the blob was created for it.

    Raises:
        BadRequest: it is no append blob, it is sealed, or it has all the blocks that it can have.
        Changed: it is not the version, or does not end at the place, that the append is for.
        Forbidden: it may be appended to, and not be looked at.
        NotFound: there is none, and none is to be created.
    """
    created = False
    while True:
        try:
            found = properties.fetch(given.target, Conditions(), deadline)
        except NotFound as error:
            if given.create is None or error.service_code == "ContainerNotFound":
                raise error if error.reason else error.but(reason="append_to_nothing") from error
            existing.check_creatable(given.target, given.conditions, error)
            created = _create(given, deadline)
        except Forbidden as error:
            raise error.but(reason="append_end_unknown") from error
        else:
            _check(given, found)
            end = End(
                _choose_position(given, found),
                found.creation_time,
                found.append_blob_committed_block_count or 0,
                found.etag,
            )
            return end, created


def _choose_position(given: Append, found: Any) -> int:
    """Return the byte at which to append: the one that the conditions name, or the end.

    Where the blob does not end at that byte, nothing is sent: equal bytes behind it are then not ours, whatever lease
    we hold. Only the caller's word that no other writer writes them makes them those of an earlier run.

    Raises:
        Changed: the blob does not end there.
    """
    size: int = found.size
    typed = given.conditions.headers.get(Condition.APPEND_POSITION.header)
    if typed is None:
        return size
    if int(typed) != size and given.proof is not Proof.CONTENT:
        refusal = Changed("", str(given.target.address), service_code=append_errors.NOT_AT_END, seen=found)
        raise append_errors.explain(refusal, given, End(int(typed)))
    return int(typed)


def _create(given: Append, deadline: Deadline) -> bool:
    """Create the blob, empty, only if there is none; return whether it is known to be ours.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    settings, client = given.create, given.target.account.blob(given.target.address)
    assert settings is not None
    made = settings.for_sdk()["content_settings"]

    def look(patience: Deadline) -> Finding[Any]:
        try:
            properties.fetch(given.target, Conditions(), patience)
        except NotFound:
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED)  # Ours or not: an append is what was asked for.

    request = WriteRequest(
        target=given.target,
        send=lambda: client.create_append_blob(
            made, dict(settings.metadata or {}), headers={"If-None-Match": "*"}, **write_timeouts(deadline)
        ),
        look=look,
    )
    return send_until_settled(request, deadline).answer is not None


def _check(given: Append, found: Any) -> None:
    target, expected = given.target, given.conditions.expected_etag
    facts: Any = {"address": str(target.address)}
    kind = properties.type_of(found)
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {types.describe(kind)}, to which nothing can be appended", reason="no_append_blob", **facts
        )
    if found.is_append_blob_sealed:
        raise BadRequest(f"{target} is sealed, so that nothing can be appended", reason="blob_is_sealed", **facts)
    blocks = found.append_blob_committed_block_count
    if blocks is not None and blocks >= MOST_BLOCKS:
        raise BadRequest(
            f"{target} has {blocks:,} blocks, the most that an append blob can have",
            reason="too_many_blocks",
            **facts,
        )
    if expected is not None and found.etag != expected:
        refusal = Changed(f"{target} changed since you read it", expected_etag=expected, seen=found, **facts)
        raise properties.describe_conflict(refusal, target, given.deadline)
