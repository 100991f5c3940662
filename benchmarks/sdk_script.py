"""The smallest scripts over the SDK that do what a command does: what azguard is measured against.

    python sdk_script.py WHAT

They write beside azguard, which would call it a conflict. Each imports what it needs and no more, and does nothing
about lost answers or other writers.
"""

import os
import sys
from typing import Any

ACCOUNT = os.environ["AZURE_STORAGE_CONNECTION_STRING"]


def _find_blob(name: str = "config.json") -> Any:
    from azure.storage.blob import BlobClient

    return BlobClient.from_connection_string(ACCOUNT, "speed", name)


def _find_table() -> Any:
    from azure.data.tables import TableClient

    return TableClient.from_connection_string(ACCOUNT, "speed")


def _update() -> None:
    import json

    blob = _find_blob()
    content = json.loads(blob.download_blob().readall())
    content["replicas"] += 1
    # It loses updates when two of it run at once.
    blob.upload_blob(json.dumps(content), overwrite=True)


def _send() -> None:
    from azure.storage.queue import QueueClient

    QueueClient.from_connection_string(ACCOUNT, "speed").send_message("resize 17")


SCRIPTS = {
    "blob show": lambda: sys.stdout.write(_find_blob().get_blob_properties().etag + "\n"),
    "blob get": lambda: sys.stdout.buffer.write(_find_blob("small").download_blob().readall()),
    "blob put": lambda: _find_blob("other").upload_blob(b"x" * 1024, overwrite=True),
    "blob metadata set": lambda: _find_blob("other").set_blob_metadata({"owner": "ops"}),
    "lease acquire": lambda: sys.stdout.write(_find_blob("leased").acquire_lease(60).id + "\n"),
    "entity get": lambda: sys.stdout.write(_find_table().get_entity("p", "r")["status"] + "\n"),
    "entity merge": lambda: _find_table().update_entity({"PartitionKey": "p", "RowKey": "other", "status": "new"}),
    "message put": _send,
    "safe-update": _update,
}

if __name__ == "__main__":
    SCRIPTS[sys.argv[1]]()
