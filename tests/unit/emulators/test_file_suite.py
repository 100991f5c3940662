"""What the test suite of Microsoft's SDK showed that the emulator answered otherwise than the service."""

from pathlib import Path

import pytest
from azure.storage.fileshare import FileSasPermissions, generate_file_sas

from azguard.emulators.files import disk, shares
from azguard.emulators.files.__main__ import ACCOUNT, KEY
from tests.support.files_emulator import HOST, FilesEmulator, Reply
from tests.support.places import REPOSITORY

_KEEP = {"x-ms-allow-trailing-dot": "true"}
_NEW = {"x-ms-type": "file", "x-ms-content-length": "2048"}
_SOURCE = f"http://{HOST}/{ACCOUNT}/work"
_EXPIRY = "2100-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def _share(files: FilesEmulator) -> None:
    assert files.ask("PUT", "work?restype=share").status == 201


def _write(files: FilesEmulator, write: str, start: int, end: int, path: str = "work/f") -> Reply:
    headers = {"x-ms-write": write, "x-ms-range": f"bytes={start}-{end - 1}"}
    return files.ask("PUT", f"{path}?comp=range", headers, b"a" * (end - start) if write == "update" else b"")


def _sas(path: str, cache_control: str | None = None, content_type: str | None = None) -> str:
    may = FileSasPermissions(read=True)
    more = {"cache_control": cache_control, "content_type": content_type}
    return str(generate_file_sas(ACCOUNT, "work", [path], KEY, permission=may, expiry=_EXPIRY, **more))  # type: ignore[arg-type]  # two of them are no strings


def test_dots_at_the_end_of_a_name_go_unless_they_are_to_stay(files: FilesEmulator) -> None:
    made = [files.ask("PUT", "work/a.", _NEW).said, files.ask("PUT", "work/b.", {**_NEW, **_KEEP}).said]
    listed = files.ask("GET", "work?restype=directory&comp=list").body
    seen = [files.ask("HEAD", path).status for path in ("work/a", "work/a..", "work/b.")]
    moved = {"x-ms-file-rename-source": f"{_SOURCE}/b.", "x-ms-source-allow-trailing-dot": "true"}

    assert (made, seen) == ([(201, None)] * 2, [200, 200, 404])
    assert (b"<Name>a</Name>" in listed, b"<Name>b.</Name>" in listed) == (True, True)
    assert files.ask("PUT", "work/c?comp=rename", moved).said == (200, None)
    assert files.ask("PUT", "work/...", _NEW, signed=False).said == (400, "InvalidResourceName")


def test_a_sas_sets_the_headers_of_the_answer(files: FilesEmulator) -> None:
    files.ask("PUT", "work/f", {**_NEW, "x-ms-content-type": "text/plain"})
    sas = _sas("f", cache_control="no-cache", content_type="image/png")
    told = files.ask("GET", f"work/f?{sas}", signed=False).headers

    assert (told["cache-control"], told["content-type"]) == ("no-cache", "image/png")


def test_who_is_not_let_in_is_told_why(files: FilesEmulator) -> None:
    expired = _sas("f").replace("2100-01-01", "2020-01-01")
    answers = [files.ask("GET", f"work/f?{each}", signed=False) for each in (_sas("g"), expired)]

    assert [each.said for each in answers] == [(403, "AuthenticationFailed")] * 2
    assert b"<AuthenticationErrorDetail>the signature is not that of the key" in answers[0].body


def test_names_that_xml_cannot_hold_are_listed_encoded(files: FilesEmulator) -> None:
    files.ask("PUT", "work/d\ufffe?restype=directory")
    files.ask("PUT", "work/d\ufffe/f\ufffe", _NEW)
    listed = files.ask("GET", "work/d\ufffe?restype=directory&comp=list&prefix=f\ufffe").body

    assert listed.count("\ufffe".encode()) == 0
    assert b'<Name Encoded="true">f%EF%BF%BE</Name>' in listed
    assert b'<Prefix Encoded="true">f%EF%BF%BE</Prefix>' in listed


