"""What the real service answered, asked of the emulator again."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from azure.storage.fileshare import AccountSasPermissions, ResourceTypes, generate_account_sas

from azguard.emulators.files.__main__ import ACCOUNT, KEY
from tests.support.files_emulator import HOST, FilesEmulator, Reply
from tests.support.recorded import Recorded, group

_RECORDINGS = group("file")
#: The headers that the emulator answers with values of its own unless they are what was asked for, and why.
OTHER = {
    "date": "its own clock",
    "last-modified": "its own clock",
    "x-ms-file-change-time": "its own clock",
    "x-ms-file-creation-time": "its own clock",
    "x-ms-file-last-write-time": "its own clock",
    "x-ms-file-id": "its own numbers",
    "x-ms-file-permission-key": "its own digest of the permission",
    "x-ms-server-encrypted": "the service says false once metadata are taken away again",
}
#: The headers that it does not have, or not always with the same value, and why.
ABSENT = {
    "transfer-encoding": "it knows the length of each body",
    "x-ms-content-crc64": "of a range from a URL, which azguard never asks for",
    "x-ms-number-of-handles-closed": "a handle is open over SMB alone",
}
#: The elements of a body whose values are its own, and why.
OTHER_ELEMENTS = {
    "ChangeTime": "its own clock",
    "CreationTime": "its own clock",
    "DirectoryId": "its own numbers",
    "Etag": "its own clock",
    "FileId": "its own numbers",
    "LastAccessTime": "its own clock",
    "Last-Modified": "its own clock",
    "LastWriteTime": "its own clock",
    "PermissionKey": "its own digest of the permission",
}
#: The elements that it does not have, and why.
ABSENT_ELEMENTS = {
    "DefaultEncryptionScope": "it encrypts nothing",
    "DenyEncryptionScopeOverride": "it encrypts nothing",
}
#: The operations whose bodies are not compared, and why.
OTHER_BODIES = {"file.list_handles": "a handle is open over SMB alone"}
#: The recordings of another kind of account, with the reason.
OTHER_ACCOUNTS = {"azure-cli test_storage_file_share_premium_scenario": "a standard account has no shares of NFS"}
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

    def ask(self, recorded: Recorded) -> Reply:
        """Ask for what was recorded, at the time that it was asked then."""
        self._emulator.clock += recorded.wait_seconds or 0.05
        headers = {
            name: self._translate(value) for name, value in recorded.sends.items() if name.lower() not in _LEFT_OUT
        }
        path = self._locate(recorded.path, recorded.query)
        reply = self._emulator.ask(recorded.method, path, headers, recorded.body or _make_body(headers))
        self._learn(recorded, reply)
        return reply

    def prepare(self, first: Recorded) -> None:
        """Make the share that the recording takes for granted."""
        share = first.path.split("/")[1]
        creates = first.method == "PUT" and "restype=share" in first.query
        if not creates and first.code != "ShareNotFound":
            self._emulator.ask("PUT", f"{share}?restype=share")
        if "comp=listhandles" in first.query and first.path.count("/") > 1:
            self._emulator.ask("PUT", f"{first.path.rpartition('/')[0][1:]}?restype=directory")
            self._emulator.ask("PUT", first.path[1:], {"x-ms-type": "file", "x-ms-content-length": "0"})
        for found in re.findall(r"sharesnapshot=([^&]*)", first.query):
            taken = self._emulator.ask("PUT", f"{share}?restype=share&comp=snapshot")
            self._ours[found] = taken.headers["x-ms-snapshot"]

    def _locate(self, path: str, query: str) -> str:
        asked = "&".join(each for each in query.split("&") if not each.startswith("timeout="))
        return self._translate(f"{path[1:]}?{asked}" if asked else path[1:])

    def _translate(self, value: str) -> str:
        value = re.sub(r"https://[a-z0-9]+\.file\.core\.windows\.net/", f"http://{HOST}/devstoreaccount1/", value)
        value = re.sub(r"\?se=.*", f"?{_SAS}", value)
        for theirs, ours in self._ours.items():
            value = value.replace(theirs, ours)
        return value

    def _learn(self, recorded: Recorded, reply: Reply) -> None:
        for name in ("x-ms-lease-id", "x-ms-snapshot"):
            theirs = recorded.headers.get(name)
            if theirs and name in reply.headers:
                self._ours.setdefault(theirs, reply.headers[name])
                self._ours.setdefault(theirs.replace(":", "%3A"), reply.headers[name])
        etag = recorded.headers.get("etag")
        if etag and "etag" in reply.headers:
            self._etags.setdefault((recorded.path, etag), reply.headers["etag"])

    def describe(self, recorded: Recorded) -> dict[str, object]:
        """Return what the service said, with our names."""
        found = {name.lower(): self._ours.get(value, value) for name, value in recorded.headers.items()}
        if "etag" in found:
            found["etag"] = self._etags.get((recorded.path, found["etag"]), "unknown")
        # There the body of a refusal begins with a byte order mark.
        if recorded.is_refusal:
            found.pop("content-length", None)
        return {"status": recorded.status, "code": recorded.code, **found}


@pytest.mark.parametrize("recording", [name for name in _RECORDINGS if name not in OTHER_ACCOUNTS])
def test_the_emulator_answers_as_the_service_did(recording: str, files: FilesEmulator) -> None:
    answers = _RECORDINGS[recording]
    replay = Replay(files)
    replay.prepare(answers[0])

    theirs, ours = [], []
    for each in answers:
        reply = replay.ask(each)
        expected = replay.describe(each)
        got = {"status": reply.status, "code": reply.code, **reply.headers}
        compared = [name for name in expected if name not in ABSENT]
        theirs.append({name: expected[name] for name in compared})
        ours.append({name: _describe(each, name, got, expected) for name in compared})
        elements = _list_elements(each, each.content)
        theirs[-1]["body"] = elements
        ours[-1]["body"] = [found for found in _list_elements(each, reply.body) if found[0] in dict(elements)]

    assert ours == theirs


def _describe(recorded: Recorded, name: str, got: Mapping[str, object], expected: Mapping[str, object]) -> object:
    """Return the value of a header; of one that may differ, the recorded value if the emulator has any."""
    is_free = name in OTHER and name in got and recorded.sends.get(name) != expected[name]
    return expected[name] if is_free else got.get(name)


def _list_elements(recorded: Recorded, content: bytes) -> list[tuple[str, str]]:
    """Return the values in a body of XML, in order, without those that may differ."""
    if recorded.is_refusal or recorded.operation in OTHER_BODIES or b"<?xml" not in content[:8]:
        return []
    leaves = [each for each in ET.fromstring(content).iter() if len(each) == 0 and each.tag not in ABSENT_ELEMENTS]
    return [(each.tag, "" if each.tag in OTHER_ELEMENTS else each.text or "") for each in leaves]


def test_no_difference_is_named_in_vain() -> None:
    answers = [each for answers in _RECORDINGS.values() for each in answers]
    sent = {name for each in answers for name in (*each.headers, each.operation, each.recording)}
    elements = {found.decode() for each in answers for found in re.findall(rb"<([\w-]+)", each.content)}
    named = {*OTHER, *ABSENT, *OTHER_BODIES, *OTHER_ACCOUNTS, *OTHER_ELEMENTS, *ABSENT_ELEMENTS}
    assert (len(_RECORDINGS), named - sent - elements) == (50, set())


def _make_body(headers: Mapping[str, str]) -> bytes:
    """Return bytes for a range whose content was not kept."""
    found = re.match(r"bytes=(\d+)-(\d+)", headers.get("x-ms-range", ""))
    is_update = headers.get("x-ms-write") == "update" and "x-ms-copy-source" not in headers
    return bytes(int(found[2]) - int(found[1]) + 1) if found and is_update else b""
