"""The Files emulator without a socket: requests are given to it as a server of WSGI would, with a clock of its own."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from azguard.emulators.files import signatures
from azguard.emulators.files.__main__ import ACCOUNT, KEY
from azguard.emulators.files.request import read_request
from azguard.emulators.files.server import Application
from azguard.emulators.files.store import Store

HOST = "127.0.0.1:10004"
SECRET = base64.b64decode(KEY)


@dataclass(frozen=True)
class Reply:
    """What the emulator answered; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        """Return the error code."""
        return self.headers.get("x-ms-error-code")

    @property
    def said(self) -> tuple[int, str | None]:
        """Return the status and the error code."""
        return self.status, self.code


class FilesEmulator:
    """One emulator in a folder; ``clock`` is its time in seconds since 1970."""

    def __init__(self, folder: Path, *, retention_days: int = 0, share_deletion_seconds: float = 0) -> None:
        self.clock = 1_800_000_000.0
        self.store = Store(
            folder,
            retention_days=retention_days,
            share_deletion_seconds=share_deletion_seconds,
            now=lambda: self.clock,
        )
        self._application = Application(self.store, ACCOUNT, SECRET)

    def close(self) -> None:
        """End it; another one may go on in its folder."""
        self.store.close()

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        key: bytes = SECRET,
        signed: bool = True,
    ) -> Reply:
        """Send a request; ``path`` is without the account, with its query."""
        target = f"/{ACCOUNT}/{quote(path, safe='/?&=%+:,')}"
        pairs = {"Host": HOST, "x-ms-version": "2026-10-06", **(headers or {})}
        if body:
            pairs["Content-Length"] = str(len(body))
        if signed:
            request = read_request(method, target, list(pairs.items()), body, [ACCOUNT])
            text = signatures._build_text(request, str)
            pairs["Authorization"] = f"SharedKey {ACCOUNT}:{signatures.sign(key, text)}"
        return self._call(method, target, pairs, body)

    def _call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        seen: dict[str, Any] = {}

        def start(status: str, pairs: list[tuple[str, str]]) -> None:
            seen["status"] = int(status.partition(" ")[0])
            seen["headers"] = {name.lower(): value for name, value in pairs}

        environ = {
            "REQUEST_METHOD": method,
            "RAW_URI": target,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": headers.get("Content-Length", ""),
            "wsgi.input": io.BytesIO(body),
            "azguard.headers": list(headers.items()),
        }
        parts = self._application(environ, start)  # type: ignore[arg-type]  # a server of WSGI has more
        return Reply(seen["status"], seen["headers"], b"".join(parts))
