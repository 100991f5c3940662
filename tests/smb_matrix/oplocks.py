"""An SMB client that holds an oplock, and hears when it is broken. smbprotocol itself would stop at the first break."""

import threading
from collections import OrderedDict
from typing import Any

from smbprotocol.header import Commands, SMB2HeaderRequest
from smbprotocol.open import Open
from smbprotocol.structure import BytesField, IntField, Structure

from tests.smb_matrix.endpoint import SmbClient

NONE, LEVEL_2, BATCH = 0x00, 0x01, 0x09
# A break is no answer: it has this number.
_UNSOLICITED = 0xFFFFFFFFFFFFFFFF
_SECONDS = 60


class _Acknowledgment(Structure):  # type: ignore[misc]  # smbprotocol has no types
    """SMB2 OPLOCK_BREAK Acknowledgment, [MS-SMB2] 2.2.24.1."""

    COMMAND = Commands.SMB2_OPLOCK_BREAK

    def __init__(self) -> None:
        self.fields = OrderedDict(
            [
                ("structure_size", IntField(size=2, default=24)),
                ("oplock_level", IntField(size=1)),
                ("reserved", IntField(size=1)),
                ("reserved2", IntField(size=4)),
                ("file_id", BytesField(size=16)),
            ]
        )
        super().__init__()


class Breaks:
    """Hears the breaks of one client: takes the place of a request that was sent."""

    def __init__(self, client: SmbClient) -> None:
        self._client = client
        self.session_id = client.tree.session.session_id
        self.message = SMB2HeaderRequest()
        self.async_id: int | None = None
        self.response: Any = None
        self.response_event = threading.Event()
        self.response_event_lock = threading.Lock()
        client.connection.outstanding_requests[_UNSOLICITED] = self

    def wait(self) -> int:
        """Return the level to which an oplock is broken, when that comes."""
        assert self.response_event.wait(_SECONDS), "no break came"
        self.response_event.clear()
        level: int = self.response["data"].get_value()[2]
        return level

    def came(self) -> bool:
        """Return whether a break came that was not waited for."""
        return self.response_event.is_set()

    def acknowledge(self, opened: Open, level: int) -> None:
        """Give an oplock up, down to a level."""
        message = _Acknowledgment()
        message["oplock_level"] = level
        message["file_id"] = opened.file_id
        tree = self._client.tree
        self._client.connection.receive(
            self._client.connection.send(message, tree.session.session_id, tree.tree_connect_id)
        )
