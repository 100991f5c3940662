"""What the Files service answers to an operation in a state: from its recordings and its reference pages.

The recordings are played in test_recordings; here stands what was learnt, with what only the pages say.
"""

from pathlib import Path

import pytest

from azguard.emulators.files.__main__ import _build_parser
from tests.support.cases import cases
from tests.support.files_emulator import FilesEmulator

A = "11111111-1111-4111-8111-111111111111"
B = "22222222-2222-4222-8222-222222222222"
C = "33333333-3333-4333-8333-333333333333"

_S = "work?restype=share&"
Asked = tuple[str, str, dict[str, str]]
_SHARE: Asked = ("PUT", "work?restype=share", {})
_DIRECTORY: Asked = ("PUT", "work/d?restype=directory", {})
_FILE: Asked = ("PUT", "work/f", {"x-ms-type": "file", "x-ms-content-length": "1024"})
_INNER = ("PUT", "work/d/f", {"x-ms-type": "file", "x-ms-content-length": "4"})
_SNAPSHOT: Asked = ("PUT", "work?restype=share&comp=snapshot", {})


def _acquire(path: str, lease_id: str = A, seconds: int = -1) -> Asked:
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": str(seconds), "x-ms-proposed-lease-id": lease_id}
    return "PUT", f"{path}comp=lease", headers


def _act(path: str, action: str, **more: str) -> Asked:
    return (
        "PUT",
        f"{path}comp=lease",
        {"x-ms-lease-action": action, **{k.replace("_", "-"): v for k, v in more.items()}},
    )


_LEASED = _acquire("work/f?")
_BROKEN = _act("work/f?", "break")
_SOURCE = "http://127.0.0.1:10004/devstoreaccount1/work/f"
_G = ("PUT", "work/g", {"x-ms-type": "file", "x-ms-content-length": "1"})
_READ_ONLY = ("PUT", "work/f", {**_FILE[2], "x-ms-file-attributes": "ReadOnly"})

