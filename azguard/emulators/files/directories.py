"""Operations on directories, and listings of directories and shares.

Sources: https://learn.microsoft.com/rest/api/storageservices/operations-on-directories
https://learn.microsoft.com/rest/api/storageservices/list-shares
https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files
"""

from collections.abc import Collection

from azguard.emulators.files import answers
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.database import DIRECTORY, Node, ShareRecord, make_key, parent_of
from azguard.emulators.files.disk import check_name
from azguard.emulators.files.request import FileRequest, check_metadata
from azguard.emulators.files.store import Store, apply_smb_properties, smb_headers

_SECONDS_PER_DAY = 86_400
#: The settings of a share that a listing tells, and their names there.
LISTED_SETTINGS = {
    "x-ms-enabled-protocols": "EnabledProtocols",
    "x-ms-enable-snapshot-virtual-directory-access": "EnableSnapshotVirtualDirectoryAccess",
    "x-ms-enable-smb-directory-lease": "EnableSmbDirectoryLease",
    "x-ms-share-paid-bursting-enabled": "PaidBurstingEnabled",
    "x-ms-share-paid-bursting-max-iops": "PaidBurstingMaxIops",
    "x-ms-share-paid-bursting-max-bandwidth-mibps": "PaidBurstingMaxBandwidthMibps",
    "x-ms-share-provisioned-iops": "ProvisionedIops",
    "x-ms-share-provisioned-bandwidth-mibps": "ProvisionedBandwidthMiBps",
}


def create(store: Store, request: FileRequest) -> FileAnswer:
    """Create a directory."""
    share = store.get_share(request)
    check_name(request.path)
    parent = store.require_parent(share.root, request.path)
    found = store.find(share.root, request.path)
    if found is not None:
        raise ServiceError("ResourceAlreadyExists" if found.kind == DIRECTORY else "ResourceTypeMismatch")
    path = join(parent, request.path)
    node = store.make_node(share.root, path, DIRECTORY)
    node.metadata = check_metadata(request.metadata)
    apply_smb_properties(store, node, request, new=True)
    store.disk.make_directory(share.root, path)
    store.save(node)
    return FileAnswer(201, describe_written(store, node))


def show(store: Store, request: FileRequest) -> FileAnswer:
    """Return the properties and metadata of a directory."""
    node = store.get_directory(request, reads=True)
    headers = {**_describe(store, node), **answers.metadata_headers(node.metadata)}
    return FileAnswer(200, {**headers, "x-ms-server-encrypted": "true"})


def delete(store: Store, request: FileRequest) -> FileAnswer:
    """Delete an empty directory."""
    node = store.get_directory(request)
    if not node.path:
        raise ServiceError("InvalidResourceName")
    if store.disk.list_names(node.root, node.path):
        raise ServiceError("DirectoryNotEmpty")
    store.disk.remove(node.root, node.path)
    store.database.remove_node(node.root, node.path)
    return FileAnswer(202)


