"""What a killed process left on a share or a file, which the next write on the same machine ends."""

import re
import signal
import socket

import pytest
from azure.storage.fileshare import ShareLeaseClient

from azguard.files.temporary import PREFIX
from azguard.leases.owners import OWNER
from azguard.processes import identity, locked_file
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the kernel tells who was killed by its lock")
#: The words of each write under a lease, and the request at which it is killed.
WRITES = {
    "copy": (("file", "copy", "{file}", "--source", "{source}"), "comp=metadata"),
    "put": (("file", "put", "{file}", "-f", "{local}"), "plan.txt?comp=rename"),
    "metadata": (("file", "metadata", "set", "{file}", "--metadata", "a=1"), "comp=metadata"),
    "properties": (("file", "properties", "set", "{file}", "--content-type", "a/b"), "comp=properties"),
    "resize": (("file", "resize", "{file}", "--size", "1KiB"), "comp=properties"),
    "range put": (("file", "range", "put", "{file}", "-f", "{local}"), "comp=range"),
    "range clear": (("file", "range", "clear", "{file}", "--length", "512"), "comp=range"),
    "share metadata": (("share", "metadata", "set", "{share}", "--metadata", "a=1"), "comp=metadata"),
    "quota": (("share", "quota", "{share}", "9"), "comp=properties"),
    "acl": (("share", "acl", "set", "{share}", "-f", "{policies}"), "comp=acl"),
}

ANYHOW = "--last-writer-wins"
#: Where a rename is killed: before its request, after it, and before its lease is given back at the new address.
KILLS = [("comp=rename", False), ("comp=rename", True), (" release", True)]


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli, bytes(512))


def is_clean(cli: CliWorld, file: str) -> bool:
    """Return whether neither a lease, nor a record of one, nor a note of it is left, of the file and its share."""
    notes = [*cli.root.glob(".cache/process-*/*"), *cli.call("lease", "list", "--mine").json]
    return is_free(cli, file) and notes == []


def is_free(cli: CliWorld, file: str) -> bool:
    """Return whether neither a lease nor a record of one is left on the file and its share."""
    share = files_world.sdk(cli, file.partition("/")[0]).get_share_properties()
    found = files_world.client(cli, file).get_file_properties()
    return (share.lease.state, found.lease.state, OWNER in found.metadata) == ("available", "available", False)