#: What is there before, by the names of ``_BEFORE``; the request, with its headers but for their ``x-ms-``; the answer.
_ANSWERS = """
                         | PUT work?restype=share | 201
share                    | PUT work?restype=share | 409 ShareAlreadyExists
                         | PUT Work?restype=share | 400 InvalidResourceName
                         | GET work?restype=share | 404 ShareNotFound
                         | DELETE work?restype=share | 404 ShareNotFound
share                    | DELETE work?restype=share | 202
share snapshot           | DELETE work?restype=share | 409 ShareHasSnapshots
share snapshot           | DELETE work?restype=share delete-snapshots=include | 202
share leased-share       | DELETE work?restype=share | 412 LeaseIdMissing
share leased-share       | DELETE work?restype=share lease-id=B | 412 LeaseIdMismatchWithContainerOperation
share                    | DELETE work?restype=share lease-id=A | 412 LeaseNotPresentWithContainerOperation
share file leased        | DELETE work?restype=share | 202
share leased-share       | GET work?restype=share | 200
share leased-share       | GET work?restype=share lease-id=B | 412 LeaseIdMismatchWithContainerOperation
share leased-share       | PUT work?restype=share&comp=metadata | 412 LeaseIdMissing
share leased-share       | PUT work?restype=share&comp=properties share-quota=5 | 412 LeaseIdMissing
share leased-share       | PUT work?restype=share&comp=acl | 412 LeaseIdMissing
share                    | PUT work?restype=share&comp=properties share-quota=0 | 400 InvalidHeaderValue
share | PUT work?restype=share&comp=lease lease-action=acquire lease-duration=14 | 400 InvalidHeaderValue
share | PUT work?restype=share&comp=lease lease-action=acquire lease-duration=61 | 400 InvalidHeaderValue
share                    | PUT work/d?restype=directory | 201
                         | PUT work/d?restype=directory | 404 ShareNotFound
share dir                | PUT work/d?restype=directory | 409 ResourceAlreadyExists
share dir                | PUT work/D?restype=directory | 409 ResourceAlreadyExists
share file               | PUT work/f?restype=directory | 409 ResourceTypeMismatch
share                    | PUT work/d/e?restype=directory | 404 ParentNotFound
share                    | DELETE work/d?restype=directory | 404 ResourceNotFound
share dir inner          | DELETE work/d?restype=directory | 409 DirectoryNotEmpty
share dir                | DELETE work/d?restype=directory | 202
share file               | GET work/f?restype=directory | 404 ResourceNotFound
share dir                | HEAD work/d | 404 ResourceNotFound
share dir                | DELETE work/d | 409 ResourceTypeMismatch
share read-only          | DELETE work/f | 412 ReadOnlyAttribute
share file               | PUT work/F?comp=rename from-f | 200
share                    | PUT work/f file | 201
share file               | PUT work/f file | 201
share                    | PUT work/d/f type=file content-length=4 | 404 ParentNotFound
share dir                | PUT work/d file | 409 ResourceTypeMismatch
share                    | PUT work/f type=file | 400 MissingRequiredHeader
share                    | PUT work/a:b file | 400 InvalidResourceName
share file leased        | PUT work/f file | 412 LeaseIdMissing
share file leased        | PUT work/f file lease-id=A | 201
share read-only          | PUT work/f file | 412 ReadOnlyAttribute
share                    | GET work/f | 404 ResourceNotFound
share file               | GET work/f | 200
share file               | GET work/f range=bytes=0-9 | 206
share file               | GET work/f range=bytes=1024-1030 | 416 InvalidRange
share file leased        | GET work/f | 200
share file leased        | GET work/f lease-id=B | 412 LeaseIdMismatchWithFileOperation
share file leased        | HEAD work/f lease-id=B | 412 LeaseIdMismatchWithFileOperation
share file leased        | GET work/f?comp=rangelist lease-id=B | 412 LeaseIdMismatchWithFileOperation
share file               | GET work/f lease-id=A | 412 LeaseNotPresentWithFileOperation
share file leased        | PUT work/f?comp=metadata | 412 LeaseIdMissing
share file leased broken | PUT work/f?comp=metadata | 200
share file leased broken | PUT work/f?comp=metadata lease-id=A | 412 LeaseLost
share file               | PUT work/f?comp=metadata meta-a.b=1 | 400 InvalidMetadata
share file               | PUT work/f?comp=metadata 8KiB | 400 MetadataTooLarge
share file leased        | PUT work/f?comp=properties content-length=5 | 412 LeaseIdMissing
share read-only          | PUT work/f?comp=properties content-length=5 | 412 ReadOnlyAttribute
share read-only          | PUT work/f?comp=properties file-attributes=None | 200
share file leased        | PUT work/f?comp=range write=update range=bytes=0-1 | 412 LeaseIdMissing
share file               | PUT work/f?comp=range write=clear range=bytes=0-1024 | 416 InvalidRange
share file leased        | DELETE work/f | 412 LeaseIdMissing
share file leased        | DELETE work/f lease-id=A | 202
share file g leased      | PUT work/f copy-g | 412 LeaseIdMissing
share                    | PUT work/g copy-f | 404 ResourceNotFound
share file               | PUT work/f?comp=copy&copyid=1 | 409 NoPendingCopyOperation
share file               | PUT work/g?comp=rename from-f | 200
share file g             | PUT work/g?comp=rename from-f | 409 ResourceAlreadyExists
share file g             | PUT work/g?comp=rename from-f over | 200
share file leased        | PUT work/g?comp=rename from-f | 412 LeaseIdMissing
share file g leased-g    | PUT work/g?comp=rename from-f over | 412 LeaseIdMissing
share file g leased-g    | PUT work/g?comp=rename from-f over destination-lease-id=A | 200
share file | PUT work/g?comp=rename from-f over destination-lease-id=A | 412 LeaseNotPresentWithFileOperation
share                    | PUT work/Con file | 400 InvalidResourceName
share                    | PUT work/f file file-permission-key=1*2 | 400 FileInvalidPermissionKey
share                    | PUT work/g?comp=rename from-f | 404 ResourceNotFound
share dir                | PUT work/d/e?restype=directory&comp=rename from-d | 400 InvalidInput
share snapshot | PUT work/f?sharesnapshot=2020-01-01T00:00:00.0000000Z file | 400 ShareSnapshotOperationNotSupported
share                    | PUT work/g copy-source=http://[::1 | 400 InvalidHeaderValue
                         | PUT work?restype=share Content-Length=-5 | 400 InvalidHeaderValue
share                    | GET work/f?comp=listhandles | 404 ResourceNotFound
share                    | POST work?restype=share | 405 UnsupportedHttpVerb
share                    | GET work?restype=share&comp=nothing | 400 InvalidQueryParameterValue
"""
_BEFORE = {
    "share": _SHARE, "dir": _DIRECTORY, "file": _FILE, "inner": _INNER, "snapshot": _SNAPSHOT, "g": _G,
    "read-only": _READ_ONLY, "leased": _LEASED, "broken": _BROKEN, "leased-g": _acquire("work/g?"),
    "leased-share": _acquire(_S),
}  # fmt: skip
_HEADERS = {
    "file": _FILE[2], "over": {"x-ms-file-rename-replace-if-exists": "true"}, "8KiB": {"x-ms-meta-a": "1" * 8192},
    "from-f": {"x-ms-file-rename-source": _SOURCE}, "from-d": {"x-ms-file-rename-source": f"{_SOURCE[:-1]}d"},
    "copy-f": {"x-ms-copy-source": _SOURCE}, "copy-g": {"x-ms-copy-source": f"{_SOURCE[:-1]}g"},
}  # fmt: skip