def set_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Replace the metadata of a directory."""
    node = store.get_directory(request)
    node.metadata = check_metadata(request.metadata)
    store.save_changed(node)
    return FileAnswer(200, {**node.version_headers, "x-ms-request-server-encrypted": "true"})


def set_properties(store: Store, request: FileRequest) -> FileAnswer:
    """Set the attributes, times and permission of a directory."""
    node = store.get_directory(request)
    apply_smb_properties(store, node, request, new=False)
    store.save_changed(node)
    return FileAnswer(200, describe_written(store, node))


def find_parent_id(store: Store, node: Node) -> int:
    """Return the id of the directory in which something is."""
    if not node.path:
        return 0
    parent = store.find(node.root, parent_of(node.path))
    return parent.id if parent else 0


def describe_written(store: Store, node: Node) -> dict[str, str]:
    """Return the headers by which a write answers with what it wrote."""
    return {**_describe(store, node), "x-ms-request-server-encrypted": "true"}


def _describe(store: Store, node: Node) -> dict[str, str]:
    return {**node.version_headers, **smb_headers(node, find_parent_id(store, node))}


def join(parent: Node, path: str) -> str:
    """Return a path whose directories are written as they are on the disk."""
    name = path.rpartition("/")[2]
    return f"{parent.path}/{name}" if parent.path else name


def list_shares(store: Store, request: FileRequest) -> FileAnswer:
    """List shares, with snapshots, deleted ones and metadata if that is asked for."""
    include = _read_include(request)
    prefix = request.query.get("prefix", "")
    found = {
        f"{share.name}\0{share.snapshot or '~'}\0{share.version}": share
        for share in store.database.list_shares()
        if share.name.startswith(prefix)
        and (not share.snapshot or "snapshots" in include)
        and (share.deleted is None or "deleted" in include)
    }
    names, marker = answers.take_page(found, _decode(request.query.get("marker")), request.query.get("maxresults"))
    shares = [_describe_share(store, found[name], include) for name in names]
    return answers.respond_xml(
        answers.element(
            "EnumerationResults",
            _echo(request, "prefix", "marker", "maxresults"),
            answers.element("Shares", *shares),
            answers.text("NextMarker", _encode(marker)),
            ServiceEndpoint=f"http://{request.host}/{request.account}/",
        )
    )


def list_directory(store: Store, request: FileRequest) -> FileAnswer:
    """List the files and directories in a directory."""
    share = store.get_share(request)
    directory = store.get_directory(request)
    include = _read_include(request)
    prefix = make_key(request.query.get("prefix", ""))
    known = store.database.list_nodes(share.root, directory.path)
    start = f"{directory.path}/" if directory.path else ""
    deleted = store.smb.find_deleted(store.disk.locate(share.root)) if store.smb and not share.snapshot else ()
    names = {
        make_key(name): name
        for name in store.disk.list_names(share.root, directory.path)
        if make_key(name).startswith(prefix) and start + name not in deleted
    }
    keys, marker = answers.take_page(names, _decode(request.query.get("marker")), request.query.get("maxresults"))
    nodes = [store.refresh(share.root, start + names[key], known.get(make_key(start) + key)) for key in keys]
    root = answers.element(
        "EnumerationResults",
        _echo(request, "prefix", "marker", "maxresults"),
        answers.text("DirectoryId", directory.id) if include or request.flag("x-ms-file-extended-info") else "",
        answers.element("Entries", *(_describe_node(node, include) for node in nodes)),
        answers.text("NextMarker", _encode(marker)),
        ServiceEndpoint=f"http://{request.host}/{request.account}/",
        ShareName=share.name,
        **({"ShareSnapshot": share.snapshot} if share.snapshot else {}),
        DirectoryPath=directory.path.replace("\ufffe", "%EF%BF%BE").replace("\uffff", "%EF%BF%BF"),
    )
    return answers.respond_xml(root)


def _describe_share(store: Store, share: ShareRecord, include: Collection[str]) -> str:
    lease = {
        {"status": "LeaseStatus", "state": "LeaseState", "duration": "LeaseDuration"}[name.rpartition("-")[2]]: value
        for name, value in share.lease.headers(store.now()).items()
    }
    properties: dict[str, object] = {
        "Last-Modified": answers.format_date(share.modified),
        "Etag": share.etag,
        **lease,
        "Quota": share.settings.get("x-ms-share-quota", ""),
        "AccessTier": share.settings.get("x-ms-access-tier", ""),
        **{tag: share.settings[name] for name, tag in LISTED_SETTINGS.items() if name in share.settings},
    }
    if share.deleted is not None:
        left = share.deleted + store.retention_days * _SECONDS_PER_DAY - store.now()
        properties["DeletedTime"] = answers.format_date(share.deleted)
        properties["RemainingRetentionDays"] = max(0, round(left / _SECONDS_PER_DAY))
    metadata = answers.element("Metadata", answers.texts(share.metadata)) if "metadata" in include else ""
    return answers.element(
        "Share",
        answers.text("Name", share.name),
        answers.text("Snapshot", share.snapshot) if share.snapshot else "",
        answers.texts({"Deleted": "true", "Version": share.version}) if share.version else "",
        answers.element("Properties", answers.texts(properties)),
        metadata,
    )


def _describe_node(node: Node, include: Collection[str]) -> str:
    properties: dict[str, object] = {} if node.kind == DIRECTORY else {"Content-Length": node.size}
    if "timestamps" in include:
        properties |= {
            "CreationTime": node.created,
            "LastAccessTime": node.created,
            "LastWriteTime": node.written,
            "ChangeTime": node.changed,
            "Last-Modified": answers.format_date(node.modified),
        }
    if "etag" in include:
        properties["Etag"] = node.etag
    return answers.element(
        "Directory" if node.kind == DIRECTORY else "File",
        answers.name_text("Name", node.name),
        answers.text("FileId", node.id),
        answers.element("Properties", answers.texts(properties)),
        answers.text("Attributes", node.attributes) if "attributes" in include else "",
        answers.text("PermissionKey", node.permission_key) if "permissionkey" in include else "",
    )


def _read_include(request: FileRequest) -> set[str]:
    return {each.strip().lower() for each in request.query.get("include", "").split(",") if each}


def _echo(request: FileRequest, *names: str) -> str:
    tags = {"prefix": "Prefix", "marker": "Marker", "maxresults": "MaxResults"}
    return "".join(answers.name_text(tags[name], request.query[name]) for name in names if request.query.get(name))


def _encode(marker: str) -> str:
    return marker.encode().hex()


def _decode(marker: str | None) -> str | None:
    try:
        return bytes.fromhex(marker).decode() if marker else None
    except ValueError:
        return None
