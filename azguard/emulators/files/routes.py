"""Which request is which operation, and what a SAS must allow for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from azguard.emulators.files import copies, directories, files, handles, ranges, shares
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.arbiter import Opens
from azguard.emulators.files.request import FileRequest
from azguard.emulators.files.signatures import Needs
from azguard.emulators.files.store import Store

_SERVICE, _SHARE, _DIRECTORY, _FILE = "service", "share", "directory", "file"


@dataclass(frozen=True)
class Route:
    """An operation: what does it, and what a SAS must allow."""

    run: Callable[[Store, FileRequest], FileAnswer]
    needs: Needs
    #: How it opens its file over SMB, if the shares are served so.
    opens: Opens = Opens.NOTHING


#: How operations open their file over SMB; the others do not.
_OPENS: Mapping[Callable[[Store, FileRequest], FileAnswer], Opens] = {
    copies.copy: Opens.REPLACE,
    directories.delete: Opens.DELETE,
    files.create: Opens.REPLACE,
    files.delete: Opens.DELETE,
    files.get: Opens.READ,
    files.lease: Opens.LEASE,
    files.set_metadata: Opens.CHANGE,
    files.set_properties: Opens.CHANGE,
    files.show: Opens.LOOK,
    files.show_metadata: Opens.LOOK,
    ranges.put: Opens.WRITE,
    ranges.show: Opens.READ,
    files.rename_directory: Opens.RENAME,
    files.rename_file: Opens.RENAME,
}


def _of_share(run: Callable[[Store, FileRequest], FileAnswer], account: str, service: str = "") -> Route:
    return Route(run, Needs(account, "c", service))


def _of_item(run: Callable[[Store, FileRequest], FileAnswer], letters: str) -> Route:
    return Route(run, Needs(letters, "o", letters), _OPENS.get(run, Opens.NOTHING))


_LIST = Route(directories.list_directory, Needs("l", "c", "l"))

#: Operations by method, kind of resource and ``comp``.
_OPERATIONS: Mapping[tuple[str, str, str], Route] = {
    ("GET", _SERVICE, "list"): Route(directories.list_shares, Needs("l", "s")),
    ("GET", _SERVICE, "properties"): Route(shares.show_service, Needs("r", "s")),
    ("PUT", _SERVICE, "properties"): Route(shares.set_service, Needs("w", "s")),
    ("PUT", _SHARE, ""): _of_share(shares.create, "cw"),
    ("GET", _SHARE, ""): _of_share(shares.show, "r"),
    ("HEAD", _SHARE, ""): _of_share(shares.show, "r"),
    ("DELETE", _SHARE, ""): _of_share(shares.delete, "d"),
    ("PUT", _SHARE, "snapshot"): _of_share(shares.snapshot, "cw"),
    ("PUT", _SHARE, "undelete"): _of_share(shares.restore, "w"),
    ("PUT", _SHARE, "properties"): _of_share(shares.set_properties, "w"),
    ("GET", _SHARE, "metadata"): _of_share(shares.show_metadata, "r"),
    ("HEAD", _SHARE, "metadata"): _of_share(shares.show_metadata, "r"),
    ("PUT", _SHARE, "metadata"): _of_share(shares.set_metadata, "w"),
    ("GET", _SHARE, "acl"): _of_share(shares.show_policies, ""),
    ("PUT", _SHARE, "acl"): _of_share(shares.set_policies, ""),
    ("GET", _SHARE, "stats"): _of_share(shares.show_stats, "r"),
    ("PUT", _SHARE, "lease"): _of_share(shares.lease, "wd"),
    ("PUT", _SHARE, "filepermission"): _of_share(shares.create_permission, "cw", "cw"),
    ("GET", _SHARE, "filepermission"): _of_share(shares.show_permission, "r", "r"),
    ("PUT", _DIRECTORY, ""): _of_item(directories.create, "cw"),
    ("GET", _DIRECTORY, ""): _of_item(directories.show, "r"),
    ("HEAD", _DIRECTORY, ""): _of_item(directories.show, "r"),
    ("DELETE", _DIRECTORY, ""): _of_item(directories.delete, "d"),
    ("GET", _DIRECTORY, "list"): _LIST,
    ("GET", _DIRECTORY, "metadata"): _of_item(files.show_metadata, "r"),
    ("HEAD", _DIRECTORY, "metadata"): _of_item(files.show_metadata, "r"),
    ("PUT", _DIRECTORY, "metadata"): _of_item(directories.set_metadata, "w"),
    ("PUT", _DIRECTORY, "properties"): _of_item(directories.set_properties, "w"),
    ("PUT", _DIRECTORY, "rename"): _of_item(files.rename_directory, "w"),
    ("PUT", _FILE, ""): _of_item(files.create, "cw"),
    ("GET", _FILE, ""): _of_item(files.get, "r"),
    ("HEAD", _FILE, ""): _of_item(files.show, "r"),
    ("DELETE", _FILE, ""): _of_item(files.delete, "d"),
    ("PUT", _FILE, "range"): _of_item(ranges.put, "w"),
    ("GET", _FILE, "rangelist"): _of_item(ranges.show, "r"),
    ("GET", _FILE, "metadata"): _of_item(files.show_metadata, "r"),
    ("HEAD", _FILE, "metadata"): _of_item(files.show_metadata, "r"),
    ("PUT", _FILE, "metadata"): _of_item(files.set_metadata, "w"),
    ("PUT", _FILE, "properties"): _of_item(files.set_properties, "w"),
    ("PUT", _FILE, "lease"): _of_item(files.lease, "wd"),
    ("PUT", _FILE, "rename"): _of_item(files.rename_file, "w"),
    ("PUT", _FILE, "copy"): _of_item(copies.abort, "w"),
    ("GET", _FILE, "listhandles"): Route(handles.show, Needs("l", "o", "l")),
    ("PUT", _FILE, "forceclosehandles"): _of_item(handles.close, "wd"),
}
_COPY = _of_item(copies.copy, "cw")


def find_operation(request: FileRequest) -> Route:
    """Return the operation that a request asks for."""
    comp = request.query.get("comp", "").lower()
    kind = _find_kind(request, comp)
    if request.method == "PUT" and kind == _FILE and not comp and "x-ms-copy-source" in request.headers:
        return _COPY
    try:
        return _OPERATIONS[request.method, kind, comp]
    except KeyError:
        pass
    if any(found[1:] == (kind, comp) for found in _OPERATIONS):
        raise ServiceError("UnsupportedHttpVerb")
    raise ServiceError("InvalidQueryParameterValue")


def _find_kind(request: FileRequest, comp: str) -> str:
    if not request.share:
        return _SERVICE
    restype = request.query.get("restype", "").lower()
    if restype in (_SHARE, _DIRECTORY):
        return restype
    if comp in ("undelete", "filepermission"):
        return _SHARE
    return _FILE
