"""Operations on shares, on the permissions that a share keeps for its files, and on the service.

Sources: https://learn.microsoft.com/rest/api/storageservices/operations-on-shares--file-service-
https://learn.microsoft.com/rest/api/storageservices/create-permission
"""

import json
import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from azguard.emulators.files import answers, leases
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.database import DIRECTORY, ShareRecord
from azguard.emulators.files.directories import LISTED_SETTINGS
from azguard.emulators.files.request import FileRequest, check_metadata
from azguard.emulators.files.store import Store, check_permission

_NOUN = "Container"
_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]\Z")
_PROTOCOLS = "x-ms-enabled-protocols"
# As a standard account of the service: https://github.com/Azure/azure-sdk-for-js/issues/16430
_NO_NFS = "Shares of the protocol NFS need a premium account."
# What a share has unless it is set.
_DEFAULTS = {
    "x-ms-share-quota": "5120",
    "x-ms-access-tier": "TransactionOptimized",
    _PROTOCOLS: "SMB",
}
_SETTABLE = ("x-ms-share-quota", "x-ms-access-tier", *LISTED_SETTINGS)
_LARGEST_QUOTA = 102_400
_MOST_SNAPSHOTS = 200
_MOST_CORS_RULES = 5
_SECONDS_PER_DAY = 86_400
_SERVICE = "service"
_NO_PROPERTIES = (
    "<StorageServiceProperties>"
    + "".join(
        f"<{name}><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled>"
        f"</RetentionPolicy></{name}>"
        for name in ("HourMetrics", "MinuteMetrics")
    )
    + "<Cors /><ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB></ProtocolSettings>"
    + "</StorageServiceProperties>"
)


def create(store: Store, request: FileRequest) -> FileAnswer:
    """Create a share."""
    if not _NAME.match(request.share):
        raise ServiceError("InvalidResourceName")
    store.refuse_deleted(request.share)
    if store.database.find_share(request.share) is not None:
        raise ServiceError("ShareAlreadyExists")
    etag, modified = store.next_version()
    share = ShareRecord(request.share, 0, etag, modified, metadata=check_metadata(request.metadata))
    share.settings = {**_DEFAULTS, **_read_settings(request)}
    store.database.add_share(share)
    # A creation that failed, such as on a full disk, had the same number.
    store.disk.remove_share(share.root)
    store.disk.make_directory(share.root)
    root = store.make_node(share.root, "", DIRECTORY)
    store.save(root)
    return FileAnswer(201, share.version_headers)


def show(store: Store, request: FileRequest) -> FileAnswer:
    """Return the properties and metadata of a share or snapshot."""
    share = _get_for_read(store, request)
    headers = {
        **share.version_headers,
        **answers.metadata_headers(share.metadata),
        **share.settings,
        **share.lease.headers(store.now()),
        "x-ms-has-immutability-policy": "false",
        "x-ms-has-legal-hold": "false",
    }
    return FileAnswer(200, headers)


def show_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Return the metadata of a share or snapshot."""
    share = _get_for_read(store, request)
    return FileAnswer(
        200,
        {**share.version_headers, **answers.metadata_headers(share.metadata)},
    )


def set_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Replace the metadata of a share."""
    share = _get_for_write(store, request)
    share.metadata = check_metadata(request.metadata)
    return _save(store, share)


def set_properties(store: Store, request: FileRequest) -> FileAnswer:
    """Set the quota, the tier and the like."""
    share = _get_for_write(store, request)
    share.settings.update(_read_settings(request))
    return _save(store, share)


