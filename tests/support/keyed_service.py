"""A service that treats blobs as the live one does that are encrypted with a key, or in a scope, of their writer.

Source: recordings of the live service in the tests of Azure's SDK for JavaScript. A HEAD without the key is answered
409 BlobUsesCustomerSpecifiedEncryption, one with a key of a blob that has none 409
BlobDoesNotUseCustomerSpecifiedEncryption. A write of content tells the digest of its key, and a snapshot does not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET

from azguard.accounts.account import from_connection_string
from azguard.wire.client import NetworkClient
from azguard.wire.connections import Headers, Reply
from tests.support.cli_world import CliWorld
from tests.support.live_like import Asked, Deviation, Forward, LiveLike, change

#: The headers that name a key or a scope; the emulator refuses, or ignores, them.
HEADERS = (
    *("x-ms-encryption-key", "x-ms-encryption-key-sha256", "x-ms-encryption-algorithm"),
    "x-ms-encryption-scope",
)
_DIGEST, _SCOPE = HEADERS[1], HEADERS[3]
# What is done to a blob that is there, by its verb and ``comp``, that takes its key.
_KEYED = {("GET", ""), ("HEAD", ""), *(("PUT", comp) for comp in ("metadata", "snapshot", "appendblock", "page"))}
_Encryption = tuple[str | None, str | None]
_NONE: _Encryption = None, None


@dataclass
class KeyedService:
    """Keeps by the path of each blob how it is encrypted: the digest of a key, or the name of a scope."""

    kept: dict[str, _Encryption] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    #: What a test puts in the place of ``answer``.
    play: Deviation | None = None

    def respond(self, service: LiveLike, asked: Asked, forward: Forward) -> Reply:
        """Answer as a test plays it."""
        return (self.play or self.answer)(service, asked, forward)

    def answer(self, service: LiveLike, asked: Asked, forward: Forward) -> Reply:
        """Answer as the emulator does, unless the live service would refuse it because of the encryption."""
        self.asked.append(asked)
        path, query = unquote(urlsplit(asked.url).path), parse_qs(urlsplit(asked.url).query)
        comp = query.get("comp", [""])[0]
        given: _Encryption = asked.headers.get(_DIGEST), asked.headers.get(_SCOPE)
        reply = forward(service.without(asked, *HEADERS) if any(given) else asked)
        makes = asked.method == "PUT" and comp in ("", "blocklist")
        code = self._find_refusal(path, given, asked.method) if (asked.method, comp) in _KEYED and not makes else None
        if code is not None and reply.status_code != 404:
            return change(reply, 409, x_ms_error_code=code, content_length="0")._replace(content=b"")
        if makes and reply.status_code == 201:
            self.kept[path] = given
        if comp == "list":
            return reply._replace(content=self._hide_metadata(path, reply.content))
        if comp == "snapshot" or reply.status_code not in (200, 201, 206):
            return reply
        told = [f"{name}: {value}" for name, value in zip((_DIGEST, _SCOPE), given, strict=True) if value]
        lines = [f"{name}: {value}" for name, value in reply.headers.items()]
        return reply._replace(headers=Headers([*lines, *told]))

    def _find_refusal(self, path: str, given: _Encryption, method: str) -> str | None:
        kept = self.kept.get(path, _NONE)
        # A scope is the account's own: a read does not name it.
        if given == kept or (method != "PUT" and kept[0] is None and given == _NONE):
            return None
        if kept == _NONE:
            return "BlobDoesNotUseCustomerSpecifiedEncryption"
        return "BlobCustomerSpecifiedEncryptionMismatch" if any(given) else "BlobUsesCustomerSpecifiedEncryption"

    def _hide_metadata(self, container: str, content: bytes) -> bytes:
        root = ET.fromstring(content)
        for blob in root.iter("Blob"):
            digest, _ = self.kept.get(f"{container}/{blob.findtext('Name')}", _NONE)
            metadata = blob.find("Metadata")
            if digest is not None and metadata is not None:
                metadata.clear()
                metadata.set("Encrypted", "true")
        return ET.tostring(root)


@contextmanager
def running(cli: CliWorld) -> Iterator[KeyedService]:
    """Put the service in the place of the network for the length of a ``with`` block."""
    keyed = KeyedService()
    live = LiveLike(from_connection_string(str(cli.connection_string)), keyed.respond)
    with patch.object(NetworkClient, "send", lambda _, *asked: live.send(*asked)):
        yield keyed
