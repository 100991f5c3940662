"""Operations on directories.

Source: https://learn.microsoft.com/rest/api/storageservices/operations-on-directories
"""

from azguard.emulators.files import answers
from azguard.emulators.files.disk import check_name
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.headers import apply_smb_properties, check_metadata, smb_headers
from azguard.emulators.files.records import DIRECTORY, Node, ShareRecord, parent_of
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import FileAnswer, FileRequest


def create(store: Store, request: FileRequest) -> FileAnswer:
    """Create a directory."""
    share = store.get_share(request)
    check_name(request.path)
    parent = store.require_parent(share, request.path)
    found = store.find(share, request.path)
    if found is not None:
        raise ServiceError("ResourceAlreadyExists" if found.kind == DIRECTORY else "ResourceTypeMismatch")
    path = join(parent, request.path)
    node = store.make_node(share, path, DIRECTORY)
    node.metadata = check_metadata(request.metadata)
    apply_smb_properties(store, node, request, new=True)
    store.disk.make_directory(share.root, path)
    store.save(node)
    return FileAnswer(201, describe_written(store, share, node))


def show(store: Store, request: FileRequest) -> FileAnswer:
    """Return the properties and metadata of a directory."""
    share = store.get_share(request)
    node = store.get_directory(share, request.path)
    return FileAnswer(
        200,
        {
            **describe_written(store, share, node),
            **answers.metadata_headers(node.metadata),
            "x-ms-server-encrypted": "true",
        },
    )


def delete(store: Store, request: FileRequest) -> FileAnswer:
    """Delete an empty directory."""
    share = store.get_share(request)
    node = store.get_directory(share, request.path)
    if not node.path:
        raise ServiceError("InvalidResourceName")
    if store.disk.list_names(share.root, node.path):
        raise ServiceError("DirectoryNotEmpty")
    store.disk.remove(share.root, node.path)
    store.database.remove_node(share.root, node.path)
    return FileAnswer(202)


def set_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Replace the metadata of a directory."""
    share = store.get_share(request)
    node = store.get_directory(share, request.path)
    node.metadata = check_metadata(request.metadata)
    store.save_changed(node)
    return FileAnswer(200, answers.version_headers(node.etag, node.modified))


def set_properties(store: Store, request: FileRequest) -> FileAnswer:
    """Set the attributes, times and permission of a directory."""
    share = store.get_share(request)
    node = store.get_directory(share, request.path)
    apply_smb_properties(store, node, request, new=False)
    store.save_changed(node)
    return FileAnswer(200, describe_written(store, share, node))


def find_parent_id(store: Store, share: ShareRecord, node: Node) -> int:
    """Return the id of the directory in which something is."""
    if not node.path:
        return 0
    parent = store.find(share, parent_of(node.path))
    return parent.id if parent else 0


def describe_written(store: Store, share: ShareRecord, node: Node) -> dict[str, str]:
    """Return the headers by which a write answers with what it wrote."""
    return {
        **answers.version_headers(node.etag, node.modified),
        **smb_headers(node, find_parent_id(store, share, node)),
        "x-ms-request-server-encrypted": "true",
    }


def join(parent: Node, path: str) -> str:
    """Return a path whose directories are written as they are on the disk."""
    name = path.rpartition("/")[2]
    return f"{parent.path}/{name}" if parent.path else name
