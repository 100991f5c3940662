"""A get of a large blob with the SDK alone: what ``azguard blob get -f FILE`` is measured against.

    python sdk_get.py FILE CONNECTIONS

It is what most scripts do: no temporary file, no fsync, no hash of the content.
"""

import os
import sys

from azure.storage.blob import BlobClient

blob = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], "speed", "large")
with open(sys.argv[1], "wb") as file:
    blob.download_blob(max_concurrency=int(sys.argv[2])).readinto(file)
