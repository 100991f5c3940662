"""What the Files service answers to an operation in a state: from its recordings and its reference pages.

The recordings are played in test_recordings; here stands what was learnt, with what only the pages say.
"""

from pathlib import Path

import pytest

from azguard.emulators.files.__main__ import _build_parser
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
    headers = {
        "x-ms-lease-action": "acquire",
        "x-ms-lease-duration": str(seconds),
        "x-ms-proposed-lease-id": lease_id,
    }
    return "PUT", f"{path}comp=lease", headers


def _act(path: str, action: str, **more: str) -> Asked:
    return (
        "PUT",
        f"{path}comp=lease",
        {"x-ms-lease-action": action, **{k.replace("_", "-"): v for k, v in more.items()}},
    )


_LEASED = _acquire("work/f?")
_BROKEN = _act("work/f?", "break")
_LEASED_SHARE = _acquire("work?restype=share&")
_OVER = {"x-ms-file-rename-replace-if-exists": "true"}
_SOURCE = "http://127.0.0.1:10004/devstoreaccount1/work/f"
_G = ("PUT", "work/g", {"x-ms-type": "file", "x-ms-content-length": "1"})
_READ_ONLY = ("PUT", "work/f", {**_FILE[2], "x-ms-file-attributes": "ReadOnly"})

