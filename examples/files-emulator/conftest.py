"""Give your tests an Azure Files of their own: copy this file to your tests folder.

Needs, in a clone of azguard: pip install '.[emulator]'
"""

import base64
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareServiceClient

from azguard.emulators.files import server
from azguard.emulators.files.__main__ import ACCOUNT, KEY


@pytest.fixture(scope="session")
def file_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShareServiceClient]:
    """Yield a client of a Files emulator that lives as long as the tests."""
    folder = tmp_path_factory.mktemp("files")
    running = server.serve(folder, {ACCOUNT: base64.b64decode(KEY)}, "127.0.0.1", 0)
    endpoint = f"http://127.0.0.1:{running.port}/{ACCOUNT}"
    yield ShareServiceClient(endpoint, credential={"account_name": ACCOUNT, "account_key": KEY})
    running.stop()
