"""File permissions that a share keeps for many files.

Source: https://learn.microsoft.com/rest/api/storageservices/create-permission
"""

import json

from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.headers import check_permission
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import FileAnswer, FileRequest


def create(store: Store, request: FileRequest) -> FileAnswer:
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


def show(store: Store, request: FileRequest) -> FileAnswer:
    """Return the permission of a key."""
    store.get_share(request)
    found = store.database.find_permission(request.require("x-ms-file-permission-key"))
    if found is None:
        raise ServiceError("ResourceNotFound")
    return FileAnswer(200, {"Content-Type": "application/json"}, json.dumps({"permission": found}).encode())
