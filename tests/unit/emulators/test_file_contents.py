"""What files hold in the emulator: ranges, copies, snapshots, listings, and what others changed on the disk."""

import os
import re
import stat
from pathlib import Path

from tests.support.files_emulator import FilesEmulator

_SOURCE = "http://127.0.0.1:10004/devstoreaccount1/work/f"


def _make(files: FilesEmulator, size: int = 2048) -> None:
    files.ask("PUT", "work?restype=share")
    files.ask("PUT", "work/f", {"x-ms-type": "file", "x-ms-content-length": str(size), "x-ms-meta-Mixed": "Case"})


def _put(files: FilesEmulator, start: int, data: bytes, path: str = "work/f") -> str:
    headers = {"x-ms-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}"}
    return files.ask("PUT", f"{path}?comp=range", headers, data).headers["etag"]


def _list_ranges(files: FilesEmulator, query: str = "", path: str = "work/f") -> list[tuple[str, int, int]]:
    body = files.ask("GET", f"{path}?comp=rangelist{query}").body.decode()
    found = re.findall(r"<(Range|ClearRange)><Start>(\d+)</Start><End>(\d+)</End>", body)
    return [(tag, int(start), int(end)) for tag, start, end in found]


def test_what_was_written_is_listed_and_what_was_cleared_is_not(files: FilesEmulator) -> None:
    _make(files)
    _put(files, 0, b"a" * 512)
    _put(files, 512, b"b" * 512)
    _put(files, 1536, b"c" * 512)
    files.ask("PUT", "work/f?comp=range", {"x-ms-write": "clear", "x-ms-range": "bytes=256-767"})

    assert _list_ranges(files) == [("Range", 0, 255), ("Range", 768, 1023), ("Range", 1536, 2047)]
    assert files.ask("GET", "work/f").body == b"a" * 256 + bytes(512) + b"b" * 256 + bytes(512) + b"c" * 512


def test_every_write_moves_the_etag_and_no_read_does(files: FilesEmulator) -> None:
    _make(files)
    seen = [files.ask("HEAD", "work/f").headers["etag"]]
    seen += [_put(files, 0, b"a"), _put(files, 0, b"a")]
    seen.append(files.ask("PUT", "work/f?comp=metadata").headers["etag"])
    seen.append(files.ask("PUT", "work/f?comp=properties", {"x-ms-content-length": "9"}).headers["etag"])

    assert len(set(seen)) == 5
    assert files.ask("GET", "work/f").headers["etag"] == files.ask("HEAD", "work/f").headers["etag"] == seen[-1]


def test_etags_do_not_recur_when_the_clock_is_set_back(files: FilesEmulator) -> None:
    _make(files)
    before = _put(files, 0, b"a")
    files.clock -= 3600

    assert int(_put(files, 0, b"b").strip('"'), 16) > int(before.strip('"'), 16)


def test_another_length_keeps_the_content_properties_and_times_are_those_of_a_calendar(files: FilesEmulator) -> None:
    _make(files)
    properties = "work/f?comp=properties"
    times = {"x-ms-content-type": "a/b", "x-ms-file-last-write-time": "2026-02-01T01:30:00.5+02:00"}
    set_to = [files.ask("PUT", properties, each).status for each in (times, {"x-ms-content-length": "9"})]
    refused = files.ask("PUT", properties, {"x-ms-file-creation-time": "2026-13-01T00:00:00Z"}).said

    shown = files.ask("HEAD", "work/f").headers
    assert (set_to, refused) == ([200, 200], (400, "InvalidHeaderValue"))
    assert [shown[name] for name in ("content-type", "x-ms-file-last-write-time", "content-length")] == [
        "a/b", "2026-01-31T23:30:00.5000000Z", "9",
    ]  # fmt: skip


def test_metadata_keep_the_letters_of_their_names(files: FilesEmulator) -> None:
    _make(files)

    assert "x-ms-meta-mixed" in files.ask("HEAD", "work/f").headers
    assert files.store.find(files.store.database.find_share("work").root, "f").metadata == {"Mixed": "Case"}  # type: ignore[union-attr]  # both are there


def test_a_body_that_is_not_what_its_md5_says_is_refused_and_changes_nothing(files: FilesEmulator) -> None:
    _make(files, 3)
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-2", "Content-MD5": "kAFQmDzST7DWlj99KOF/cg=="}

    assert files.ask("PUT", "work/f?comp=range", headers, b"xyz").said == (400, "Md5Mismatch")
    assert files.ask("PUT", "work/f?comp=range", headers, b"abc").said == (201, None)


