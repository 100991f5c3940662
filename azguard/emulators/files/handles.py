"""Open handles: over REST there are none.

Sources: https://learn.microsoft.com/rest/api/storageservices/list-handles
https://learn.microsoft.com/rest/api/storageservices/force-close-handles
"""

from azguard.emulators.files import answers
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import Answer, Request


def show(store: Store, request: Request) -> Answer:
    """List the handles on a file, a directory or a share."""
    store.get(store.get_share(request), request.path)
    root = answers.element("EnumerationResults", answers.element("Entries"), answers.text("NextMarker", ""))
    return answers.respond_xml(root)


def close(store: Store, request: Request) -> Answer:
    """Close handles; the answer counts them."""
    request.require("x-ms-handle-id")
    store.get(store.get_share(request), request.path)
    return Answer(200, {"x-ms-number-of-handles-closed": "0", "x-ms-number-of-handles-failed": "0"})
