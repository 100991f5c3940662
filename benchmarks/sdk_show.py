"""The smallest script that prints a blob's ETag: what ``azguard blob show`` is measured against."""

import os
import sys

from azure.storage.blob import BlobClient

blob = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], "speed", "config.json")
sys.stdout.write(blob.get_blob_properties().etag + "\n")
