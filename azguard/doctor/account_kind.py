"""Checks of the account: its kind, what it keeps, and what each means for azguard."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from azguard.accounts.account import Auth, Target
from azguard.address import Kind
from azguard.doctor.checks import Check, CheckFinding, differs, holds, not_possible
from azguard.doctor.stage import CheckStage
from azguard.doctor.tap import find_origin
from azguard.wire import xml
from azguard.wire.operations.accounts import ACCOUNT_GET_BLOB_SERVICE, ACCOUNT_GET_INFORMATION
from azguard.wire.operations.blobs import BLOB_GET, BLOB_GET_PROPERTIES
from azguard.wire.operations.containers import CONTAINER_GET_PROPERTIES
from azguard.wire.operations.shares import SHARE_GET_PROPERTIES

PART = "account"
_MEANINGS = {
    "BlobStorage": "no tables, queues and files",
    "BlockBlobStorage": "no page blobs, tables, queues and files",
    "FileStorage": "files only",
    "Storage": "no index tags, so no fences on blobs",
}
_NO_TAGS = "a hierarchical namespace: no index tags, so no fences on blobs; names with / are in directories"
_ENCRYPTION_SCOPE = "x-ms-encryption-scope"
_NOT_PUBLIC = (401, 403, 404)


def list_checks(services: tuple[str, ...]) -> Iterator[Check]:
    """Yield the checks of the account and of these services of it."""
    for service in services:
        yield Check(PART, f"{service} service", partial(check_server, service), service)
    if "blob" in services:
        yield Check(PART, "kind of account", check_kind, "blob", 1)
        yield Check(PART, "earlier versions of blobs", check_versions, "blob", 2)
        yield Check(PART, "deleted blobs", check_soft_delete, "blob", 1)
        yield Check(PART, "blobs that may not be changed", check_immutability, "blob", 1)
        yield Check(PART, "readers without a login", check_public_access, "blob", 1)
        yield Check(PART, "encryption", check_encryption, "blob", 1)
    if "file" in services:
        yield Check(PART, "protocols of a share", check_protocols, "file", 1)


def check_server(service: str, stage: CheckStage) -> CheckFinding:
    """Tell what answers, as it calls itself."""
    return holds(stage.tap.servers.get(find_origin(stage.account.endpoints[service])) or "does not say")


def check_kind(stage: CheckStage) -> CheckFinding:
    """Tell the kind of account, and what cannot be had there."""
    target = stage.find_target("blob")
    headers = stage.require(stage.send(ACCOUNT_GET_INFORMATION, target), target).headers
    sku, kind = headers.get("x-ms-sku-name", ""), headers.get("x-ms-account-kind", "")
    has_directories = headers.get("x-ms-is-hns-enabled", "").lower() == "true"
    meaning = _NO_TAGS if has_directories else _MEANINGS.get(kind, "")
    return holds(": ".join(filter(None, (f"{kind} {sku}".strip(), meaning))))


def check_versions(stage: CheckStage) -> CheckFinding:
    """Tell whether a blob's earlier versions are kept."""
    blob = stage.source(Kind.BLOB, "")
    found = stage.require(stage.send(BLOB_GET_PROPERTIES, blob), blob)
    if found.version_id is None:
        return holds("not kept: after a foreign write, an outcome in doubt can stay unknown")
    return holds("kept: they settle more doubts, and what is overwritten can be restored")


def check_soft_delete(stage: CheckStage) -> CheckFinding:
    """Tell whether what is deleted can be had back."""
    target = stage.find_target("blob")
    answer = stage.require(stage.send(ACCOUNT_GET_BLOB_SERVICE, target), target)
    policy = xml.parse(answer, "properties of a service").find("DeleteRetentionPolicy")
    if policy is None or (policy.findtext("Enabled") or "").lower() != "true":
        return holds("not kept: what is deleted is gone")
    return holds(f"kept for {policy.findtext('Days')} days, and can be undeleted")


def check_immutability(stage: CheckStage) -> CheckFinding:
    """Tell whether a policy or a legal hold forbids changes in the container."""
    target = stage.rooms["blob"]
    found = stage.require(stage.send(CONTAINER_GET_PROPERTIES, target), target)
    if found.has_legal_hold or found.has_immutability_policy:
        return differs("the container has a policy or a legal hold: what exists is not changed and not deleted")
    return holds("none in this container")


def check_public_access(stage: CheckStage) -> CheckFinding:
    """Tell whether a blob of ours can be read without a login."""
    blob = stage.source(Kind.BLOB, "")
    stranger = Target(replace(stage.account, auth=Auth.ANONYMOUS, secret=None), blob.address)
    found = stage.send(BLOB_GET, stranger)
    if found.is_done:
        return differs("blobs of this container can be read without a login")
    if found.code == "PublicAccessNotPermitted":
        return holds("the account allows none")
    return holds("not in this container") if found.status in _NOT_PUBLIC else not_possible(str(found))


def check_encryption(stage: CheckStage) -> CheckFinding:
    """Tell with which key a blob is encrypted that names none."""
    blob = stage.source(Kind.BLOB, "")
    found = stage.require(stage.send(BLOB_GET_PROPERTIES, blob), blob)
    scope = found.headers.get(_ENCRYPTION_SCOPE)
    return holds("with the account's key" if scope is None else "with the key of an encryption scope")


def check_protocols(stage: CheckStage) -> CheckFinding:
    """Tell over which protocols a share can be used."""
    share = stage.rooms["file"]
    found = stage.require(stage.send(SHARE_GET_PROPERTIES, share), share)
    return holds(" and ".join(found.protocols or ("SMB",)))