#: The requests before, the request, and its answer.
_CASES = [
    ("create a share", [], _SHARE, (201, None)),
    ("create a share again", [_SHARE], _SHARE, (409, "ShareAlreadyExists")),
    ("create a share of a bad name", [], ("PUT", "Work?restype=share", {}), (400, "InvalidResourceName")),
    ("show a missing share", [], ("GET", "work?restype=share", {}), (404, "ShareNotFound")),
    ("delete a missing share", [], ("DELETE", "work?restype=share", {}), (404, "ShareNotFound")),
    ("delete a share", [_SHARE], ("DELETE", "work?restype=share", {}), (202, None)),
    (
        "delete a share that has snapshots",
        [_SHARE, _SNAPSHOT],
        ("DELETE", "work?restype=share", {}),
        (409, "ShareHasSnapshots"),
    ),
    (
        "delete a share and its snapshots",
        [_SHARE, _SNAPSHOT],
        ("DELETE", "work?restype=share", {"x-ms-delete-snapshots": "include"}),
        (202, None),
    ),
    ("delete a leased share", [_SHARE, _LEASED_SHARE], ("DELETE", "work?restype=share", {}), (412, "LeaseIdMissing")),
    (
        "delete a share with another lease",
        [_SHARE, _LEASED_SHARE],
        ("DELETE", "work?restype=share", {"x-ms-lease-id": B}),
        (412, "LeaseIdMismatchWithContainerOperation"),
    ),
    (
        "delete a share with a lease it never had",
        [_SHARE],
        ("DELETE", "work?restype=share", {"x-ms-lease-id": A}),
        (412, "LeaseNotPresentWithContainerOperation"),
    ),
    (
        "delete a share whose files are leased",
        [_SHARE, _FILE, _LEASED],
        ("DELETE", "work?restype=share", {}),
        (202, None),
    ),
    ("read a leased share without its lease", [_SHARE, _LEASED_SHARE], ("GET", "work?restype=share", {}), (200, None)),
    (
        "read a leased share with another lease",
        [_SHARE, _LEASED_SHARE],
        ("GET", "work?restype=share", {"x-ms-lease-id": B}),
        (412, "LeaseIdMismatchWithContainerOperation"),
    ),
    (
        "set the metadata of a leased share",
        [_SHARE, _LEASED_SHARE],
        ("PUT", "work?restype=share&comp=metadata", {}),
        (412, "LeaseIdMissing"),
    ),
    (
        "set the quota of a leased share",
        [_SHARE, _LEASED_SHARE],
        ("PUT", "work?restype=share&comp=properties", {"x-ms-share-quota": "5"}),
        (412, "LeaseIdMissing"),
    ),
    (
        "set the policies of a leased share",
        [_SHARE, _LEASED_SHARE],
        ("PUT", "work?restype=share&comp=acl", {}),
        (412, "LeaseIdMissing"),
    ),
    (
        "set the quota to none",
        [_SHARE],
        ("PUT", "work?restype=share&comp=properties", {"x-ms-share-quota": "0"}),
        (400, "InvalidHeaderValue"),
    ),
    ("acquire for 14 seconds", [_SHARE], _acquire(_S, seconds=14), (400, "InvalidHeaderValue")),
    ("acquire for 61 seconds", [_SHARE], _acquire(_S, seconds=61), (400, "InvalidHeaderValue")),
    ("create a directory", [_SHARE], _DIRECTORY, (201, None)),
    ("create a directory in a missing share", [], _DIRECTORY, (404, "ShareNotFound")),
    ("create a directory again", [_SHARE, _DIRECTORY], _DIRECTORY, (409, "ResourceAlreadyExists")),
    (
        "create a directory again in other letters",
        [_SHARE, _DIRECTORY],
        ("PUT", "work/D?restype=directory", {}),
        (409, "ResourceAlreadyExists"),
    ),
    (
        "create a directory where a file is",
        [_SHARE, _FILE],
        ("PUT", "work/f?restype=directory", {}),
        (409, "ResourceTypeMismatch"),
    ),
    (
        "create a directory in a missing one",
        [_SHARE],
        ("PUT", "work/d/e?restype=directory", {}),
        (404, "ParentNotFound"),
    ),
    ("delete a missing directory", [_SHARE], ("DELETE", "work/d?restype=directory", {}), (404, "ResourceNotFound")),
    (
        "delete a directory with a file",
        [_SHARE, _DIRECTORY, _INNER],
        ("DELETE", "work/d?restype=directory", {}),
        (409, "DirectoryNotEmpty"),
    ),
    ("delete an empty directory", [_SHARE, _DIRECTORY], ("DELETE", "work/d?restype=directory", {}), (202, None)),
    (
        "show a file as a directory",
        [_SHARE, _FILE],
        ("GET", "work/f?restype=directory", {}),
        (404, "ResourceNotFound"),
    ),
    ("show a directory as a file", [_SHARE, _DIRECTORY], ("HEAD", "work/d", {}), (404, "ResourceNotFound")),
    ("delete a directory as a file", [_SHARE, _DIRECTORY], ("DELETE", "work/d", {}), (409, "ResourceTypeMismatch")),
    ("delete a read-only file", [_SHARE, _READ_ONLY], ("DELETE", "work/f", {}), (412, "ReadOnlyAttribute")),
    (
        "rename a file to other letters",
        [_SHARE, _FILE],
        ("PUT", "work/F?comp=rename", {"x-ms-file-rename-source": _SOURCE}),
        (200, None),
    ),
    ("create a file", [_SHARE], _FILE, (201, None)),
    ("create a file over another", [_SHARE, _FILE], _FILE, (201, None)),
    ("create a file in a missing directory", [_SHARE], _INNER, (404, "ParentNotFound")),
    (
        "create a file where a directory is",
        [_SHARE, _DIRECTORY],
        ("PUT", "work/d", _FILE[2]),
        (409, "ResourceTypeMismatch"),
    ),
    (
        "create a file without a length",
        [_SHARE],
        ("PUT", "work/f", {"x-ms-type": "file"}),
        (400, "MissingRequiredHeader"),
    ),
    ("create a file of a forbidden name", [_SHARE], ("PUT", "work/a:b", _FILE[2]), (400, "InvalidResourceName")),
    ("create a file over a leased one", [_SHARE, _FILE, _LEASED], _FILE, (412, "LeaseIdMissing")),
    (
        "create a file over a leased one with its lease",
        [_SHARE, _FILE, _LEASED],
        ("PUT", "work/f", {**_FILE[2], "x-ms-lease-id": A}),
        (201, None),
    ),
    ("create a file over a read-only one", [_SHARE, _READ_ONLY], _FILE, (412, "ReadOnlyAttribute")),
    ("get a missing file", [_SHARE], ("GET", "work/f", {}), (404, "ResourceNotFound")),
    ("get a file", [_SHARE, _FILE], ("GET", "work/f", {}), (200, None)),
    ("get a range", [_SHARE, _FILE], ("GET", "work/f", {"x-ms-range": "bytes=0-9"}), (206, None)),
    (
        "get a range past the end",
        [_SHARE, _FILE],
        ("GET", "work/f", {"x-ms-range": "bytes=1024-1030"}),
        (416, "InvalidRange"),
    ),
    ("get a leased file without its lease", [_SHARE, _FILE, _LEASED], ("GET", "work/f", {}), (200, None)),
    (
        "get a leased file with another lease",
        [_SHARE, _FILE, _LEASED],
        ("GET", "work/f", {"x-ms-lease-id": B}),
        (412, "LeaseIdMismatchWithFileOperation"),
    ),
    (
        "show a leased file with another lease",
        [_SHARE, _FILE, _LEASED],
        ("HEAD", "work/f", {"x-ms-lease-id": B}),
        (412, "LeaseIdMismatchWithFileOperation"),
    ),
    (
        "list the ranges of a leased file with another lease",
        [_SHARE, _FILE, _LEASED],
        ("GET", "work/f?comp=rangelist", {"x-ms-lease-id": B}),
        (412, "LeaseIdMismatchWithFileOperation"),
    ),
    (
        "get a file with a lease it never had",
        [_SHARE, _FILE],
        ("GET", "work/f", {"x-ms-lease-id": A}),
        (412, "LeaseNotPresentWithFileOperation"),
    ),
    (
        "set the metadata of a leased file",
        [_SHARE, _FILE, _LEASED],
        ("PUT", "work/f?comp=metadata", {}),
        (412, "LeaseIdMissing"),
    ),
    (
        "set the metadata of a file whose lease was broken",
        [_SHARE, _FILE, _LEASED, _BROKEN],
        ("PUT", "work/f?comp=metadata", {}),
        (200, None),
    ),
    (
        "set the metadata with a lease that was broken",
        [_SHARE, _FILE, _LEASED, _BROKEN],
        ("PUT", "work/f?comp=metadata", {"x-ms-lease-id": A}),
        (412, "LeaseLost"),
    ),
    (
        "set metadata of a bad name",
        [_SHARE, _FILE],
        ("PUT", "work/f?comp=metadata", {"x-ms-meta-a.b": "1"}),
        (400, "InvalidMetadata"),
    ),
    (
        "set metadata of more than 8 KiB",
        [_SHARE, _FILE],
        ("PUT", "work/f?comp=metadata", {"x-ms-meta-a": "1" * 8192}),
        (400, "MetadataTooLarge"),
    ),
    (
        "resize a leased file",
        [_SHARE, _FILE, _LEASED],
        ("PUT", "work/f?comp=properties", {"x-ms-content-length": "5"}),
        (412, "LeaseIdMissing"),
    ),
    (
        "resize a read-only file",
        [_SHARE, _READ_ONLY],
        ("PUT", "work/f?comp=properties", {"x-ms-content-length": "5"}),
        (412, "ReadOnlyAttribute"),
    ),
    (
        "take read-only away",
        [_SHARE, _READ_ONLY],
        ("PUT", "work/f?comp=properties", {"x-ms-file-attributes": "None"}),
        (200, None),
    ),
    (
        "put a range of a leased file",
        [_SHARE, _FILE, _LEASED],
        ("PUT", "work/f?comp=range", {"x-ms-write": "update", "x-ms-range": "bytes=0-1"}),
        (412, "LeaseIdMissing"),
    ),
    (
        "clear a range past the end",
        [_SHARE, _FILE],
        ("PUT", "work/f?comp=range", {"x-ms-write": "clear", "x-ms-range": "bytes=0-1024"}),
        (416, "InvalidRange"),
    ),
    ("delete a leased file", [_SHARE, _FILE, _LEASED], ("DELETE", "work/f", {}), (412, "LeaseIdMissing")),
    (
        "delete a leased file with its lease",
        [_SHARE, _FILE, _LEASED],
        ("DELETE", "work/f", {"x-ms-lease-id": A}),
        (202, None),
    ),
    (
        "copy over a leased file",
        [_SHARE, _FILE, _G, _LEASED],
        ("PUT", "work/f", {"x-ms-copy-source": _SOURCE[:-1] + "g"}),
        (412, "LeaseIdMissing"),
    ),
    ("copy a missing file", [_SHARE], ("PUT", "work/g", {"x-ms-copy-source": _SOURCE}), (404, "ResourceNotFound")),
    (
        "abort a copy that is done",
        [_SHARE, _FILE],
        ("PUT", "work/f?comp=copy&copyid=1", {}),
        (409, "NoPendingCopyOperation"),
    ),
    (
        "rename over nothing",
        [_SHARE, _FILE],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE}),
        (200, None),
    ),
    (
        "rename over a file without saying so",
        [_SHARE, _FILE, _G],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE}),
        (409, "ResourceAlreadyExists"),
    ),
    (
        "rename over a file",
        [_SHARE, _FILE, _G],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE, **_OVER}),
        (200, None),
    ),
    (
        "rename a leased file without its lease",
        [_SHARE, _FILE, _LEASED],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE}),
        (412, "LeaseIdMissing"),
    ),
    (
        "rename over a leased file",
        [_SHARE, _FILE, _G, _acquire("work/g?")],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE, **_OVER}),
        (412, "LeaseIdMissing"),
    ),
    (
        "rename over a leased file with its lease",
        [_SHARE, _FILE, _G, _acquire("work/g?")],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE, **_OVER, "x-ms-destination-lease-id": A}),
        (200, None),
    ),
    (
        "rename over nothing with the lease of what was there",
        [_SHARE, _FILE],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE, **_OVER, "x-ms-destination-lease-id": A}),
        (412, "LeaseNotPresentWithFileOperation"),
    ),
    ("create a file with the name of a device", [_SHARE], ("PUT", "work/Con", _FILE[2]), (400, "InvalidResourceName")),
    (
        "create a file with the key of no permission",
        [_SHARE],
        ("PUT", "work/f", {**_FILE[2], "x-ms-file-permission-key": "1*2"}),
        (400, "FileInvalidPermissionKey"),
    ),
    (
        "rename a missing file",
        [_SHARE],
        ("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": _SOURCE}),
        (404, "ResourceNotFound"),
    ),
    (
        "rename a directory into itself",
        [_SHARE, _DIRECTORY],
        ("PUT", "work/d/e?restype=directory&comp=rename", {"x-ms-file-rename-source": _SOURCE[:-1] + "d"}),
        (400, "InvalidInput"),
    ),
    (
        "write into a snapshot",
        [_SHARE, _SNAPSHOT],
        ("PUT", "work/f?sharesnapshot=2020-01-01T00:00:00.0000000Z", _FILE[2]),
        (400, "ShareSnapshotOperationNotSupported"),
    ),
    (
        "copy from what is no URL",
        [_SHARE],
        ("PUT", "work/g", {"x-ms-copy-source": "http://[::1"}),
        (400, "InvalidHeaderValue"),
    ),
    (
        "send a body of a length that is no number",
        [],
        ("PUT", "work?restype=share", {"Content-Length": "-5"}),
        (400, "InvalidHeaderValue"),
    ),
    ("list handles of a missing file", [_SHARE], ("GET", "work/f?comp=listhandles", {}), (404, "ResourceNotFound")),
    ("a method that does not exist", [_SHARE], ("POST", "work?restype=share", {}), (405, "UnsupportedHttpVerb")),
    (
        "an operation that does not exist",
        [_SHARE],
        ("GET", "work?restype=share&comp=nothing", {}),
        (400, "InvalidQueryParameterValue"),
    ),
]


@pytest.mark.parametrize(
    ("before", "request_", "said"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES]
)
def test_an_operation_in_a_state_is_answered_as_by_the_service(
    files: FilesEmulator,
    before: list[Asked],
    request_: Asked,
    said: tuple[int, str | None],
) -> None:
    for each in before:
        assert files.ask(*each).status < 300, each

    assert files.ask(*request_).said == said


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


@pytest.mark.parametrize("state", list(_LEASE_STATES))
@pytest.mark.parametrize("action", list(_ACTIONS))
def test_a_lease_of_a_share_follows_the_table(files: FilesEmulator, action: str, state: str) -> None:
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