def test_the_settings_of_a_share_are_listed(files: FilesEmulator) -> None:
    files.ask("PUT", "fast?restype=share", {"x-ms-enabled-protocols": "SMB", "x-ms-share-provisioned-iops": "500"})
    listed = files.ask("GET", "?comp=list&prefix=fast").body

    assert b"<EnabledProtocols>SMB</EnabledProtocols><ProvisionedIops>500</ProvisionedIops>" in listed


def test_a_share_of_nfs_is_refused_as_on_a_standard_account(files: FilesEmulator) -> None:
    refused = files.ask("PUT", "nfs?restype=share", {"x-ms-enabled-protocols": "NFS"})

    assert refused.said == (400, "InvalidHeaderValue")
    assert b"<HeaderName>x-ms-enabled-protocols</HeaderName><HeaderValue>NFS</HeaderValue><Reason>" in refused.body
    assert files.ask("GET", "nfs?restype=share").said == (404, "ShareNotFound")


def test_a_service_takes_five_cors_rules(files: FilesEmulator) -> None:
    rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods></CorsRule>"
    bodies = [
        f"<StorageServiceProperties><Cors>{rule * count}</Cors></StorageServiceProperties>".encode() for count in (5, 6)
    ]
    said = [files.ask("PUT", "?restype=service&comp=properties", {}, body).said for body in bodies]

    assert said == [(202, None), (400, "InvalidXmlDocument")]


