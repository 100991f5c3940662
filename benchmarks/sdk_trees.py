"""A folder into a container, or back, by the SDK and a pool of threads: no guard, no check, no hash, no report.

python sdk_trees.py put|get FOLDER CONTAINER
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.storage.blob import ContainerClient

JOBS = 16
CONNECTIONS = 6


def main() -> None:
    """Move all files."""
    way, folder, container = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    client = ContainerClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], container)

    def put(path: Path) -> None:
        with open(path, "rb") as content:
            client.upload_blob(str(path.relative_to(folder)), content, overwrite=True, max_concurrency=CONNECTIONS)

    def get(name: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            client.download_blob(name, max_concurrency=CONNECTIONS).readinto(file)

    with ThreadPoolExecutor(JOBS) as pool:
        if way == "put":
            list(pool.map(put, (path for path in folder.rglob("*") if path.is_file())))
        else:
            list(pool.map(get, client.list_blob_names()))


if __name__ == "__main__":
    main()
