"""Each row of shares, directories and files in tests/data/semantics.yaml, asked of the emulator.

A row without a request here fails a test, and so does a refusal that the evidence names without a case.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import pytest

from tests.support.cases import cases
from tests.support.evidence import EVERY, EVIDENCE
from tests.support.files_emulator import FilesEmulator, Reply

A = "11111111-1111-4111-8111-111111111111"
B = "22222222-2222-4222-8222-222222222222"
C = "33333333-3333-4333-8333-333333333333"
# What has to be there first is made in the same test.
_IN_FILES = {"share.undelete": "tests/files/test_undelete.py", "share.get_permission": "tests/files/test_undelete.py"}
_WALKED = sorted(name for name in EVERY if name.startswith(("share.", "directory.", "file.")) and name not in _IN_FILES)
_WITH_LEASE = [name for name in _WALKED if not EVERY[name]["lease"]["use"].startswith(("no lease", "see lease"))]
_CONDITIONS = {"If-Match": '"0x0"', "If-None-Match": "*", "If-Unmodified-Since": "Wed, 01 Jan 2020 00:00:00 GMT"}


@dataclass(frozen=True)
class Asked:
    """A request; ``{s}`` in it is the share of the test."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def under(self, **headers: str) -> "Asked":
        """Return the same request with more headers, which are named with underscores."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return Asked(self.method, self.path, {**self.headers, **more}, self.body)


def _ask(method: str, path: str, body: bytes = b"", /, **headers: str) -> Asked:
    return Asked(method, path, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def _lease(subject: str, action: str, lease_id: str = "", proposed: str = "", **more: str) -> Asked:
    joined = "&" if "?" in subject else "?"
    ids = {"x_ms_lease_id": lease_id, "x_ms_proposed_lease_id": proposed}
    if action == "acquire":
        more["x_ms_lease_duration"] = "-1"
    return _ask(
        "PUT",
        f"{subject}{joined}comp=lease",
        x_ms_lease_action=action,
        **{name: value for name, value in ids.items() if value},
        **more,
    )


_S, _D, _F = "{s}?restype=share", "{s}/d?restype=directory", "{s}/f"
_HERE = "http://127.0.0.1:10004/devstoreaccount1/{s}"
_NEW_FILE = {"x_ms_type": "file", "x_ms_content_length": "4"}
_MAKE_SHARE, _MAKE_DIRECTORY, _MAKE_FILE = _ask("PUT", _S), _ask("PUT", _D), _ask("PUT", _F, **_NEW_FILE)
_MAKE_OTHER, _MAKE_INNER = _ask("PUT", "{s}/g", **_NEW_FILE), _ask("PUT", "{s}/d/f", **_NEW_FILE)
_SNAPSHOT = _ask("PUT", f"{_S}&comp=snapshot")
_OVER = {"x_ms_file_rename_replace_if_exists": "true"}
_RENAME = _ask("PUT", "{s}/g?comp=rename", x_ms_file_rename_source=f"{_HERE}/f", **_OVER)
_RENAME_DIRECTORY = _ask("PUT", "{s}/f?restype=directory&comp=rename", x_ms_file_rename_source=f"{_HERE}/d", **_OVER)

#: The request of each operation. Before it there are a share, a directory ``d`` and files ``f`` and ``g``.
_REQUESTS = {
    "share.create": _ask("PUT", "{s}-2?restype=share"),
    "share.delete": _ask("DELETE", _S),
    "share.get_properties": _ask("GET", _S),
    "share.set_properties": _ask("PUT", f"{_S}&comp=properties", x_ms_share_quota="7"),
    "share.get_metadata": _ask("GET", f"{_S}&comp=metadata"),
    "share.set_metadata": _ask("PUT", f"{_S}&comp=metadata", x_ms_meta_a="1"),
    "share.get_acl": _ask("GET", f"{_S}&comp=acl"),
    "share.set_acl": _ask("PUT", f"{_S}&comp=acl"),
    "share.get_stats": _ask("GET", f"{_S}&comp=stats"),
    "share.snapshot": _SNAPSHOT,
    "share.create_permission": _ask("PUT", f"{_S}&comp=filepermission", b'{"permission": "O:SYG:SYD:(A;;FA;;;WD)"}'),
    "share.lease_acquire": _lease(_S, "acquire", proposed=A),
    "share.lease_renew": _lease(_S, "renew", A),
    "share.lease_change": _lease(_S, "change", A, B),
    "share.lease_release": _lease(_S, "release", A),
    "share.lease_break": _lease(_S, "break"),
    "directory.create": _ask("PUT", "{s}/e?restype=directory"),
    "directory.delete": _ask("DELETE", _D),
    "directory.get_properties": _ask("HEAD", _D),
    "directory.set_properties": _ask("PUT", f"{_D}&comp=properties", x_ms_file_attributes="Hidden"),
    "directory.get_metadata": _ask("GET", f"{_D}&comp=metadata"),
    "directory.set_metadata": _ask("PUT", f"{_D}&comp=metadata", x_ms_meta_a="1"),
    "directory.rename": _RENAME_DIRECTORY,
    "file.create": _MAKE_FILE,
    "file.get": _ask("GET", _F),
    "file.delete": _ask("DELETE", _F),
    "file.get_properties": _ask("HEAD", _F),
    "file.set_properties": _ask("PUT", f"{_F}?comp=properties", x_ms_content_length="2"),
    "file.get_metadata": _ask("GET", f"{_F}?comp=metadata"),
    "file.set_metadata": _ask("PUT", f"{_F}?comp=metadata", x_ms_meta_a="1"),
    "file.put_range": _ask("PUT", f"{_F}?comp=range", b"new", x_ms_write="update", x_ms_range="bytes=0-2"),
    "file.list_ranges": _ask("GET", f"{_F}?comp=rangelist"),
    "file.copy": _ask("PUT", _F, x_ms_copy_source=f"{_HERE}/g"),
    "file.abort_copy": _ask("PUT", f"{_F}?comp=copy&copyid=1"),
    "file.lease_acquire": _lease(_F, "acquire", proposed=A),
    "file.lease_change": _lease(_F, "change", A, B),
    "file.lease_release": _lease(_F, "release", A),
    "file.lease_break": _lease(_F, "break"),
    "file.rename": _RENAME,
    "file.list_handles": _ask("GET", f"{_F}?comp=listhandles"),
    "file.force_close_handles": _ask("PUT", f"{_F}?comp=forceclosehandles", x_ms_handle_id="*"),
}
#: Where the lease is not that of the share or of ``f``, or its id has another header.
_LEASED_AT = {"file.rename": "{s}/g"}
_ID_IN = {"file.rename": "x_ms_destination_lease_id", "directory.rename": "x_ms_destination_lease_id"}
#: What is refused whatever the lease is, since there is nothing to do.
_REFUSED = {"file.abort_copy": (409, "NoPendingCopyOperation")}
#: Where the old version is found when the operation moved it.
_SEEN_AT = {"file.rename": _ask("HEAD", "{s}/g"), "directory.rename": _ask("HEAD", "{s}/f?restype=directory")}

#: The refusals that the evidence names: what makes them, and the request that meets them.
_REFUSALS = {
    ("share.create", "exists"): ([], _MAKE_SHARE),
    ("share.delete", "snapshots present"): ([_SNAPSHOT], _REQUESTS["share.delete"]),
    ("share.delete", "a snapshot is leased"): (
        [_SNAPSHOT, _lease(f"{_S}&sharesnapshot={{snapshot}}", "acquire", proposed=A)],
        _REQUESTS["share.delete"].under(x_ms_delete_snapshots="include"),
    ),
    ("directory.create", "exists"): ([], _MAKE_DIRECTORY),
    ("directory.create", "parent missing"): ([], _ask("PUT", "{s}/no/e?restype=directory")),
    ("directory.delete", "not empty"): ([_MAKE_INNER], _REQUESTS["directory.delete"]),
    ("directory.rename", "destination exists and replace-if-exists false"): (
        [],
        _RENAME_DIRECTORY.under(x_ms_file_rename_replace_if_exists="false"),
    ),
    ("file.rename", "destination exists and replace-if-exists false"): (
        [],
        _RENAME.under(x_ms_file_rename_replace_if_exists="false"),
    ),
    ("file.abort_copy", "copy already finished"): ([], _REQUESTS["file.abort_copy"]),
}
_OVER_SMB = "tests/system/test_smb_emulator.py and tests/smb_matrix"
_AT_ONCE = "the emulator is done with it when it answers"
#: The other ones: where they are tried, or what keeps the emulator from them.
_ELSEWHERE = {
    ("share.create", "recently deleted"): _AT_ONCE,
    ("share.snapshot", "another snapshot in progress"): _AT_ONCE,
    ("share.snapshot", "more than 200"): "test_file_suite",
    ("share.set_properties", "quota downgrade too early / below usage"): "the emulator keeps no bill",
    ("directory.delete", "pending SMB delete"): _OVER_SMB,
    ("file.create", "SMB handle without matching share mode"): _OVER_SMB,
    ("file.delete", "any SMB handle open"): _OVER_SMB,
    ("file.delete", "read-only attribute"): "the evidence does not know the answer",
    ("file.set_properties", "SMB handle without Shared Write"): _OVER_SMB,
    ("file.set_properties", "SMB client cache not flushed in time"): _OVER_SMB,
    ("file.put_range", "SMB lock / share mode"): _OVER_SMB,
    ("file.lease_acquire", "SMB handle with Write or Delete access (acquire)"): _OVER_SMB,
    ("file.copy", "write to the destination while copying"): "tests/system/test_files_emulator_copies.py",
    ("file.copy", "source changes during copy"): "tests/system/test_files_emulator_copies.py",
}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesEmulator]:
    found = FilesEmulator(tmp_path_factory.mktemp("files"))
    yield found
    found.close()


_NUMBERS = count()
_TABLE = EVIDENCE["lease_state_machine"]["file"]["table"]
_BEFORE = {
    "available": [],
    "leased": [_lease(_F, "acquire", proposed=A)],
    "broken": [_lease(_F, "acquire", proposed=A), _lease(_F, "break")],
}
#: Each action of the table, in all the ways that it can be asked for.
_ACTIONS = {
    "acquire_any": [_lease(_F, "acquire"), _lease(_F, "acquire", proposed=B)],
    "acquire_no_id": [_lease(_F, "acquire")],
    "acquire_A": [_lease(_F, "acquire", proposed=A)],
    "acquire_B": [_lease(_F, "acquire", proposed=B)],
    "change_any": [_lease(_F, "change", A, B), _lease(_F, "change", B, C)],
    "change_A_to_B": [_lease(_F, "change", A, B)],
    "change_B_to_A": [_lease(_F, "change", B, A)],
    "change_B_to_C": [_lease(_F, "change", B, C)],
    "release_any": [_lease(_F, "release", A)],
    "release_A": [_lease(_F, "release", A)],
    "release_B": [_lease(_F, "release", B)],
    "break": [_lease(_F, "break")],
}


@dataclass
class Share:
    """The share of a test, with a directory and two files."""

    emulator: FilesEmulator
    name: str
    #: The last snapshot that was taken.
    snapshot: str = ""

    def ask(self, asked: Asked) -> Reply:
        headers = {name: value.replace("{s}", self.name) for name, value in asked.headers.items()}
        path = asked.path.replace("{s}", self.name).replace("{snapshot}", self.snapshot)
        reply = self.emulator.ask(asked.method, path, headers, asked.body)
        self.snapshot = reply.headers.get("x-ms-snapshot", self.snapshot)
        return reply


def _make(emulator: FilesEmulator) -> Share:
    made = Share(emulator, f"walk{next(_NUMBERS)}")
    for each in (_MAKE_SHARE, _MAKE_DIRECTORY, _MAKE_FILE, _MAKE_OTHER):
        assert made.ask(each).status == 201
    return made


def _subject(name: str) -> str:
    return _LEASED_AT.get(name, _S if name.startswith("share.") else _F)


def _look(name: str) -> Asked:
    """Return the request that shows the version of what an operation is about."""
    if name.startswith("directory."):
        return _ask("HEAD", _D)
    return _ask("HEAD", _subject(name))


def _with_id(name: str, lease_id: str) -> Asked:
    return _REQUESTS[name].under(**{_ID_IN.get(name, "x_ms_lease_id"): lease_id})


def _say(status: int, code: str | None) -> str:
    return f"{status} {code}" if code else "succeeds" if status < 300 else str(status)


def test_every_row_of_the_evidence_has_a_request() -> None:
    assert sorted(_REQUESTS) == _WALKED


@cases("name", *_WALKED)
def test_the_version_is_told_and_moves_as_the_evidence_says(emulator: FilesEmulator, name: str) -> None:
    share = _make(emulator)
    row = EVERY[name]
    if ".lease_" in name and not name.endswith("acquire"):
        share.ask(_lease(_subject(name), "acquire", proposed=A))
    before = share.ask(_look(name)).headers["etag"]
    done = share.ask(_REQUESTS[name])
    after = share.ask(_SEEN_AT.get(name, _look(name))).headers.get("etag")
    told = "etag" in done.headers
    moves = str(row["changes_etag"]["value"]).split()[0].rstrip(":")

    assert done.said in ((done.status, None), _REFUSED.get(name))
    assert told == (row["returns_etag"]["value"] is True)
    assert moves == "n/a" or (after != before) == (moves in ("True", "yes", "destination") and name not in _REFUSED)


@cases("name", *_WALKED)
def test_no_condition_of_http_is_honoured(emulator: FilesEmulator, name: str) -> None:
    """The evidence lists none for Files: what the service does not honour, the emulator does not either."""
    share = _make(emulator)
    if ".lease_" in name and not name.endswith("acquire"):
        share.ask(_lease(_subject(name), "acquire", proposed=A))
    asked = _REQUESTS[name]
    done = share.ask(Asked(asked.method, asked.path, {**asked.headers, **_CONDITIONS}, asked.body))

    listed = [each for each in EVERY[name]["service_conditions"]["value"] if not each.startswith("x-ms-source-")]
    assert (listed, done.said) == ([], _REFUSED.get(name, (done.status, None)))


@cases("name", *_WITH_LEASE)
def test_a_lease_keeps_off_what_the_evidence_says(emulator: FilesEmulator, name: str) -> None:
    share = _make(emulator)
    said, free = EVERY[name]["lease"], _say(*_REFUSED.get(name, (200, None)))
    subject = _subject(name)
    never = share.ask(_with_id(name, A))
    share.ask(_lease(subject, "acquire", proposed=A))
    other = share.ask(_with_id(name, B))
    without = _say(*share.ask(_REQUESTS[name]).said)
    share.ask(_lease(subject, "break", **({"x_ms_lease_break_period": "0"} if subject == _S else {})))
    lost = share.ask(_with_id(name, A))
    done = _say(*share.ask(_REQUESTS[name]).said)
    found = {"missing": without, "free": done}
    expected = {"missing": said["missing"], "free": free}
    for key, reply in (("mismatch", other), ("lease_never_acquired_or_released", never)):
        if key in said:
            found[key], expected[key] = _say(*reply.said), said[key].removesuffix(" (inferred)")
    for key in ("lease_expired_or_broken", "lease_broken"):
        if key in said:
            # Which code it is for a file, the evidence does not know.
            parts = re.findall(r"\d{3}|Lease\w+", said[key])
            found[key], expected[key] = str(lost.status), parts[0]
            assert lost.code in parts[1:]

    assert found == expected


@cases("name", *(each for each in _WALKED if each not in _WITH_LEASE and ".lease_" not in each))
def test_what_takes_no_lease_is_done_beside_one(emulator: FilesEmulator, name: str) -> None:
    share = _make(emulator)
    share.ask(_lease(_S, "acquire", proposed=A))
    share.ask(_lease(_F, "acquire", proposed=A))

    assert share.ask(_REQUESTS[name]).status < 300


def test_every_refusal_of_the_evidence_is_met_here_or_elsewhere() -> None:
    told = {(name, case) for name in _WALKED for case in EVERY[name]["errors_on_failed_condition"]["value"]}
    assert (told, _REFUSALS.keys() & _ELSEWHERE.keys()) == (_REFUSALS.keys() | _ELSEWHERE.keys(), set())


@cases(("name", "case"), *_REFUSALS)
def test_a_refusal_is_the_one_of_the_evidence(emulator: FilesEmulator, name: str, case: str) -> None:
    share = _make(emulator)
    before, asked = _REFUSALS[name, case]
    for each in before:
        assert share.ask(each).status < 300
    status, code = re.match(
        r"(\d{3}) \(?(?:code )?(\w+)", EVERY[name]["errors_on_failed_condition"]["value"][case]
    ).groups()  # type: ignore[union-attr]  # it matches

    assert share.ask(asked).said == (int(status), code)


@cases(("state", "action"), *((state, action) for state in _TABLE for action in _TABLE[state]))
def test_a_lease_of_a_file_follows_the_table_of_the_evidence(emulator: FilesEmulator, state: str, action: str) -> None:
    share = _make(emulator)
    status, _, after = _TABLE[state][action].partition(" -> ")
    for asked in _ACTIONS[action]:
        for each in (_lease(_F, "break"), _lease(_F, "release", A), _lease(_F, "release", B), _MAKE_FILE):
            share.ask(each)
        for each in _BEFORE[state]:
            assert share.ask(each).status < 300
        done = share.ask(asked).status
        found = share.ask(_ask("HEAD", _F)).headers["x-ms-lease-state"]

        assert (done, found) == (int(status), (after or state).partition("(")[0])