def test_a_copy_has_the_content_and_the_metadata_of_its_source(files: FilesEmulator) -> None:
    _make(files, 3)
    _put(files, 0, b"abc")
    files.ask("PUT", "work/g", {"x-ms-copy-source": _SOURCE})
    shown = files.ask("GET", "work/g")

    assert (shown.body, shown.headers["x-ms-meta-mixed"], shown.headers["x-ms-copy-status"]) == (
        b"abc",
        "Case",
        "success",
    )


def test_a_snapshot_keeps_what_was_there_and_tells_what_changed_since(files: FilesEmulator) -> None:
    _make(files, 1024)
    _put(files, 0, b"a" * 512)
    snapshot = files.ask("PUT", "work?restype=share&comp=snapshot").headers["x-ms-snapshot"]
    _put(files, 512, b"b" * 512)
    files.ask("PUT", "work/f?comp=range", {"x-ms-write": "clear", "x-ms-range": "bytes=0-255"})

    assert files.ask("GET", f"work/f?sharesnapshot={snapshot}").body == b"a" * 512 + bytes(512)
    assert _list_ranges(files, f"&prevsharesnapshot={snapshot}") == [("ClearRange", 0, 255), ("Range", 512, 1023)]


def test_what_was_never_written_takes_no_room_after_a_copy_or_clear(files: FilesEmulator, tmp_path: Path) -> None:
    size = 1024**4
    _make(files, size)
    _put(files, size - 4, b"last")
    files.ask("PUT", "work/g", {"x-ms-copy-source": _SOURCE})
    files.ask("PUT", "work/f", {"x-ms-copy-source": _SOURCE})
    snapshot = files.ask("PUT", "work?restype=share&comp=snapshot").headers["x-ms-snapshot"]
    whole = {"x-ms-write": "clear", "x-ms-range": f"bytes=0-{size - 1}"}
    assert files.ask("PUT", "work/f?comp=range", whole).status == 201

    last = {"x-ms-range": f"bytes={size - 4}-{size - 1}"}
    kept = [files.ask("GET", path, last).body for path in ("work/f", "work/g", f"work/f?sharesnapshot={snapshot}")]
    room = sum(each.stat().st_blocks for each in (tmp_path / "trees").rglob("*")) * 512
    assert (kept, room < 1024**2) == ([b"\0\0\0\0", b"last", b"last"], True)


def test_a_share_or_snapshot_that_failed_once_can_be_made_later(files: FilesEmulator, tmp_path: Path) -> None:
    (tmp_path / "trees" / "1").mkdir()
    _make(files)
    # It cannot be opened.
    unreadable = tmp_path / "trees" / "1" / "socket"
    os.mknod(unreadable, stat.S_IFSOCK | 0o600)
    failed = files.ask("PUT", "work?restype=share&comp=snapshot").said
    left = [each.name for each in (tmp_path / "trees").iterdir()]
    unreadable.unlink()
    assert (failed, left) == ((500, "InternalError"), ["1"])
    assert files.ask("PUT", "work?restype=share&comp=snapshot").status == 201


def test_a_listing_comes_in_pages_without_regard_to_letters(files: FilesEmulator) -> None:
    files.ask("PUT", "work?restype=share")
    for name in ("b", "C", "a"):
        files.ask("PUT", f"work/{name}", {"x-ms-type": "file", "x-ms-content-length": "1"})
    first = files.ask("GET", "work?restype=directory&comp=list&maxresults=2").body.decode()
    marker = re.findall("<NextMarker>(.*)</NextMarker>", first)[0]
    second = files.ask("GET", f"work?restype=directory&comp=list&maxresults=2&marker={marker}").body.decode()

    assert [re.findall("<Name>(.*?)</Name>", page) for page in (first, second)] == [["a", "b"], ["C"]]


def test_a_directory_takes_along_what_is_in_it(files: FilesEmulator) -> None:
    files.ask("PUT", "work?restype=share")
    files.ask("PUT", "work/d?restype=directory")
    files.ask("PUT", "work/d/f", {"x-ms-type": "file", "x-ms-content-length": "1", "x-ms-meta-a": "1"})
    _put(files, 0, b"x", "work/d/f")
    before = files.ask("HEAD", "work/d/f").headers
    files.ask("PUT", "work/e?restype=directory&comp=rename", {"x-ms-file-rename-source": f"{_SOURCE[:-1]}d"})
    after = files.ask("GET", "work/e/f")

    kept = ("etag", "x-ms-file-id", "x-ms-meta-a")
    assert (after.body, {name: after.headers[name] for name in kept}) == (b"x", {name: before[name] for name in kept})
    assert files.ask("HEAD", "work/d/f").said == (404, "ParentNotFound")


