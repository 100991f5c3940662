"""The shares over SMB: Samba, the emulator's own connection to it, and what stands between REST and SMB."""

from contextlib import AbstractContextManager

from azguard.emulators.files.arbiter import Arbiter, Opens
from azguard.emulators.files.open_files import SambaFiles
from azguard.emulators.files.samba import Samba
from azguard.emulators.files.smb_client import SmbClient
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import FileRequest


class Smb:
    """Serves the shares of one emulator over SMB."""

    def __init__(self, account: str, key: str, host: str, port: int) -> None:
        """Start Samba; port 0 takes a free one. ``key`` is the account's key in base64, and the password.

        Raises:
            PortTaken: the port is taken.
            Unserved: Samba is not installed, or does not start.
        """
        self._samba = Samba(account, key, host, port)
        self._client = SmbClient(self._samba.host, self._samba.port, account, key)
        self._arbiter = Arbiter(self._client)
        #: The port that it listens on.
        self.port = self._samba.port

    def begin(self, store: Store) -> None:
        """Serve the shares of a store."""
        with store.transaction():
            self.publish(store)
        store.smb = SambaFiles(self._samba, self._client)
        self._arbiter.restore(store)

    def publish(self, store: Store) -> None:
        """Serve just those shares that are there now; inside a transaction."""
        gone = self._samba.publish(store.list_smb_folders())
        for folder in gone:
            self._arbiter.forget_share(folder)

    def admit(self, store: Store, request: FileRequest, opens: Opens) -> AbstractContextManager[None]:
        """Keep the files of an operation open over SMB for the length of a ``with`` block."""
        return self._arbiter.admit(store, request, opens)

    def stop(self) -> None:
        """End Samba, and all that it serves."""
        self._client.close()
        self._samba.stop()
