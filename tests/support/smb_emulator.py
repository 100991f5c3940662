"""The Files emulator with SMB: a process of its own, the SDK over REST, smbprotocol over SMB."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.storage.fileshare import ShareServiceClient

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import files_process
from azguard.emulators.azurite_process import discard
from azguard.emulators.files import samba

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class SmbEmulator:
    """A Files emulator that serves its shares over SMB, too."""

    endpoint: str
    smb_port: int
    pid: int
    host: str = "127.0.0.1"
    account: str = EMULATOR_NAME
    #: The password over SMB as well.
    key: str = EMULATOR_KEY

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};"
            f"FileEndpoint={self.endpoint}"
        )

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables that point azguard at it."""
        return {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string, "AZGUARD_SMB_PORT": str(self.smb_port)}

    @property
    def service(self) -> ShareServiceClient:
        return ShareServiceClient.from_connection_string(self.connection_string, retry_total=0)

    @contextmanager
    def connect(self, share: str) -> Iterator[Any]:
        """Yield a share over SMB, as smbprotocol's ``TreeConnect``, on a connection of its own."""
        from smbprotocol.connection import Connection, Dialects
        from smbprotocol.session import Session
        from smbprotocol.tree import TreeConnect

        connection = Connection(uuid.uuid4(), self.host, self.smb_port)
        connection.connect(Dialects.SMB_3_1_1)
        try:
            session = Session(connection, self.account, self.key, require_encryption=True)
            session.connect()
            tree = TreeConnect(session, rf"\\{self.host}\{share}")
            tree.connect()
            yield tree
        finally:
            # Without a farewell: it would wait for answers about handles that tests have closed by force.
            connection.disconnect(close=False)


def open_file(tree: Any, path: str) -> Any:
    """Open a file for reading and writing, and let no other program read it meanwhile."""
    from smbprotocol.open import CreateDisposition, FilePipePrinterAccessMask, ImpersonationLevel, Open

    handle = Open(tree, path)
    access = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
    handle.create(ImpersonationLevel.Impersonation, access, 0, 0, CreateDisposition.FILE_OPEN, 0)
    return handle


def need_samba() -> None:
    """Skip a test where Samba is not installed, but never in CI."""
    try:
        samba.find_programs()
    except samba.Unserved as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs SMB: {error}")
        pytest.skip(str(error))


@contextmanager
def run(folder: Path) -> Iterator[SmbEmulator]:
    """Run one that keeps its shares in a folder, for the length of a ``with`` block."""
    need_samba()
    with tempfile.NamedTemporaryFile() as log:
        running, child = files_process.launch(os.environ, 0, 0, str(folder), log.file, _WAIT_SECONDS)
        try:
            assert running.smb_port is not None, running.smb_problem
            yield SmbEmulator(running.endpoint, running.smb_port, child.pid)
        finally:
            discard(child)