def delete(store: Store, request: FileRequest) -> FileAnswer:
    """Delete a share, with its snapshots if that is said, or one snapshot."""
    share = store.get_share(request)
    leases.check_write(share.lease, request.lease_id, store.now(), _NOUN)
    if share.snapshot:
        _remove(store, share)
        return FileAnswer(202)
    snapshots = [each for each in store.database.list_shares(share.name) if each.snapshot and each.deleted is None]
    how = request.headers.get("x-ms-delete-snapshots", "").lower()
    if snapshots and how not in ("include", "include-leased"):
        raise ServiceError("ShareHasSnapshots")
    if how != "include-leased" and any(each.lease.state(store.now()) == "leased" for each in snapshots):
        raise ServiceError("DeleteShareWhenSnapshotLeased")
    for snapshot in snapshots:
        _remove(store, snapshot)
    store.deleted_shares[share.name] = store.now()
    if store.retention_days:
        share.deleted = store.now()
        share.version = f"{answers.to_ticks(share.deleted):016X}"
        share.lease = leases.FREE
        store.database.save_share(share)
    else:
        _remove(store, share)
    return FileAnswer(202)


def restore(store: Store, request: FileRequest) -> FileAnswer:
    """Restore a share that was deleted."""
    name, version = request.require("x-ms-deleted-share-name"), request.require("x-ms-deleted-share-version")
    found = [each for each in store.database.list_shares(name) if each.version and each.version == version]
    if not found:
        raise ServiceError("ShareNotFound")
    if store.database.find_share(request.share) is not None:
        raise ServiceError("ShareAlreadyExists")
    share = found[0]
    share.name, share.deleted, share.version = request.share, None, ""
    share.etag, share.modified = store.next_version()
    store.database.save_share(share)
    return FileAnswer(201, share.version_headers)


def snapshot(store: Store, request: FileRequest) -> FileAnswer:
    """Take a snapshot of a share."""
    share = store.get_share(request)
    taken = [each for each in store.database.list_shares(share.name) if each.snapshot]
    if len(taken) >= _MOST_SNAPSHOTS:
        raise ServiceError("ShareSnapshotCountExceeded")
    time_of_it = answers.format_ticks(store.database.count_up("snapshot", answers.to_ticks(store.now())))
    new = ShareRecord(share.name, 0, share.etag, share.modified, time_of_it, settings=dict(share.settings))
    new.metadata = check_metadata(request.metadata) or dict(share.metadata)
    store.database.add_share(new)
    store.disk.copy_share(share.root, new.root)
    for node in store.database.list_all_nodes(share.root):
        known = store.find(share.root, node.path)
        if known is None:
            continue
        known.root = new.root
        known.lease = leases.FREE
        store.save(known)
    return FileAnswer(201, {**share.version_headers, "x-ms-snapshot": time_of_it})


def show_stats(store: Store, request: FileRequest) -> FileAnswer:
    """Return how many bytes are in a share."""
    share = _get_for_read(store, request)
    body = answers.element("ShareStats", answers.text("ShareUsageBytes", store.disk.count_bytes(share.root)))
    return answers.respond_xml(body, share.version_headers)


def show_policies(store: Store, request: FileRequest) -> FileAnswer:
    """Return the access policies of a share."""
    share = _get_for_read(store, request)
    return answers.respond_xml(share.policies or "<SignedIdentifiers />", share.version_headers)


def set_policies(store: Store, request: FileRequest) -> FileAnswer:
    """Replace the access policies of a share."""
    share = _get_for_write(store, request)
    share.policies = _read_policies(request) if request.body else ""
    return _save(store, share)


def lease(store: Store, request: FileRequest) -> FileAnswer:
    """Acquire, renew, change, release or break the lease of a share or snapshot."""
    share = store.get_share(request)
    share.lease, status, headers = leases.act(share.lease, request.headers, store.now(), timed=True)
    store.database.save_share(share)
    return FileAnswer(status, {**share.version_headers, **headers})


def show_service(store: Store, _: FileRequest) -> FileAnswer:
    """Return the properties of the service."""
    return answers.respond_xml(store.database.find_document(_SERVICE) or _NO_PROPERTIES)