def _read_headers(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        name = name if name[0].isupper() else f"x-ms-{name}"
        found |= _HEADERS.get(word, {name: {"A": A, "B": B}.get(value, value)})
    return found


@cases("row", *_ANSWERS.strip("\n").splitlines())
def test_an_operation_in_a_state_is_answered_as_by_the_service(files: FilesEmulator, row: str) -> None:
    before, asked, answer = (each.split() for each in row.split("|"))
    _clear(files)
    for each in before:
        assert files.ask(*_BEFORE[each]).status < 300, each

    verb, path, *headers = asked
    assert files.ask(verb, path, _read_headers(headers)).said == (int(answer[0]), answer[1] if answer[1:] else None)


def _clear(files: FilesEmulator) -> None:
    """Delete the share of the row before."""
    files.ask("PUT", f"{_S}comp=lease", {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"})
    files.ask("DELETE", "work?restype=share", {"x-ms-delete-snapshots": "include"})


_LEASE_STATES = {
    "available": [],
    "leased": [_acquire(_S, seconds=60)],
    "breaking": [_acquire(_S, seconds=60), _act(_S, "break", x_ms_lease_break_period="10")],
    "broken": [_acquire(_S, seconds=60), _act(_S, "break", x_ms_lease_break_period="0")],
    "expired": [_acquire(_S, seconds=15)],
}
_ACTIONS = {
    "acquire A": _acquire(_S, A, 30),
    "acquire B": _acquire(_S, B, 30),
    "renew A": _act(_S, "renew", x_ms_lease_id=A),
    "renew B": _act(_S, "renew", x_ms_lease_id=B),
    "change A to B": _act(_S, "change", x_ms_lease_id=A, x_ms_proposed_lease_id=B),
    "change B to A": _act(_S, "change", x_ms_lease_id=B, x_ms_proposed_lease_id=A),
    "change B to C": _act(_S, "change", x_ms_lease_id=B, x_ms_proposed_lease_id=C),
    "release A": _act(_S, "release", x_ms_lease_id=A),
    "release B": _act(_S, "release", x_ms_lease_id=B),
    "break": _act(_S, "break"),
    "break at once": _act(_S, "break", x_ms_lease_break_period="0"),
}
_MISMATCH = (409, "LeaseIdMismatchWithLeaseOperation")
_ABSENT = (409, "LeaseNotPresentWithLeaseOperation")
_PRESENT = (409, "LeaseAlreadyPresent")
_NOT_RENEWED = (409, "LeaseIsBrokenAndCannotBeRenewed")
_DONE, _MADE, _BREAKS = (200, None), (201, None), (202, None)
#: The table of the Lease Share page: a row an action, a column a state.
_LEASE_TABLE = {
    # action            available   leased     breaking                                   broken        expired
    "acquire A":       (_MADE,      _MADE,     (409, "LeaseIsBreakingAndCannotBeAcquired"), _MADE,      _MADE),
    "acquire B":       (_MADE,      _PRESENT,  _PRESENT,                                  _MADE,        _MADE),
    "renew A":         (_MISMATCH,  _DONE,     _NOT_RENEWED,                              _NOT_RENEWED, _DONE),
    "renew B":         (_MISMATCH,  _MISMATCH, _MISMATCH,                                 _MISMATCH,    _MISMATCH),
    "change A to B":   (_ABSENT,    _DONE,     (409, "LeaseIsBreakingAndCannotBeChanged"), _ABSENT,     _ABSENT),
    "change B to A":   (_ABSENT,    _DONE,     _MISMATCH,                                 _ABSENT,      _ABSENT),
    "change B to C":   (_ABSENT,    _MISMATCH, _MISMATCH,                                 _ABSENT,      _ABSENT),
    "release A":       (_MISMATCH,  _DONE,     _DONE,                                     _DONE,        _DONE),
    "release B":       (_MISMATCH,  _MISMATCH, _MISMATCH,                                 _MISMATCH,    _MISMATCH),
    "break":           (_ABSENT,    _BREAKS,   _BREAKS,                                   _BREAKS,      _BREAKS),
    "break at once":   (_ABSENT,    _BREAKS,   _BREAKS,                                   _BREAKS,      _BREAKS),
}  # fmt: skip


@cases("state", *_LEASE_STATES)
@cases("action", *_ACTIONS)
def test_a_lease_of_a_share_follows_the_table(files: FilesEmulator, action: str, state: str) -> None:
    _clear(files)
    files.ask(*_SHARE)
    for each in _LEASE_STATES[state]:
        assert files.ask(*each).status < 300
    if state == "expired":
        files.clock += 15

    assert files.ask("GET", "work?restype=share").headers["x-ms-lease-state"] == state
    assert files.ask(*_ACTIONS[action]).said == _LEASE_TABLE[action][list(_LEASE_STATES).index(state)]


def test_a_path_is_no_longer_than_the_service_allows(files: FilesEmulator) -> None:
    files.ask(*_SHARE)
    long = "/".join(["d" * 200] * 10)
    for end in range(200, len(long) + 1, 201):
        files.ask("PUT", f"work/{long[:end]}?restype=directory")
    for path in ("a", "a/" + "b" * 40):
        files.ask("PUT", f"work/{path}?restype=directory")
    moved = {"x-ms-file-rename-source": _SOURCE[:-1] + "a"}
    asked: list[Asked] = [
        ("PUT", f"work/{long}/{'f' * 39}", _FILE[2]),
        ("PUT", f"work/{'d/' * 251}d", _FILE[2]),
        ("PUT", f"work/{long}/a?restype=directory&comp=rename", moved),
    ]

    assert {files.ask(*each).said for each in asked} == {(400, "InvalidFileOrDirectoryPathName")}
    assert files.ask("PUT", f"work/{long}/{'f' * 38}", _FILE[2]).status == 201


# Source: https://learn.microsoft.com/rest/api/storageservices/get-directory-properties
def test_a_read_of_a_directory_tells_its_encryption_as_a_read_does(files: FilesEmulator) -> None:
    files.ask(*_SHARE)
    answers = [files.ask(*_DIRECTORY).headers, files.ask("GET", "work/d?restype=directory").headers]
    names = ("x-ms-request-server-encrypted", "x-ms-server-encrypted")
    assert [[name in each for name in names] for each in answers] == [[True, False], [False, True]]


def test_no_lease_operation_moves_the_etag(files: FilesEmulator) -> None:
    files.ask(*_SHARE)
    before = files.ask(*_FILE).headers["etag"]
    steps = [_LEASED, _act("work/f?", "change", x_ms_lease_id=A, x_ms_proposed_lease_id=B), _BROKEN]

    assert {files.ask(*each).headers["etag"] for each in steps} == {before}


def test_a_break_counts_down_and_then_lets_the_next_one_in(files: FilesEmulator) -> None:
    files.ask(*_SHARE)
    files.ask(*_acquire(_S, A, 60))
    times = [files.ask(*_act(_S, "break", x_ms_lease_break_period="20")).headers["x-ms-lease-time"]]
    files.clock += 5
    times.append(files.ask(*_act(_S, "break")).headers["x-ms-lease-time"])
    refused = files.ask(*_acquire(_S, B, 60)).said
    files.clock += 15

    assert (times, refused, files.ask(*_acquire(_S, B, 60)).said) == (["20", "15"], _PRESENT, _MADE)


def test_an_overwritten_file_and_a_renamed_one_keep_their_lease(files: FilesEmulator) -> None:
    files.ask(*_SHARE)
    files.ask(*_FILE)
    files.ask(*_LEASED)
    files.ask("PUT", "work/f", {**_FILE[2], "x-ms-lease-id": A})
    files.ask("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE, "x-ms-source-lease-id": A})

    assert files.ask("HEAD", "work/g").headers["x-ms-lease-state"] == "leased"
    assert files.ask("DELETE", "work/g").said == (412, "LeaseIdMissing")


@pytest.mark.parametrize(
    "path",
    [
        "work/../f", "work/%2e%2e/f", "work/..%2ff", "work/a/../../f", "../work/f", "work/../../etc/passwd",
        "work/%2e%2e%2f%2e%2e%2ff", "work/..%5cf", "work/%2e/f",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_a_share(files: FilesEmulator, tmp_path: Path, path: str) -> None:
    files.ask("PUT", "work?restype=share")
    before = sorted(str(each) for each in tmp_path.rglob("*") if "files.db" not in each.name)
    asked = [files.ask(verb, path, _FILE[2], signed=False).status for verb in ("GET", "PUT", "DELETE")]
    assert min(asked) >= 400, asked
    assert sorted(str(each) for each in tmp_path.rglob("*") if "files.db" not in each.name) == before


def test_the_emulator_listens_on_this_machine_alone_unless_told() -> None:
    assert _build_parser().parse_args([]).host == "127.0.0.1"
