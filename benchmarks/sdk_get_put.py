"""The smallest script that raises a number in a blob: what ``azguard safe-update --increment`` is measured against.

It loses updates when two of it run at once.
"""

import json
import os

from azure.storage.blob import BlobClient

blob = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], "speed", "config.json")
config = json.loads(blob.download_blob().readall())
config["replicas"] += 1
blob.upload_blob(json.dumps(config), overwrite=True)