def test_a_share_has_as_many_snapshots_as_allowed(files: FilesEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_MOST_SNAPSHOTS", 1)
    said = [files.ask("PUT", "work?restype=share&comp=snapshot").said for _ in range(2)]

    assert said == [(201, None), (409, "ShareSnapshotCountExceeded")]


def test_a_share_holds_no_more_than_its_quota_allows(files: FilesEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_GIB", 8192)
    files.ask("PUT", "work?restype=share&comp=properties", {"x-ms-share-quota": "1"})
    files.ask("PUT", "work/f", {**_NEW, "x-ms-content-length": "1000000"})
    said = [_write(files, "update", start, start + 4096).said for start in (0, 4096, 0, 8192)]
    files.ask("PUT", "work?restype=share&comp=properties", {"x-ms-share-quota": "2"})

    assert said == [(201, None)] * 3 + [(403, "ShareSizeLimitReached")]
    assert _write(files, "update", 8192, 12_288).said == (201, None)


def test_a_range_from_a_url_needs_leave_to_read_its_source(files: FilesEmulator) -> None:
    """The key that signs the request is not enough, though it is for a copy of the whole file."""
    files.ask("PUT", "work/f", _NEW)
    files.ask("PUT", "work/g", _NEW)
    _write(files, "update", 0, 4)
    asked = {"x-ms-write": "update", "x-ms-range": "bytes=0-3", "x-ms-source-range": "bytes=0-3"}
    refused = files.ask("PUT", "work/g?comp=range", {**asked, "x-ms-copy-source": f"{_SOURCE}/f"})
    done = files.ask("PUT", "work/g?comp=range", {**asked, "x-ms-copy-source": f"{_SOURCE}/f?{_sas('f')}"})
    told = [refused.headers[f"x-ms-copy-source-{each}"] for each in ("status-code", "error-code")]

    assert (refused.said, told) == ((401, "CannotVerifyCopySource"), ["401", "NoAuthenticationInformation"])
    assert (done.said, files.ask("GET", "work/g").body[:5]) == ((201, None), b"aaaa\0")


def test_a_structured_body_is_not_kept_as_content(files: FilesEmulator) -> None:
    files.ask("PUT", "work/f", _NEW)
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-3", "x-ms-structured-body": "XSM/1.0; properties=crc64"}

    assert files.ask("PUT", "work/f?comp=range", headers, b"\1abc").said == (400, "UnsupportedHeader")


def test_what_changed_since_a_snapshot_is_what_was_written_or_cleared_since(files: FilesEmulator) -> None:
    """Also where the bytes are the same as before."""
    files.ask("PUT", "work/f", _NEW)
    first = files.ask("PUT", "work?restype=share&comp=snapshot").headers["x-ms-snapshot"]
    _write(files, "update", 0, 1536)
    second = files.ask("PUT", "work?restype=share&comp=snapshot").headers["x-ms-snapshot"]
    _write(files, "clear", 512, 1024)
    _write(files, "update", 0, 2)

    def compare(snapshot: str, path: str = "work/f", **headers: str) -> Reply:
        return files.ask("GET", f"{path}?comp=rangelist&prevsharesnapshot={snapshot}", headers)

    cleared = b"<ClearRange><Start>512</Start><End>1023</End></ClearRange>"
    assert compare(first).body.count(b"<Range>") == 2
    assert cleared in compare(first).body
    assert b"<Range><Start>0</Start><End>1</End></Range>" + cleared in compare(second).body

    files.ask("PUT", "work/g?comp=rename", {"x-ms-file-rename-source": f"{_SOURCE}/f"})
    assert compare(second, "work/g").said == (409, "FileGenerationMismatch")
    assert cleared in compare(second, "work/g", **{"x-ms-file-support-rename": "true"}).body


def test_a_share_is_being_deleted_for_the_time_that_is_asked_for(tmp_path: Path) -> None:
    files = FilesEmulator(tmp_path / "own", share_deletion_seconds=30)
    files.ask("PUT", "work?restype=share")
    files.ask("DELETE", "work?restype=share")
    meanwhile = [files.ask(method, "work?restype=share").said for method in ("PUT", "GET", "DELETE")]
    files.clock += 30
    later = [files.ask(method, "work?restype=share").said for method in ("GET", "PUT", "GET")]
    files.close()
    assert meanwhile == [(409, "ShareBeingDeleted")] * 3
    assert later == [(404, "ShareNotFound"), (201, None), (200, None)]


def test_a_service_tells_the_settings_of_smb(files: FilesEmulator) -> None:
    told = files.ask("GET", "?restype=service&comp=properties").body
    assert b"<ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled>" in told


def test_a_range_tells_when_the_file_was_written(files: FilesEmulator) -> None:
    files.ask("PUT", "work?restype=share")
    files.ask("PUT", "work/f", {"x-ms-type": "file", "x-ms-content-length": "2"})
    files.clock += 5
    put = files.ask("PUT", "work/f?comp=range", {"x-ms-write": "update", "x-ms-range": "bytes=0-1"}, b"ab")
    read = files.ask("HEAD", "work/f")
    assert put.headers["x-ms-file-last-write-time"] == read.headers["x-ms-file-last-write-time"]


def test_a_source_may_be_named_as_in_the_cloud(files: FilesEmulator) -> None:
    """``az`` does so, whatever the endpoint of the account is."""
    files.ask("PUT", "work/f", _NEW)
    said = [
        files.ask("PUT", "work/c", {"x-ms-copy-source": f"https://{ACCOUNT}.file.core.windows.net/{path}"}).said
        for path in ("work/f", "work/none")
    ]

    assert said == [(202, None), (404, "ResourceNotFound")]
    assert files.ask("HEAD", "work/c").headers["content-length"] == "2048"


def test_the_page_tells_how_many_calls_of_clients_are_tried() -> None:
    folder = REPOSITORY / "tests/clients"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in ("az.txt", "azcopy.txt", "npm.mjs")}
    counts = [text.count("await check(") or len(text.splitlines()) for text in texts.values()]
    page = (REPOSITORY / "docs/files-emulator.md").read_text(encoding="utf-8")

    assert [count for count in counts if f" | {count} | " not in page] == []
