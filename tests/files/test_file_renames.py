"""Files are renamed with both ends guarded."""

import pytest
from azure.storage.fileshare import ShareLeaseClient

from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault

ANYHOW = "--last-writer-wins"


def two(cli: CliWorld) -> tuple[str, str]:
    """Return a file with ``mine``, and one with ``theirs`` in the same share."""
    file = files_world.make(cli, b"mine", metadata={"owner": "me"})
    other = f"{file.partition('/')[0]}/other.txt"
    files_world.client(cli, other).upload_file(b"theirs")
    return file, other


def read(cli: CliWorld, file: str) -> bytes:
    return bytes(files_world.client(cli, file).download_file().readall())


def test_a_file_is_renamed_with_its_metadata_and_no_lease_stays(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"mine", metadata={"owner": "me"})
    new = f"{file.partition('/')[0]}/new.txt"
    done = files_cli.call("file", "rename", file, new).json
    shown = files_cli.call("file", "show", new).json
    assert (done["address"], done["previous_address"], done["guard"]) == (
        f"file:{new}",
        f"file:{file}",
        "if-none-match",
    )
    assert (shown["etag"], shown["metadata"], shown["lease_state"]) == (done["etag"], {"owner": "me"}, "available")
    assert (files_cli.call("file", "exists", file).code, files_cli.call("lease", "list", "--mine").json) == (44, [])


def test_what_was_never_read_is_not_replaced(files_cli: CliWorld) -> None:
    file, other = two(files_cli)
    ran = files_cli.call("file", "rename", file, other, "-o", "json")
    shown = files_cli.call("file", "show", file).json
    assert (ran.code, read(files_cli, other), read(files_cli, file)) == (45, b"theirs", b"mine")
    assert (shown["lease_state"], shown["metadata"]) == ("available", {"owner": "me"})
    assert files_cli.call("lease", "list", "--mine").json == []


def test_the_version_that_is_named_is_replaced_and_no_other(files_cli: CliWorld) -> None:
    file, other = two(files_cli)
    etag = files_cli.call("file", "show", other).json["etag"]
    files_world.client(files_cli, other).upload_file(b"newer")
    assert (files_cli.call("file", "rename", file, other, "--etag", etag).code, read(files_cli, other)) == (
        42,
        b"newer",
    )
    etag = files_cli.call("file", "show", other).json["etag"]
    done = files_cli.call("file", "rename", file, other, "--etag", etag).json
    assert (done["guard"], read(files_cli, other)) == ("lease", b"mine")
    assert files_cli.call("file", "show", other).json["lease_state"] == "available"


def test_the_file_that_is_renamed_has_to_be_the_version_that_was_read(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"mine")
    files_cli.call("file", "get", file, "-f", "copy")
    files_world.client(files_cli, file).upload_file(b"newer")
    assert files_cli.call("file", "rename", file, f"{file}.new").code == 42


def test_the_record_of_a_lease_goes_along_with_the_file(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"mine")
    files_cli.call("lease", "acquire", f"file:{file}", "--infinite")
    refused = files_cli.call("file", "rename", file, f"{file}.new", "-o", "json")
    assert (refused.code, refused.error["hint"].endswith(f"{file}.new -o json --source-lease-id @held")) == (49, True)
    moved = files_cli.call("file", "rename", file, f"{file}.new", "--source-lease-id", "@held")
    held = files_cli.call("lease", "list", "--mine").json
    assert (moved.code, [(each["address"], each["state"]) for each in held]) == (0, [(f"file:{file}.new", "held")])
    assert files_cli.call("lease", "release", f"file:{file}.new").code == 0


