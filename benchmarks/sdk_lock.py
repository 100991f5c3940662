"""The smallest script that runs a command under a lease: what ``azguard lock run`` is measured against.

It does not renew the lease, does not wait for one, leaves the command running when it is killed, and needs the blob to
be there.
"""

import os
import subprocess
import sys

from azure.storage.blob import BlobClient

blob = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], "speed", "lock")
lease = blob.acquire_lease(60)
metadata = blob.get_blob_properties(lease=lease).metadata
fence = str(int(metadata.get("fence", "0")) + 1)
blob.set_blob_metadata({**metadata, "fence": fence}, lease=lease)
ended = subprocess.run(sys.argv[1:], env={**os.environ, "FENCE": fence}, check=False)
lease.release()
sys.exit(ended.returncode)