def set_service(store: Store, request: FileRequest) -> FileAnswer:
    """Set properties of the service; those that are not named stay."""
    new = _read_document(request, "StorageServiceProperties")
    if len(new.findall("Cors/CorsRule")) > _MOST_CORS_RULES:
        raise ServiceError("InvalidXmlDocument")
    kept = ET.fromstring(store.database.find_document(_SERVICE) or _NO_PROPERTIES)  # noqa: S314  # our own
    for each in new:
        for old in kept.findall(each.tag):
            kept.remove(old)
        kept.append(each)
    store.database.save_document(_SERVICE, ET.tostring(kept, encoding="unicode"))
    return FileAnswer(202)


def forget_expired(store: Store) -> None:
    """Remove deleted shares whose time for being restored is over."""
    for share in store.database.list_shares():
        if share.deleted is not None and store.now() > share.deleted + store.retention_days * _SECONDS_PER_DAY:
            _remove(store, share)


def _get_for_read(store: Store, request: FileRequest) -> ShareRecord:
    share = store.get_share(request)
    leases.check_read(share.lease, request.lease_id, store.now(), _NOUN)
    return share


def _get_for_write(store: Store, request: FileRequest) -> ShareRecord:
    share = store.get_share(request)
    share.lease = leases.check_write(share.lease, request.lease_id, store.now(), _NOUN)
    return share


def _save(store: Store, share: ShareRecord) -> FileAnswer:
    share.etag, share.modified = store.next_version()
    store.database.save_share(share)
    return FileAnswer(200, share.version_headers)


def _remove(store: Store, share: ShareRecord) -> None:
    store.database.remove_share(share.root)
    store.disk.remove_share(share.root)


def _read_settings(request: FileRequest) -> dict[str, str]:
    found = {name: request.headers[name] for name in _SETTABLE if request.headers.get(name)}
    quota = found.get("x-ms-share-quota", "1")
    if not quota.isdecimal() or not 1 <= int(quota) <= _LARGEST_QUOTA:
        raise ServiceError("InvalidHeaderValue")
    protocols = found.get(_PROTOCOLS, "SMB")
    if protocols != "SMB":
        details = {"HeaderName": _PROTOCOLS, "HeaderValue": protocols, "Reason": _NO_NFS}
        raise ServiceError("InvalidHeaderValue", details=answers.texts(details))
    return found


def _read_policies(request: FileRequest) -> str:
    """Return the policies as the service tells them: times with seven digits of a second, nothing that is empty."""
    root = _read_document(request, "SignedIdentifiers")
    for policy in root.iter("AccessPolicy"):
        for each in list(policy):
            if not each.text:
                policy.remove(each)
            elif each.tag in ("Start", "Expiry"):
                each.text = _spell_time(each.text)
    return ET.tostring(root, encoding="unicode")


def _spell_time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ServiceError("InvalidXmlDocument") from None
    return answers.format_time((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _read_document(request: FileRequest, tag: str) -> ET.Element:
    try:
        root = ET.fromstring(request.body)  # noqa: S314  # 4 MiB at most, from who has the key of an emulator
    except ET.ParseError:
        raise ServiceError("InvalidXmlDocument") from None
    if root.tag != tag:
        raise ServiceError("InvalidXmlDocument")
    return root


def create_permission(store: Store, request: FileRequest) -> FileAnswer:
    """Keep a permission; the answer names the key by which files get it."""
    store.get_share(request)
    try:
        document = json.loads(request.body)
        text = document["permission"]
    except (ValueError, KeyError, TypeError):
        raise ServiceError("InvalidInput") from None
    if not isinstance(text, str):
        raise ServiceError("InvalidInput")
    key = store.keep_permission(
        check_permission(text, {"x-ms-file-permission-format": str(document.get("format", ""))})
    )
    return FileAnswer(201, {"x-ms-file-permission-key": key})


def show_permission(store: Store, request: FileRequest) -> FileAnswer:
    """Return the permission of a key."""
    store.get_share(request)
    found = store.database.find_permission(request.require("x-ms-file-permission-key"))
    if found is None:
        raise ServiceError("ResourceNotFound")
    return FileAnswer(200, {"Content-Type": "application/json"}, json.dumps({"permission": found}).encode())
