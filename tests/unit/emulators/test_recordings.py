"""What the real service answered, asked of the emulator again."""

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.storage.fileshare import AccountSasPermissions, ResourceTypes, generate_account_sas

from azguard.emulators.files.__main__ import ACCOUNT, KEY
from tests.support.files_emulator import HOST, FilesEmulator, Reply
from tests.support.places import DATA

_RECORDINGS = [
    each for each in sorted((DATA / "recordings").glob("*.json")) if ".file.core.windows.net" in each.read_text()
]
_COMPARED = ("x-ms-lease-state", "x-ms-lease-status", "x-ms-lease-duration", "x-ms-lease-time", "content-md5")
# Headers of a request that are signed anew, or that our way of asking sets.
_LEFT_OUT = ("date", "x-ms-date", "authorization", "content-length", "host", "x-ms-copy-source-authorization")
# For the source of a copy, in place of the SAS that the recording had.
_SAS = generate_account_sas(
    ACCOUNT, KEY, ResourceTypes(object=True), AccountSasPermissions(read=True), datetime(2100, 1, 1, tzinfo=UTC)
)


class Replay:
    """One recording, asked again; names that the service made are known by their place."""

    def __init__(self, emulator: FilesEmulator) -> None:
        self._emulator = emulator
        #: What the emulator made where the service had made something else: ETags, leases, snapshots.
        self._ours: dict[str, str] = {}
        #: The same for ETags, by resource: two resources may have been written at the same moment.
        self._etags: dict[tuple[str, str], str] = {}

    def ask(self, recorded: dict[str, Any]) -> Reply:
        """Ask for what was recorded, at the time that it was asked then."""
        self._emulator.clock += recorded.get("wait_before_s") or 0.05
        headers = {
            name: self._translate(value)
            for name, value in recorded["request_headers"].items()
            if name.lower() not in _LEFT_OUT
        }
        reply = self._emulator.ask(
            recorded["method"], self._locate(recorded["uri"]), headers, _find_body(recorded, headers)
        )
        self._learn(recorded, reply)
        return reply

    def prepare(self, recorded: list[dict[str, Any]]) -> None:
        """Make the share that the recording takes for granted."""
        share = urlsplit(recorded[0]["uri"]).path.split("/")[1]
        creates = recorded[0]["method"] == "PUT" and "restype=share" in recorded[0]["uri"]
        is_missing = recorded[0]["error_code"] == "ShareNotFound"
        if not creates and not is_missing:
            self._emulator.ask("PUT", f"{share}?restype=share")
        path = urlsplit(recorded[0]["uri"]).path
        if "comp=listhandles" in recorded[0]["uri"] and path.count("/") > 1:
            self._emulator.ask("PUT", f"{path.rpartition('/')[0][1:]}?restype=directory")
            self._emulator.ask("PUT", path[1:], {"x-ms-type": "file", "x-ms-content-length": "0"})
        for found in re.findall(r"sharesnapshot=([^&]*)", recorded[0]["uri"]):
            taken = self._emulator.ask("PUT", f"{share}?restype=share&comp=snapshot")
            self._ours[found] = taken.headers["x-ms-snapshot"]

    def _locate(self, uri: str) -> str:
        parts = urlsplit(uri)
        query = "&".join(each for each in parts.query.split("&") if not each.startswith("timeout="))
        return self._translate(f"{parts.path[1:]}?{query}" if query else parts.path[1:])

    def _translate(self, value: str) -> str:
        value = re.sub(r"https://[a-z0-9]+\.file\.core\.windows\.net/", f"http://{HOST}/devstoreaccount1/", value)
        value = re.sub(r"\?se=.*", f"?{_SAS}", value)
        for theirs, ours in self._ours.items():
            value = value.replace(theirs, ours)
        return value

    def _learn(self, recorded: dict[str, Any], reply: Reply) -> None:
        for name in ("x-ms-lease-id", "x-ms-snapshot"):
            theirs = recorded["response_headers"].get(name)
            if theirs and name in reply.headers:
                self._ours.setdefault(theirs, reply.headers[name])
                self._ours.setdefault(theirs.replace(":", "%3A"), reply.headers[name])
        etag = recorded["response_headers"].get("etag")
        if etag and "etag" in reply.headers:
            self._etags.setdefault((_name(recorded), etag), reply.headers["etag"])

    def describe(self, recorded: dict[str, Any]) -> dict[str, str | None]:
        """Return what the service said, with our names."""
        headers = recorded["response_headers"]
        found = {name: headers[name] for name in _COMPARED if name in headers}
        if "etag" in headers:
            found["etag"] = self._etags.get((_name(recorded), headers["etag"]), "unknown")
        return {"status": recorded["status"], "code": recorded["error_code"], **found}


@pytest.mark.parametrize("recording", _RECORDINGS, ids=lambda path: path.stem)
def test_the_emulator_answers_as_the_service_did(recording: Path, files: FilesEmulator) -> None:
    recorded = json.loads(recording.read_text())["interactions"]
    replay = Replay(files)
    replay.prepare(recorded)

    theirs, ours = [], []
    for each in recorded:
        reply = replay.ask(each)
        expected = replay.describe(each)
        theirs.append(expected)
        got = {"status": reply.status, "code": reply.code, **reply.headers}
        ours.append({name: got.get(name) for name in expected})

    assert ours == theirs


def _name(recorded: dict[str, Any]) -> str:
    return str(urlsplit(recorded["uri"]).path)


def _find_body(recorded: dict[str, Any], headers: dict[str, str]) -> bytes:
    encoded = recorded.get("request_body_b64")
    if encoded:
        return base64.b64decode(encoded)
    text = recorded.get("request_body")
    if text:
        return str(text).encode()
    found = re.match(r"bytes=(\d+)-(\d+)", headers.get("x-ms-range", ""))
    is_update = headers.get("x-ms-write") == "update" and "x-ms-copy-source" not in headers
    return bytes(int(found[2]) - int(found[1]) + 1) if found and is_update else b""