def test_each_write_goes_on_where_it_was_killed(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    names = {"file": file, "share": share, "local": str(files_cli.file("new", b"new"))}
    names |= {"policies": str(files_cli.file("policies", b"{}")), "source": f"{share}/source.txt"}
    files_world.client(files_cli, names["source"]).upload_file(b"source")
    left: dict[str, object] = {}
    with files_world.killing(files_cli) as killer:
        call = killer.world.call
        for name, (words, at) in WRITES.items():
            line = [word.format(**names) for word in words]
            if line[0] == "share":
                line += ["--etag", call("share", "show", share).json["etag"]]
            else:
                call("file", "get", file)
            status = killer.kill(at, *line)
            held = [each["address"] for each in call("lease", "list", "--mine").json]
            again = call(*line)
            left[name] = (status, held, again.code, is_clean(killer.world, file))
    assert left == {
        name: (-signal.SIGKILL, [f"{words[0]}:{share if words[0] == 'share' else file}"], 0, True)
        for name, (words, _) in WRITES.items()
    }


def test_a_write_goes_on_that_was_killed_while_its_lease_got_another_id(files_cli: CliWorld, file: str) -> None:
    words, told = ("file", "properties", "set", file, "--content-type", "a/b"), []
    with files_world.killing(files_cli) as killer:
        for after in (False, True):
            killer.world.call("file", "get", file)
            status = killer.kill(" change", *words, after=after, loses="comp=metadata", fault=Fault.RESET)
            told.append((status, killer.world.call(*words).code, is_free(killer.world, file)))
    assert told == [(-signal.SIGKILL, 0, True)] * 2


def test_a_late_acquire_of_a_killed_process_is_ended_by_the_next_but_one(files_cli: CliWorld, file: str) -> None:
    words = ("file", "properties", "set", file, "--content-type", "a/b", ANYHOW)
    with files_world.killing(files_cli) as killer:
        killer.world.call("file", "get", file)
        killer.kill(" acquire", *words[:-1])
        (note,) = files_cli.root.glob(".cache/process-leases/*")
        first = killer.world.call(*words).code
        ShareLeaseClient(files_world.client(files_cli, file), note.stem).acquire()
        codes = [first, killer.world.call(*words).code]
        assert (codes, is_free(files_cli, file), note.exists()) == ([0, 0], True, True)
        note.write_text(re.sub(r'"since": "\d+"', '"since": "0"', note.read_text()))
        assert (killer.world.call(*words).code, is_clean(files_cli, file)) == (0, True)


def test_a_rename_that_is_killed_loses_neither_the_file_nor_its_lease(files_cli: CliWorld, file: str) -> None:
    told: list[object] = []
    with files_world.killing(files_cli) as killer:
        call = killer.world.call
        for number, (at, after) in enumerate(KILLS):
            old, new = file, f"{file}.{number}"
            status = killer.kill(at, "file", "rename", file, new, after=after)
            there = [name for name in (file, new) if call("file", "exists", name).code == 0]
            held = sorted(each["address"] for each in call("lease", "list", "--mine").json)
            next_ran = call("file", "properties", "set", there[0], "--content-type", "a/b", ANYHOW)
            told.append(
                (
                    status,
                    there == [new],
                    held == [f"file:{old}", f"file:{new}"],
                    next_ran.code,
                    is_clean(killer.world, there[0]),
                )
            )
            assert there[0] == new or call("file", "rename", file, new).code == 0
            file = new
    assert told == [(-signal.SIGKILL, is_renamed, True, 0, True) for is_renamed in (False, True, True)]


def test_only_what_a_dead_process_of_this_machine_holds_is_taken_over(files_cli: CliWorld, file: str) -> None:
    words = ("file", "properties", "set", file, "--content-type", "a/b")
    with files_world.killing(files_cli) as killer:
        call = killer.world.call
        call("file", "get", file)
        killer.kill("comp=properties", *words)
        (note,) = files_cli.root.glob(".cache/process-leases/*")
        ours = note.read_text()
        note.write_text(ours.replace(str(identity.find_boot()), "another").replace(socket.gethostname(), "elsewhere"))
        elsewhere = call(*words, ANYHOW).code
        note.write_text(ours)
        with note.open() as file_of_process:
            locked_file.lock(file_of_process.fileno())
            living = call(*words, ANYHOW).code
        call("lease", "break", f"file:{file}", "--yes")
        theirs = files_world.client(files_cli, file).acquire_lease()
        # While another holds a lease, the record of the killed process stays.
        assert (elsewhere, living, call(*words, ANYHOW).code, note.exists()) == (49, 49, 49, True)
        theirs.release()
        assert (call(*words, ANYHOW).code, is_clean(files_cli, file)) == (0, True)


@pytest.mark.parametrize("is_taken", [False, True])
def test_the_record_of_a_lease_that_was_broken_is_removed_once_the_file_is_free(
    files_cli: CliWorld, file: str, is_taken: bool
) -> None:
    client, theirs = files_world.client(files_cli, file), list[ShareLeaseClient]()
    words = ("file", "range", "put", file, "--offset", "512", "--etag", client.get_file_properties().etag)

    def decide(request: Request) -> Fault:
        if request.headers.get("x-ms-lease-action") == "change" and not theirs:
            theirs.append(ShareLeaseClient(client))
            theirs[0].break_lease()
            if is_taken:
                theirs[0].acquire()
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        call = files_world.through(files_cli, between.port).call
        codes = [call(*words, stdin=b"behind the end").code]
        assert is_clean(files_cli, file) is not is_taken
        if is_taken:
            theirs[0].release()
        codes.append(call("file", "range", "put", file, ANYHOW, stdin=b"new").code)
    assert (codes, is_clean(files_cli, file)) == ([40, 0], True)


def test_temporary_files_are_deleted_if_no_process_can_be_writing_them(files_cli: CliWorld, file: str) -> None:
    share, local = file.partition("/")[0], str(files_cli.file("new", b"new"))
    theirs, not_ours = ".azguard-0123456789abcdef.tmp", ".azguard-notes.tmp"
    for name in (theirs, not_ours):
        files_world.client(files_cli, f"{share}/{name}").upload_file(b"x")
    with files_world.killing(files_cli) as killer:
        call = killer.world.call

        def prune(*words: str) -> dict[str, tuple[str, str]]:
            found = call("file", "prune", share, *words).json
            names = (each["address"].rpartition("/")[2] for each in found)
            return {
                "theirs" if name == theirs else "ours": (each["outcome"], each["reason"])
                for name, each in zip(names, found, strict=True)
            }

        killer.kill("comp=range", "file", "put", f"{file}2", "-f", local)
        assert prune("--dry-run") == {"ours": ("would delete", "process_ended"), "theirs": ("kept", "maybe_written")}
        assert prune("--recursive")["ours"] == ("deleted", "process_ended")
        call("file", "get", file)
        killer.kill(f"{file}?comp=rename", "safe-update", f"file:{file}", "--append", "x")
        assert prune()["ours"] == ("deleted", "process_ended")
        assert call("safe-update", f"file:{file}", "--append", "x").code == 0
        killer.kill("comp=metadata", "safe-update", f"file:{file}", "--append", "x")
        assert prune("--dry-run")["ours"] == ("would delete", "process_ended")
        assert call("safe-update", f"file:{file}", "--append", "x").code == 0
        assert list(prune()) == ["theirs"]
        killer.kill(f"{file}2?comp=rename", "file", "put", f"{file}2", "-f", local)
        (note,) = files_cli.root.glob(".cache/process-files/*")
        with note.open() as file_of_process:
            locked_file.lock(file_of_process.fileno())
            assert prune("--older-than", "1h")["ours"] == ("kept", "process_runs")
            assert call("file", "put", f"{file}3", "-f", local).code == 0
        assert len(files_world.names(files_cli, share)) == 5
        # The next put in the directory.
        assert call("file", "put", file, "-f", local).code == 0
        assert prune("--older-than", "1h") == {"theirs": ("kept", "maybe_written")}
        until(lambda: prune("--older-than", "1s") == {"theirs": ("deleted", "old")})
        assert is_clean(killer.world, file)
    assert sorted(files_world.names(files_cli, share)) == [not_ours, "plan.txt", "plan.txt3"]
    assert files_cli.call("file", "prune", f"{share}?snapshot=2026-01-01T00:00:00Z").code == 2


def test_what_a_put_under_a_lock_left_is_deleted_with_the_lease_that_it_has(files_cli: CliWorld, file: str) -> None:
    lease = files_world.client(files_cli, file).acquire_lease()
    local = str(files_cli.file("new", b"new"))
    with files_world.killing(files_cli) as killer:
        killer.kill(f"{file}?comp=rename", "file", "put", file, "-f", local, ANYHOW, "--lease-id", lease.id)
        assert killer.world.call("file", "put", file, "-f", local, ANYHOW, "--lease-id", lease.id).code == 0
    assert files_world.names(files_cli, file.partition("/")[0]) == ["plan.txt"]


@pytest.mark.parametrize("ahead_seconds", [7200, -7200])
def test_no_date_tells_the_age_of_a_temporary_file(files_cli: CliWorld, file: str, ahead_seconds: int) -> None:
    share = file.partition("/")[0]
    files_world.client(files_cli, f"{share}/{PREFIX}{'0' * 16}.tmp").create_file(0)
    with proxy.running(files_world.port(files_cli), lambda _: Chosen(ahead_seconds=ahead_seconds)) as between:

        def prune(older_than: str) -> list[str]:
            ran = files_world.through(files_cli, between.port).call("file", "prune", share, "--older-than", older_than)
            return [each["reason"] for each in ran.json]

        assert prune("1h") == ["maybe_written"]
        until(lambda: prune("1s") == ["old"])


@pytest.mark.parametrize("ahead_seconds", [7200, -7200])
def test_the_lease_on_a_file_is_not_broken_by_a_date(files_cli: CliWorld, file: str, ahead_seconds: int) -> None:
    address = f"file:{file}"
    assert files_cli.call("lease", "acquire", address, "--infinite", "--reason", "long work").code == 0
    with proxy.running(files_world.port(files_cli), lambda _: Chosen(ahead_seconds=ahead_seconds)) as between:

        def break_it(older_than: str) -> int:
            call = files_world.through(files_cli, between.port).call
            return call("lease", "break", address, "--if-older-than", older_than, scope="another").code

        assert break_it("1h") == 42
        until(lambda: break_it("1s") == 0)
