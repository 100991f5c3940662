"""Checks of the account: who asks, if answers are new and ours, its kind, the rights of each feature, other writers.

Rights are tried on names that do not exist, so that nothing is changed. The last write of azguard has its lineage,
unless --no-lineage was given. A tool that keeps what others left is not seen, such as one that merges into an entity.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import Auth, Sas, Target, read_sas
from azguard.accounts.endpoints import STORAGE_SCOPE
from azguard.address import Kind
from azguard.blobs import listing
from azguard.doctor.plays import CONTENT, PLAYS, Misnamed, find_origin
from azguard.doctor.stage import ROOMS, Check, CheckFinding, CheckStage, Reaction, differs, holds, not_possible
from azguard.guards.resolve import Conditions
from azguard.requests.lineage import KEY, Lineage
from azguard.resources import parts
from azguard.tables import edm, entities
from azguard.times import find_http_date, iso, span
from azguard.wire import signing, xml
from azguard.wire.answers import Answer
from azguard.wire.catalogue import ALL
from azguard.wire.operations.blobs import BLOB_GET, BLOB_GET_PROPERTIES, BLOB_PUT_BLOCK_BLOB
from azguard.wire.operations.containers import (
    ACCOUNT_GET_BLOB_SERVICE,
    ACCOUNT_GET_INFORMATION,
    CONTAINER_GET_PROPERTIES,
)
from azguard.wire.operations.shares import SHARE_GET_PROPERTIES
from azguard.wire.rows import Operation, Write
from azguard.wire.signing import CLOCK_SKEW

# A cache on the way may keep the first answer; what it keeps it gives again.
_LOOKS = 3
# Last-Modified has whole seconds, and the clocks of the service's machines differ by a second.
_CLOCKS = timedelta(seconds=5)
_CREATE_ONLY = {"If-None-Match": "*"}
# What a token says of its owner, for each a word that takes its place where names are not to be told.
_OWNERS = {"upn": "USER", "unique_name": "USER", "oid": "OBJECT", "appid": "APPLICATION", "tid": "TENANT"}
_PARTS_OF_TOKEN = 3
_MEANINGS = {
    "BlobStorage": "no tables, queues and files",
    "BlockBlobStorage": "no page blobs, tables, queues and files",
    "FileStorage": "files only",
    "Storage": "no index tags, so no fences on blobs",
}
NO_TAGS = "a hierarchical namespace: no index tags, so no fences on blobs; names with / are in directories"
_NOT_PUBLIC = (401, 403, 404)
_MOST_NAMES = 10
# The permissions of a stored policy that let its holder change something.
_WRITE_LETTERS = frozenset("acwdxyutmpio")
# What azguard does, and the operations that this takes.
_FEATURES = {
    "read blobs": ("blob.get", "blob.get_properties"),
    "list blobs": ("container.list_blobs",),
    "write blobs, safe-update": (
        "blob.put_block_blob", "blob.put_block", "blob.put_block_list", "blob.set_metadata", "blob.get"
    ),
    "append to blobs": ("blob.append_block", "blob.get_properties"),
    "delete blobs": ("blob.delete",),
    "locks: lock run, lease": (
        "blob.lease_acquire", "blob.lease_renew", "blob.lease_release", "blob.set_metadata", "blob.get_properties"
    ),
    "fences": ("blob.set_tags", "blob.get_tags"),
    "snapshots": ("blob.snapshot",),
    "read entities": ("table.entity_get", "table.entity_query"),
    "write entities, safe-update": (
        "table.entity_insert", "table.entity_update", "table.entity_merge", "table.entity_delete", "table.entity_get"
    ),
    "put messages": ("queue.put_message",),
    "queue work": ("queue.get_messages", "queue.update_message", "queue.delete_message"),
    "read files": ("file.get", "file.get_properties", "directory.list"),
    "write files, safe-update": (
        "file.create", "file.put_range", "file.set_metadata", "file.rename", "file.lease_acquire", "file.delete"
    ),
}  # fmt: skip


def list_first_checks(services: tuple[str, ...]) -> Iterator[Check]:
    """Yield the checks on whose results all others rest."""
    yield Check("login", "credentials", check_credentials)
    for kind in (Kind.BLOB, Kind.FILE):
        yield Check("answers", f"clock of the {kind.service} service", partial(_check_clock, kind), kind.service, 2)
    yield Check("answers", "a request is carried out once", _check_once, "blob", 1)
    yield Check("answers", "a read sees the last write", _check_fresh_reads, "blob", 2 * _LOOKS + 1)
    for service in services:
        yield Check("account", f"{service} service", partial(_tell_server, service), service)
    yield _look("kind of account", ACCOUNT_GET_INFORMATION, _tell_kind)
    yield _look("earlier versions of blobs", BLOB_GET_PROPERTIES, _tell_versions, requests=2)
    yield _look("deleted blobs", ACCOUNT_GET_BLOB_SERVICE, _tell_soft_delete)
    yield _look("blobs that may not be changed", CONTAINER_GET_PROPERTIES, _tell_immutability)
    yield Check("account", "readers without a login", _check_public_access, "blob", 1)
    yield _look("encryption", BLOB_GET_PROPERTIES, _tell_encryption)
    yield _look("protocols of a share", SHARE_GET_PROPERTIES, _tell_protocols, "file")


def list_last_checks(services: tuple[str, ...], writers: Target | None) -> Iterator[Check]:
    """Yield the checks of what others tried before, or may do beside us; last those of all answers."""
    for feature, operations in _FEATURES.items():
        service = PLAYS[operations[0]].kind.service
        yield Check("rights", feature, partial(_check_rights, operations), service, 1)
    if writers is not None:
        # They write nothing, and so need no room.
        what = "entities" if writers.kind is Kind.TABLE else "blobs"
        yield Check("writers", f"last writes of {what}", partial(_check_last_writes, writers), requests=1)
        yield Check("writers", "who else may write", partial(_check_policies, writers), requests=1)
    for service in services:
        yield Check("answers", f"names in answers of the {service} service", partial(_check_names, service), service)


def _look(
    name: str, operation: Operation, tell: Callable[[Answer], CheckFinding], service: str = "blob", requests: int = 1
) -> Check:
    """Return the check that judges the answer about the account, a blob of ours, or the room of a service."""

    def run(stage: CheckStage) -> CheckFinding:
        target = stage.source(Kind.BLOB, "") if operation.noun == "blob" else stage.find_target(service)
        return tell(stage.require(stage.send(operation, target), target))

    return Check("account", name, run, service, requests)


def check_credentials(stage: CheckStage) -> CheckFinding:
    """Tell the credential of the account, and when it ends."""
    account = stage.account
    if account.auth is Auth.KEY:
        return holds("a key of the account, which allows everything and does not end")
    if account.auth is Auth.SAS:
        return _describe_sas(read_sas(account.secret or ""), datetime.now(UTC))
    if account.auth is Auth.LOGIN:
        return _describe_token(stage, datetime.now(UTC))
    return holds("none: only public blobs can be read")


def _describe_sas(token: Sas, now: datetime) -> CheckFinding:
    fields = {
        "sp": token.permissions, "ss": token.services, "srt": token.resource_types, "sr": token.resource,
        "tn": token.table, "spr": token.protocols, "sip": token.addresses, "si": token.policy,
    }  # fmt: skip
    told = " ".join(f"{name}={value}" for name, value in fields.items() if value)
    if token.ends is None:
        return holds(f"a SAS: {told}; its stored access policy says when it ends")
    if token.ends <= now:
        return differs(f"a SAS that ended at {iso(token.ends)}: {told}")
    if token.starts is not None and token.starts > now:
        return differs(f"a SAS that begins only at {iso(token.starts)}: {told}")
    return holds(f"a SAS: {told}; ends at {iso(token.ends)}, in {span((token.ends - now).total_seconds())}")


def _describe_token(stage: CheckStage, now: datetime) -> CheckFinding:
    """Tell whose token a login has.

    Raises:
        LoginFailed: the login gives no token.
    """
    login = signing.find_login(stage.account)
    found = login.get_token_info(STORAGE_SCOPE)
    ends = datetime.fromtimestamp(found.expires_on, UTC)
    claims = _read_claims(found.token)
    told = [f"{name}={claims[name]}" for name in _OWNERS if claims.get(name)]
    stage.names |= {str(claims[name]): word for name, word in _OWNERS.items() if claims.get(name)}
    renews = "renewed as needed" if login.renewable else "not renewed after that"
    until = f"ends at {iso(ends)}, in {span((ends - now).total_seconds())}, {renews}"
    return holds("; ".join([f"a token from {login.source}", *filter(None, [" ".join(told)]), until]))


def _read_claims(token: str) -> dict[str, Any]:
    """Return the claims of a token, unverified; empty if it is not a JWT."""
    parts = token.split(".")
    if len(parts) != _PARTS_OF_TOKEN:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _check_clock(kind: Kind, stage: CheckStage) -> CheckFinding:
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


def _check_once(stage: CheckStage) -> CheckFinding:
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


def _check_fresh_reads(stage: CheckStage) -> CheckFinding:
    """Write and read in turns: each read has to have the version that was written last."""
    blob = stage.make(Kind.BLOB)
    for number in range(_LOOKS):
        content = b"%d" % number
        written = stage.require(stage.send(BLOB_PUT_BLOCK_BLOB, blob, body=content), blob)
        read = stage.require(stage.send(BLOB_GET, blob), blob)
        if (read.etag, read.content) != (written.etag, content):
            return differs("a read after a write has an earlier version: a cache answers")
    return holds()


def _check_names(service: str, stage: CheckStage) -> CheckFinding:
    """Tell whether all answers named their request."""
    misnamed = stage.tap.misnamed.get(find_origin(stage.account.endpoints[service]), set())
    worst = next((each for each in Misnamed if each in misnamed), None)
    return holds() if worst is None else differs(worst)


def _tell_server(service: str, stage: CheckStage) -> CheckFinding:
    return holds(stage.tap.servers.get(find_origin(stage.account.endpoints[service])) or "does not say")


def _tell_kind(found: Answer) -> CheckFinding:
    headers = found.headers
    sku, kind = headers.get("x-ms-sku-name", ""), headers.get("x-ms-account-kind", "")
    has_directories = headers.get("x-ms-is-hns-enabled", "").lower() == "true"
    meaning = NO_TAGS if has_directories else _MEANINGS.get(kind, "")
    return holds(": ".join(filter(None, (f"{kind} {sku}".strip(), meaning))))


def _tell_versions(found: Answer) -> CheckFinding:
    if found.version_id is None:
        return holds("not kept: after a foreign write, an outcome in doubt can stay unknown")
    return holds("kept: they settle more doubts, and an overwritten blob can be restored")


def _tell_soft_delete(found: Answer) -> CheckFinding:
    policy = xml.parse(found, "properties of a service").find("DeleteRetentionPolicy")
    if policy is None or (policy.findtext("Enabled") or "").lower() != "true":
        return holds("not kept: a deleted blob is gone")
    return holds(f"kept for {policy.findtext('Days')} days, and can be undeleted")


def _tell_immutability(found: Answer) -> CheckFinding:
    if found.has_legal_hold or found.has_immutability_policy:
        return differs("the container has a policy or a legal hold: its blobs can be neither changed nor deleted")
    return holds("none in this container")


def _check_public_access(stage: CheckStage) -> CheckFinding:
    """Read a blob of ours without a login."""
    blob = stage.source(Kind.BLOB, "")
    stranger = Target(replace(stage.account, auth=Auth.ANONYMOUS, secret=None), blob.address)
    found = stage.send(BLOB_GET, stranger)
    if found.is_done:
        return differs("blobs of this container can be read without a login")
    if found.code == "PublicAccessNotPermitted":
        return holds("the account allows none")
    return holds("not in this container") if found.status in _NOT_PUBLIC else not_possible(str(found))


def _tell_encryption(found: Answer) -> CheckFinding:
    """Tell with which key a blob is encrypted that names none."""
    scope = found.headers.get("x-ms-encryption-scope")
    return holds("with the account's key" if scope is None else "with the key of an encryption scope")


def _tell_protocols(found: Answer) -> CheckFinding:
    return holds(" and ".join(found.protocols or ("SMB",)))


def _check_rights(operations: tuple[str, ...], stage: CheckStage) -> CheckFinding:
    """Try the operations that a feature takes, but for those that other checks tried before."""
    for name in operations:
        found = stage.tried.get(name) or _try(name, stage)
        if found.is_denied:
            return not_possible(found.error.message if found.error is not None else str(found))
        if found.is_unknown:
            return not_possible(f"{name.replace('.', ' ').replace('_', ' ')}: {found}")
    return holds()


def _try(name: str, stage: CheckStage) -> Reaction:
    operation, play = ALL[name], PLAYS[name]
    is_in_room = play.kind in ROOMS.values()
    target = stage.rooms[play.kind.service] if is_in_room else stage.name(play.kind)
    if operation.write in (Write.PUTS, Write.CREATES):
        stage.note_made(target)
    return stage.send(operation, target, **play.arguments(stage, target))


def _check_last_writes(target: Target, stage: CheckStage) -> CheckFinding:
    """Count the resources whose last write has no lineage, and name some of them."""
    count, foreign = 0, list[str]()
    for name, lineage in _walk(stage.through_tap(target), stage):
        count += 1
        if not lineage.entries:
            foreign.append(name)
    if not foreign:
        return holds(f"all {count} by azguard")
    named = ", ".join(foreign[:_MOST_NAMES]) + (", …" if len(foreign) > _MOST_NAMES else "")
    share = round(100 * len(foreign) / count)
    return differs(f"{len(foreign)} of {count} ({share} %) without a lineage, so not by azguard: {named}")


def _walk(target: Target, stage: CheckStage) -> Iterator[tuple[str, Lineage]]:
    """Yield the name of each blob or entity, and its lineage."""
    if target.kind is Kind.TABLE:
        select = ",".join((*edm.KEYS, KEY))
        for page, _ in entities.walk_pages(target, stage.deadline, None, select):
            yield from (("/".join(str(each.entity[key]) for key in edm.KEYS), each.lineage) for each in page)
        return
    for item in listing.walk(target, stage.deadline, include=("metadata",)):
        if not item.hides_metadata:
            yield item.name, Lineage.find(item.metadata)


def _check_policies(target: Target, stage: CheckStage) -> CheckFinding:
    """Tell which stored access policies allow writes, to each holder of a SAS that names one."""
    found = parts.get_policies(stage.through_tap(target), Conditions(), stage.deadline).policies
    writing = [
        f"{name} ({policy['permission']})"
        for name, policy in found.items()
        if _WRITE_LETTERS & set(policy.get("permission") or "")
    ]
    if writing:
        return differs(f"a SAS of each of these stored access policies: {', '.join(writing)}")
    return holds("no stored access policy allows it; a key, a role, or another SAS does")