def test_a_lease_of_the_file_stays_with_it(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"mine")
    lease = files_world.client(files_cli, file).acquire_lease().id
    for anyhow in ((), ("--last-writer-wins",)):
        refused = files_cli.call("file", "rename", file, f"{file}.new", *anyhow)
        assert (refused.code, f"error: {file} is leased" in refused.err) == (49, True)
    assert files_cli.call("file", "rename", file, f"{file}.new", "--source-lease-id", lease).code == 0
    assert files_cli.call("lease", "release", f"file:{file}.new", "--lease-id", lease).code == 0


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.FAIL_BEFORE, Fault.REPLAYED])
def test_a_lost_answer_is_settled(files_cli: CliWorld, fault: Fault) -> None:
    file = files_world.make(files_cli, b"mine")
    ran, _ = files_world.spoilt(files_cli, fault, "file", "rename", file, f"{file}.new", which="comp=rename")
    assert (ran.code, ran.json["outcome"], read(files_cli, f"{file}.new")) == (0, "committed", b"mine")
    assert files_cli.call("file", "show", f"{file}.new").json["lease_state"] == "available"


def test_whatever_is_at_both_ends_is_taken_if_that_is_said(files_cli: CliWorld) -> None:
    file, other = two(files_cli)
    done = files_cli.call("file", "rename", file, other, ANYHOW).json
    assert (done["guard"], read(files_cli, other)) == ("none", b"mine")


def test_a_rename_stays_in_its_share(files_cli: CliWorld) -> None:
    file, other = files_world.make(files_cli), files_world.make(files_cli)
    assert [files_cli.call("file", "rename", file, new).code for new in (other, file)] == [2, 2]
    assert files_cli.call("file", "rename", f"{file}x", f"{file}y").code == 44


def test_what_was_to_be_replaced_and_is_gone_is_a_change(files_cli: CliWorld) -> None:
    file, other = two(files_cli)
    etag = files_cli.call("file", "show", other).json["etag"]
    files_world.client(files_cli, other).delete_file()
    ran = files_cli.call("file", "rename", file, other, "--etag", etag, "-o", "json")
    assert (ran.code, ran.error["expected_etag"], read(files_cli, file)) == (42, etag, b"mine")


@pytest.mark.parametrize("which", ["source", "target"])
@pytest.mark.parametrize(("then", "code"), [("gone", 44), ("directory", 40), ("broken", 49)])
def test_the_end_that_another_takes_meanwhile_is_named(files_cli: CliWorld, which: str, then: str, code: int) -> None:
    file, other = two(files_cli)
    etag = files_cli.call("file", "show", other).json["etag"]
    taken = file if which == "source" else other
    client = files_world.client(files_cli, taken)

    def take() -> None:
        ShareLeaseClient(client).break_lease()
        client.set_file_metadata({"theirs": "1"})
        if then != "broken":
            client.delete_file()
        if then == "directory":
            files_world.sdk(files_cli, taken.partition("/")[0]).create_directory(client.file_name)

    ran = files_world.meanwhile(files_cli, "comp=rename", take, "file", "rename", file, other, "--etag", etag)
    # Where nothing is, the lease of what was there is not held; a directory is no file to be read.
    told = {("target", "gone"): 49, ("source", "directory"): 44}.get((which, then), code)
    assert (ran.code, ran.error["address"], ran.err.startswith("{")) == (told, f"file:{taken}", True)
    assert files_cli.call("lease", "list", "--mine").json == []


def test_what_is_to_be_replaced_and_goes_as_it_is_leased_is_a_change(files_cli: CliWorld) -> None:
    file, other = two(files_cli)
    etag = files_cli.call("file", "show", other).json["etag"]
    delete = files_world.client(files_cli, other).delete_file
    words = (("file", "rename", file, other), ("file", "put", other))
    ran = [files_world.meanwhile(files_cli, "acquire", delete, *words[0], "--etag", etag)]
    files_world.client(files_cli, other).upload_file(b"again")
    etag = files_cli.call("file", "show", other).json["etag"]
    ran.append(files_world.meanwhile(files_cli, "acquire", delete, *words[1], "--etag", etag, stdin=b"new"))
    assert [(each.code, each.error["address"]) for each in ran] == [(42, f"file:{other}")] * 2