def test_a_name_is_found_in_any_letters_whoever_made_it(files: FilesEmulator, tmp_path: Path) -> None:
    """The emulator remembers the names in a folder, and sees when another program changed it."""
    files.ask("PUT", "work?restype=share")
    folder = next((tmp_path / "trees").iterdir())

    def look(*names: str) -> list[int]:
        return [files.ask("HEAD", f"work/{name}").status for name in names]

    seen = [look("A", "B")]
    files.ask("PUT", "work/a", {"x-ms-type": "file", "x-ms-content-length": "4"})
    (folder / "b").write_bytes(b"by another program")
    os.utime(folder, ns=(1, 1))
    seen.append(look("A"))
    files.ask("DELETE", "work/a")
    seen.append(look("A", "B"))
    (folder / "b").unlink()
    os.utime(folder, ns=(2, 2))

    assert [*seen, look("B")] == [[404, 404], [200], [404, 200], [404]]


def test_what_another_program_writes_on_the_disk_has_a_new_etag(files: FilesEmulator, tmp_path: Path) -> None:
    _make(files, 3)
    before = _put(files, 0, b"abc")
    (tmp_path / "trees" / "1" / "f").write_bytes(b"changed")
    (tmp_path / "trees" / "1" / "New.txt").write_bytes(b"new")
    shown = files.ask("GET", "work/F")

    assert (shown.body, shown.headers["etag"] == before) == (b"changed", False)
    assert files.ask("GET", "work/new.TXT").body == b"new"


def test_a_deleted_share_comes_back_with_all_it_had(tmp_path: Path) -> None:
    files = FilesEmulator(tmp_path, retention_days=7)
    _make(files, 3)
    _put(files, 0, b"abc")
    files.ask("DELETE", "work?restype=share")
    gone = files.ask("GET", "work/f").said
    version = re.findall("<Version>(.*)</Version>", files.ask("GET", "?comp=list&include=deleted").body.decode())[0]
    headers = {"x-ms-deleted-share-name": "work", "x-ms-deleted-share-version": version}
    files.ask("PUT", "work?restype=share&comp=undelete", headers)

    assert (gone, files.ask("GET", "work/f").body) == ((404, "ShareNotFound"), b"abc")
    files.close()


def test_a_rename_that_was_cut_off_between_disk_and_tables_is_finished_by_the_next_start(tmp_path: Path) -> None:
    files = FilesEmulator(tmp_path)
    _make(files, 3)
    etag = _put(files, 0, b"abc")
    files.close()
    (tmp_path / "rename.json").write_text('[1, "f", "g"]')
    (tmp_path / "trees" / "1" / "f").rename(tmp_path / "trees" / "1" / "g")
    again = FilesEmulator(tmp_path)
    shown = again.ask("GET", "work/g")

    assert (shown.body, shown.headers["etag"], shown.headers["x-ms-meta-mixed"]) == (b"abc", etag, "Case")
    assert not (tmp_path / "rename.json").exists()
    again.close()


def test_nothing_goes_through_what_another_program_linked_into_a_share(files: FilesEmulator, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"kept")
    _make(files)
    root = files.store.disk.locate(1)
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "new").symlink_to(outside / "new")
    os.mkfifo(root / "pipe")
    create = {"x-ms-type": "file", "x-ms-content-length": "4"}

    asked = {
        path: [files.ask("GET", f"work/{path}").status, files.ask("PUT", f"work/{path}", create).status]
        for path in ("folder/secret", "file", "new", "pipe", "folder")
    }
    copied = files.ask("PUT", "work/file", {"x-ms-copy-source": _SOURCE}).status
    listed = re.findall(r"<Name>(.*?)</Name>", files.ask("GET", "work?restype=directory&comp=list").body.decode())
    assert (asked, copied, listed) == (
        {"folder/secret": [404, 404], "file": [404, 409], "new": [404, 409], "pipe": [404, 409], "folder": [404, 409]},
        409,
        ["f"],
    )
    assert {each.name: each.read_bytes() for each in outside.iterdir()} == {"secret": b"kept"}
