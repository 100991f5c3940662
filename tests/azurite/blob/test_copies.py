"""A copy carries its version: files that were moved, linked, replaced and written anew, against Azurite."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from azguard import atomic_files
from azguard.cache import copies
from tests.support import forked
from tests.support.cli_world import CliWorld, Ran


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope never read."""
    name = f"{cli.container()}/config.json"
    assert theirs(cli, name, b"v1")
    return name


def theirs(cli: CliWorld, blob: str, content: bytes = b"theirs") -> str:
    """Write a blob as a colleague does, and return its ETag."""
    etag = cli.call("blob", "put", blob, "--last-writer-wins", stdin=content, scope="they").json["etag"]
    return str(etag)


def shell(cli: CliWorld, line: str) -> Ran:
    """Run a line of a shell in the folder; AZGUARD in it is the command, in a process of its own."""
    done = subprocess.run(
        ["bash", "-c", line.replace("AZGUARD", " ".join(forked.command()))], cwd=cli.root, env=cli.environ(),
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def content(cli: CliWorld, blob: str) -> bytes:
    return cli.call("blob", "get", blob, scope="they").stdout


READS = {"-f": "AZGUARD blob get {} -f copy", ">": "AZGUARD blob get {} > copy", "1>|": "AZGUARD blob get {} 1>| copy"}
WRITES = {"-f": "AZGUARD blob put {} -f copy", "<": "AZGUARD blob put {} < copy"}
EDITS = {
    "nothing": "true",
    "in place": "echo mine >> copy",
    "written anew": "echo mine > new && mv new copy",
    "moved": "mv copy x && mv x copy",
    "through another name": "ln copy x && echo mine >> x && rm x",
}


@pytest.mark.parametrize("read", ["-f", ">"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("edit", EDITS)
def test_a_file_guards_with_the_version_it_was_read_as_whatever_was_read_since(
    cli: CliWorld, blob: str, read: str, write: str, edit: str
) -> None:
    assert shell(cli, f"{READS[read].format(blob)} && {EDITS[edit]}").code == 0
    theirs(cli, blob)
    assert cli.call("blob", "get", blob).stdout == b"theirs"
    stale = shell(cli, WRITES[write].format(blob))
    assert (stale.code, content(cli, blob)) == (42, b"theirs")


MOVES = {
    "mv": "mv copy moved",
    "ln": "ln copy moved",
    "ln -s": "ln -s copy moved",
    "mv, then edited": "mv copy moved && echo mine >> moved",
    "mv into another folder": "mkdir -p deep && mv copy deep/copy && ln -s deep/copy moved",
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("read", READS)
def test_a_file_that_was_moved_or_linked_keeps_its_version(cli: CliWorld, blob: str, move: str, read: str) -> None:
    assert shell(cli, f"{READS[read].format(blob)} && {MOVES[move]}").code == 0
    theirs(cli, blob)
    cli.call("blob", "get", blob)
    assert cli.call("blob", "put", blob, "-f", "moved").code == 42
    assert cli.call("blob", "put", blob, "-f", "moved", "--etag", "@last").code == 0


@pytest.mark.parametrize("move", ["mv old new", "ln -f old new", "mv old x && ln -sf x new"])
def test_a_file_moved_over_one_of_another_version_is_refused_by_both(cli: CliWorld, blob: str, move: str) -> None:
    old = cli.call("blob", "get", blob, "-f", "old").json["etag"]
    theirs(cli, blob)
    new = cli.call("blob", "get", blob, "-f", "new").json["etag"]
    shell(cli, move)
    ran = cli.call("blob", "put", blob, "-f", "new")
    if move.endswith("x new"):
        # The link leads to the moved file, which has no other version under its own path.
        assert (ran.code, old in ran.err) == (42, True)
        return
    assert (ran.code, old in ran.err, new in ran.err, "--etag ETAG" in ran.err) == (42, True, True, True)
    assert cli.call("blob", "put", blob, "-f", "new", "--etag", old).code == 42
    assert cli.call("blob", "put", blob, "-f", "new", "--etag", new).code == 0
    assert cli.call("blob", "put", blob, "-f", "new").code == 0


@pytest.mark.parametrize("more", [(), ("--recursive",)], ids=["one", "tree"])
def test_a_file_that_takes_the_place_of_a_read_before_it_is_recorded_keeps_its_own_version(
    cli: CliWorld, blob: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    container, name = blob.split("/")
    read = ("blob", "get", container, ".", *more) if more else ("blob", "get", blob, "-f", name)
    cli.call("blob", "get", blob, "-f", "old")
    theirs(cli, blob, b"v2")
    # Another process renames its read of v1, which took longer, right after ours.
    monkeypatch.setattr(atomic_files, "_sync_shared", lambda folder: os.replace(cli.root / "old", cli.root / name))
    assert cli.call(*read).code == 0
    assert (cli.root / name).read_bytes() == b"v1"
    ran = cli.call("blob", "put", blob, "-f", name)
    assert (ran.code, content(cli, blob)) == (42, b"v2")


def test_a_file_written_anew_again_and_again_is_never_taken_for_an_older_one(cli: CliWorld, blob: str) -> None:
    # Each new file may get the inode number of one that is gone.
    assert cli.call("blob", "get", blob, "-f", "copy").code == 0
    for number in range(8):
        assert shell(cli, f"cp copy new && echo {number} >> new && mv new copy").code == 0
        assert cli.call("blob", "put", blob, "-f", "copy").code == 0
    assert content(cli, blob) == b"v1" + b"".join(b"%d\n" % number for number in range(8))


def test_an_inode_number_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    seen, file = [], tmp_path / "file"
    for _ in range(50):
        file.write_text("same")
        seen.append(copies.find_at(file).inode)
        file.unlink()
    assert (len(set(seen)), None in seen) == (50, False)


def test_a_file_is_the_same_by_its_path_and_by_its_descriptor(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9 \n")
    file.write_text("x")
    with file.open("rb") as stream:
        assert copies.find_behind(stream.fileno()) == copies.find_at(file) == copies.find_behind(stream.fileno(), file)
        file.rename(tmp_path / "moved")
        moved = copies.find_behind(stream.fileno())
        (tmp_path / "moved").unlink()
        gone = copies.find_behind(stream.fileno())
    assert (moved.path, moved.inode, gone.path) == (os.fsencode(tmp_path / "moved"), gone.inode, None)


@pytest.mark.parametrize("change", [lambda file: file.write_text("longer"), lambda file: os.utime(file, ns=(5, 5))])
def test_where_the_system_does_not_tell_when_an_inode_was_made_an_edited_file_is_known_by_its_path_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(copies, "_find_birth", lambda file, found: None)
    file, moved = tmp_path / "file", tmp_path / "moved"
    file.write_text("x")
    before = copies.find_at(file)
    file.rename(moved)
    kept = copies.find_at(moved)
    change(moved)
    assert (kept.inode == before.inode, copies.find_at(moved).inode == before.inode) == (True, False)


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("echo first > copy; AZGUARD blob get {} >> copy", b"first\nv1"),
        ("printf 0123456789 > copy; AZGUARD blob get {} 1<> copy", b"v123456789"),
        ("(echo first; AZGUARD blob get {}) > copy", b"first\nv1"),
    ],
)
def test_a_file_with_more_in_it_than_the_blob_is_no_copy(cli: CliWorld, blob: str, line: str, held: bytes) -> None:
    assert (shell(cli, line.format(blob)).code, (cli.root / "copy").read_bytes()) == (0, held)
    etag = theirs(cli, blob)
    # What was delivered into it guards, as what went through a pipe does; the file itself has no version.
    assert (cli.call("blob", "put", blob, "-f", "copy").code, content(cli, blob)) == (42, b"theirs")
    assert cli.call("blob", "get", blob).stdout == b"theirs"
    assert cli.call("blob", "put", blob, "-f", "copy", "-o", "json").json["guard"] == "if-match"
    assert cli.call("blob", "put", blob, "-f", "copy", "--etag", etag).code == 42


def test_what_is_appended_to_a_copy_leaves_it_the_version_it_has(cli: CliWorld, blob: str) -> None:
    shell(cli, f"AZGUARD blob get {blob} > copy")
    theirs(cli, blob)
    assert shell(cli, f"AZGUARD blob get {blob} >> copy").code == 0
    assert (cli.call("blob", "put", blob, "-f", "copy").code, content(cli, blob)) == (42, b"theirs")


def test_a_new_file_that_is_appended_to_is_a_copy(cli: CliWorld, blob: str) -> None:
    shell(cli, f"AZGUARD blob get {blob} >> copy")
    theirs(cli, blob)
    cli.call("blob", "get", blob)
    assert cli.call("blob", "put", blob, "-f", "copy").code == 42


def test_a_put_ties_the_file_to_what_it_wrote(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "copy")
    (cli.root / "copy").write_bytes(b"mine")
    assert shell(cli, f"AZGUARD blob put {blob} < copy && mv copy moved").code == 0
    assert cli.call("blob", "put", blob, "-f", "moved").code == 0
    theirs(cli, blob)
    cli.call("blob", "get", blob)
    assert cli.call("blob", "put", blob, "-f", "moved").code == 42


def test_the_middle_of_a_file_is_written_under_its_version_but_not_tied_to_what_was_written(
    cli: CliWorld, blob: str
) -> None:
    cli.call("blob", "get", blob, "-f", "copy")
    (cli.root / "copy").write_bytes(b"first\nmine")
    line = f"(head -c 6 > /dev/null; AZGUARD blob put {blob}) < copy"
    assert (shell(cli, line).code, content(cli, blob)) == (0, b"mine")
    assert cli.call("blob", "put", blob, "-f", "copy").code == 42
