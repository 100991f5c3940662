"""``azguard blob get`` against Azurite: to stdout byte for byte, to a file whole or not at all."""

import hashlib
import os
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy

MIB = 1024 * 1024
BINARY = bytes(range(256)) * 300 + b"\r\n\x00\xff"


def put(cli: CliWorld, blob: str, whole: bytes, *options: str) -> str:
    etag = cli.call(
        "blob", "put", blob, *options, "--last-writer-wins", "--allow-empty", stdin=whole, scope="setup"
    ).json["etag"]
    return str(etag)


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1, 13 * MIB])
def test_content_comes_to_stdout_byte_for_byte(cli: CliWorld, site: str, size: int) -> None:
    whole = (BINARY * (size // len(BINARY) + 1))[:size]
    put(cli, f"{site}/a", whole)
    ran = cli.fork("blob", "get", f"{site}/a")
    assert (ran.code, ran.err, ran.stdout == whole) == (0, "", True)


@pytest.mark.parametrize("size", [0, 1, 8 * MIB + 1])
def test_content_is_validated_where_that_is_asked_for(cli: CliWorld, site: str, size: int) -> None:
    whole = (BINARY * (size // len(BINARY) + 1))[:size]
    put(cli, f"{site}/a", whole)
    ran = cli.call("blob", "get", f"{site}/a", "-f", "a", "--validate-content")
    assert (ran.code, (cli.root / "a").read_bytes() == whole) == (0, True)


@cases(
    ("words", "start", "end"),
    (("--offset", "3"), 3, None),
    (("--offset", "1K", "--length", "2KiB"), 1024, 3072),
    (("--length", "9MiB"), 0, 9 * MIB),
    (("--offset", "5", "--length", "11MiB"), 5, 5 + 11 * MIB),
    (("--start-range", "4", "--end-range", "9"), 4, 10),
    (("--offset", "1MiB", "--length", "1MiB", "--validate-content"), MIB, 2 * MIB),
    (("--offset", str(10 * MIB)), 10 * MIB, None),
)
def test_a_part_guards_no_put(cli: CliWorld, site: str, words: tuple[str, ...], start: int, end: int | None) -> None:
    whole = (BINARY * 200)[: 10 * MIB]
    put(cli, f"{site}/a", whole)
    part = whole[start:end]
    assert cli.call("blob", "get", f"{site}/a", *words).stdout == part
    got = cli.call("blob", "get", f"{site}/a", "-f", "part", *words).json
    assert ((cli.root / "part").read_bytes() == part, got["start"], got["length"]) == (True, start, len(part))
    assert got["content_hash"] == "sha256:" + hashlib.sha256(part).hexdigest()
    # Only all of it is a read.
    assert cli.call("blob", "put", f"{site}/a", stdin=b"2").code == 45 if part != whole else True


@cases(
    ("words", "code", "told"),
    (("--offset", "11"), 40, "has only 10 bytes"),
    (("--offset", "9", "--end-range", "3"), 2, "--end-range is before --offset"),
    (("--length", "1", "--end-range", "3"), 2, "--length and --end-range do not go together"),
    (("--length", "0"), 2, "less than 1 byte"),
)
def test_bytes_beyond_it_are_refused(cli: CliWorld, site: str, words: tuple[str, ...], code: int, told: str) -> None:
    put(cli, f"{site}/a", b"0123456789")
    ran = cli.call("blob", "get", f"{site}/a", *words)
    assert (ran.code, told in ran.err, ran.stdout) == (code, True, b"")
    assert cli.call("blob", "get", f"{site}/a", "--offset", "10").stdout == b""


def test_content_goes_to_a_file_and_the_result_to_stdout(cli: CliWorld, site: str) -> None:
    etag = put(cli, f"{site}/a.json", BINARY, "--metadata", "owner=me")
    ran = cli.call("blob", "get", f"{site}/a.json", "-f", "deep.json")
    assert (cli.root / "deep.json").read_bytes() == BINARY
    assert {name: value for name, value in ran.json.items() if name != "last_modified"} == {
        "address": f"blob:{site}/a.json",
        "etag": etag,
        "content_length": len(BINARY),
        "start": 0,
        "length": len(BINARY),
        "content_type": "application/json",
        "blob_type": "BlockBlob",
        "content_hash": "sha256:" + hashlib.sha256(BINARY).hexdigest(),
        "file": "deep.json",
        "metadata": {"owner": "me"},
    }


def test_with_the_bytes_on_stdout_the_result_goes_to_a_file(cli: CliWorld, site: str) -> None:
    etag = put(cli, f"{site}/a", BINARY)
    ran = cli.call("blob", "get", f"{site}/a", "--result", "result.json")
    told = (cli.root / "result.json").read_text()
    assert (ran.stdout == BINARY, f'"etag": "\\{etag[:-1]}\\""' in told, '"file": null' in told) == (True, True, True)


def test_a_compressed_blob_is_delivered_as_it_is(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"\x1f\x8bnot really gzip", "--content-encoding", "gzip")
    assert cli.call("blob", "get", f"{site}/a").stdout == b"\x1f\x8bnot really gzip"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (("--if-match", "0x1"), 42), (("--if-none-match", "{etag}"), 34),
        (("--if-match", "{etag}", "--if-modified-since", "2101-01-01"), 34),
        (("--if-match", "{etag}", "--if-unmodified-since", "2101-01-01", "--if-none-match", "0x1"), 0),
        (("--etag", "{etag}"), 2), (("--last-writer-wins",), 2), (("--if-none-match", "*"), 2),
        (("--lease-id", "0f3c1111-2222-3333-4444-555566667777"), 49),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["get", "show", "exists"])
def test_conditions_on_a_read_are_enforced_together_and_a_refusal_prints_nothing(
    cli: CliWorld, site: str, condition: tuple[str, ...], code: int, verb: str
) -> None:
    etag = put(cli, f"{site}/a", b"old", "--tags", "env=dev")
    ran = cli.call("blob", verb, f"{site}/a", *(word.format(etag=etag) for word in condition), "-o", "json")
    assert (ran.code, ran.out == "" or code == 0) == (code, True)


def test_unchanged_leaves_the_file_and_the_cache_as_they_were(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"old")
    cli.call("blob", "get", f"{site}/a", "-f", "a")
    before = cli.call("cache", "list").json
    ran = cli.call("blob", "get", f"{site}/a", "-f", "a", "--if-none-match", "@last", "-o", "json")
    assert (ran.code, ran.error["kind"], cli.call("cache", "list").json == before) == (34, "not_modified", True)
    assert (cli.root / "a").read_bytes() == b"old"


def test_a_get_is_what_guards_the_next_put(cli: CliWorld, site: str) -> None:
    etag = put(cli, f"{site}/a", b"old")
    cli.call("blob", "get", f"{site}/a")
    assert cli.call("blob", "put", f"{site}/a", stdin=b"new").json["guard"] == "if-match"
    assert cli.call("blob", "put", f"{site}/a", "--etag", etag, stdin=b"x").code == 42


@pytest.mark.parametrize("verb", ["show", "exists", "list"])
def test_looking_is_not_reading(cli: CliWorld, site: str, verb: str) -> None:
    put(cli, f"{site}/a", b"old")
    cli.call("blob", verb, site if verb == "list" else f"{site}/a")
    assert (cli.call("cache", "list").json, cli.call("blob", "delete", f"{site}/a").code) == ([], 42)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith((".cache", ".config")))


def test_a_blob_that_is_not_there_leaves_no_file(cli: CliWorld, site: str) -> None:
    ran = cli.call("blob", "get", f"{site}/nosuch", "-f", "a", "-o", "json")
    assert (ran.code, ran.error["kind"], names(cli.root)) == (44, "not_found", [])


def test_an_existing_file_keeps_its_permissions_and_a_link_stays_one(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"new")
    cli.file("real", "old").chmod(0o640)
    (cli.root / "link").symlink_to("real")
    cli.call("blob", "get", f"{site}/a", "-f", "link")
    assert ((cli.root / "real").read_bytes(), (cli.root / "link").is_symlink()) == (b"new", True)
    assert oct((cli.root / "real").stat().st_mode) == "0o100640"


def test_a_file_that_was_changed_here_is_replaced_only_where_that_is_said(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", BINARY)
    get, file = ("blob", "get", f"{site}/a", "-f", "copy"), cli.root / "copy"
    # A file that azguard did not deliver is replaced, as by any other tool.
    file.write_text("mine")
    assert (cli.call(*get).code, file.read_bytes() == BINARY) == (0, True)
    file.write_text("precious")
    for each in ("as it is", "as another file of the same name"):
        refused = cli.call(*get, "-o", "json")
        assert (refused.code, refused.error["message"][-36:], file.read_text()) == (
            42, "you changed it here since you got it", "precious",
        ), each  # fmt: skip
        file.unlink()
        file.write_text("precious")
    assert (cli.call(*get, "--overwrite").code, file.read_bytes() == BINARY) == (0, True)


def test_a_new_file_has_the_permissions_of_any_new_file(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"new")
    ran = subprocess.run(
        f"umask 027; {' '.join(forked.command('blob', 'get', f'{site}/a', '-f', 'a'))}", shell=True, cwd=cli.root,
        env=cli.environ(), capture_output=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, oct((cli.root / "a").stat().st_mode)) == (0, "0o100640")


def test_a_device_is_written_to_directly(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"new")
    ran = cli.fork("blob", "get", f"{site}/a", "-f", "/dev/stderr", "-o", "none")
    assert (ran.code, ran.err) == (0, "new")


def held_up(cli: CliWorld, site: str, size: int) -> tuple[Any, Any]:
    """Return a get of a large blob, begun through a proxy that keeps back its second range, and the proxy's handle."""
    put(cli, f"{site}/a", b"n" * size)
    cli.file("a", "old")
    gate = Gate()
    between = proxy.running(cli.port, gate.decide)
    running = between.__enter__()
    process = cli.through(running.port).begin_fork("blob", "get", f"{site}/a", "-f", "a", "--timeout", "60s")
    until(lambda: gate.waiting)
    return process, (gate, between)


class Gate:
    """Keeps the second GET of a blob waiting until it is opened."""

    def __init__(self) -> None:
        import threading

        self.seen, self.waiting, self.open = 0, False, threading.Event()

    def decide(self, request: proxy.Request) -> proxy.Fault:
        self.seen += request.method == "GET"
        if self.seen == 2:
            self.waiting = True
            self.open.wait(60)
        return proxy.Fault.NONE


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_in_the_middle_leaves_the_old_file(cli: CliWorld, site: str, number: int, code: int) -> None:
    process, (gate, between) = held_up(cli, site, 9 * MIB)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    gate.open.set()
    between.__exit__(None, None, None)
    left = [] if number == signal.SIGKILL else [each for each in names(cli.root) if each != "a"]
    assert (process.returncode, (cli.root / "a").read_bytes(), left, b"Traceback" in err) == (code, b"old", [], False)


def test_a_blob_overwritten_while_it_is_read_to_a_file_is_read_anew(cli: CliWorld, site: str) -> None:
    process, (gate, between) = held_up(cli, site, 9 * MIB)
    put(cli, f"{site}/a", b"newer" * 2 * MIB)
    gate.open.set()
    out, _ = process.communicate(timeout=60)
    between.__exit__(None, None, None)
    assert (process.returncode, (cli.root / "a").read_bytes() == b"newer" * 2 * MIB) == (0, True)
    etag = cli.call("blob", "show", f"{site}/a").json["etag"]
    assert f'"etag": "\\{etag[:-1]}\\""'.encode() in out


def test_a_blob_overwritten_while_it_is_read_to_stdout_is_said_to_be_incomplete(cli: CliWorld, site: str) -> None:
    from azure.storage.blob import BlobClient

    put(cli, f"{site}/a", b"n" * (9 * MIB))
    theirs = BlobClient.from_connection_string(str(cli.connection_string), site, "a")

    def decide(request: proxy.Request) -> proxy.Fault:
        if request.method == "GET" and request.headers.get("if-match"):
            theirs.upload_blob(b"newer", overwrite=True)
        return proxy.Fault.NONE

    with proxy.running(cli.port, decide) as between:
        ran = cli.through(between.port).fork("blob", "get", f"{site}/a", "-o", "json")
    cached = cli.call("cache", "list").json
    assert (ran.code, ran.error["hint"], len(ran.stdout), cached) == (
        42, "read it to a file instead, which is tried again: -f FILE", 8 * MIB, [],
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_leaves_the_old_file_and_says_so(cli: CliWorld, site: str) -> None:
    disk = cli.root / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        put(cli, f"{site}/a", b"n" * (3 * MIB))
        (disk / "a").write_text("old")
        ran = cli.call("blob", "get", f"{site}/a", "-f", "disk/a")
        left = names(disk), (disk / "a").read_text()
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (ran.code, ran.err.splitlines()[0], left) == (
        73, "error: disk/a cannot be written: No space left on device; it is as it was", (["a"], "old"),
    )  # fmt: skip


def test_a_full_stdout_is_told_and_not_remembered_as_delivered(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"new")
    with open("/dev/full", "wb") as full:
        running = cli.begin_fork("blob", "get", f"{site}/a", stdout=full)
        _, err = running.communicate()
    assert (running.returncode, b"No space left" in err, cli.call("cache", "list").json) == (73, True, [])


def test_a_closed_pipe_ends_quietly_and_is_not_remembered_as_delivered(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", b"line\n" * 2 * MIB)
    running = cli.begin_fork("blob", "get", f"{site}/a")
    assert running.stdout is not None
    assert running.stdout.readline() == b"line\n"
    running.stdout.close()
    assert running.stderr is not None
    err = running.stderr.read()
    assert (running.wait(), err, cli.call("cache", "list").json) == (141, b"", [])


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_only_a_part_is_told(cli: CliWorld, site: str, unbuffered: str) -> None:
    put(cli, f"{site}/a", b"n" * (2 * MIB))
    with open(cli.root / "out", "wb") as out:
        running = cli.begin(
            "blob", "get", f"{site}/a", stdout=out, env={"PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB)),
        )  # fmt: skip
        _, err = running.communicate()
    assert (running.returncode, b"File too large" in err, cli.call("cache", "list").json) == (73, True, [])


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_a_get_whose_ranges_are_not_answered_yet(cli: CliWorld, site: str, unbuffered: str) -> None:
    put(cli, f"{site}/a", b"n" * (13 * MIB))
    gate = Gate()
    with proxy.running(cli.port, gate.decide) as between:
        running = cli.through(between.port).begin_fork(
            "blob", "get", f"{site}/a", "--timeout", "60s", env={"PYTHONUNBUFFERED": unbuffered}
        )
        until(lambda: gate.waiting)
        assert running.stdout is not None
        running.stdout.close()
        code = running.wait(60)
        gate.open.set()
    assert code == 141


def test_a_url_with_a_sas_needs_no_other_credentials(cli: CliWorld, site: str) -> None:
    from datetime import UTC, datetime, timedelta

    from azure.storage.blob import BlobSasPermissions, generate_blob_sas

    from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME

    etag = put(cli, f"{site}/a b", b"new")
    sas = generate_blob_sas(
        EMULATOR_NAME, site, "a b", account_key=EMULATOR_KEY, permission=BlobSasPermissions(read=True, write=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )  # fmt: skip
    anonymous = CliWorld(cli.root)
    url = f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}/{site}/a%20b?{sas}"
    ran = anonymous.call("blob", "get", url, "-f", "a")
    signature = sas.split("sig=")[1].split("&")[0]
    database = b"".join(each.read_bytes() for each in (cli.root / ".cache").rglob("*") if each.is_file())
    assert (ran.code, ran.json["etag"], (cli.root / "a").read_bytes()) == (0, etag, b"new")
    assert anonymous.call("blob", "put", url, "-f", "a").json["guard"] == "if-match"
    assert (signature in ran.out, signature.encode() in database) == (False, False)


def test_what_is_in_the_archive_is_told_with_the_way_out(cli: CliWorld) -> None:
    blob = f"{cli.container()}/old"
    cli.call("blob", "put", blob, stdin=b"old")
    assert cli.call("blob", "tier", blob, "--tier", "Archive").code == 0
    ran = cli.call("blob", "get", blob, "-o", "json")
    expected = (40, "BlobArchived", f"azguard blob tier {blob} --tier Hot brings it back, within hours")
    assert (ran.code, ran.error["service_code"], ran.error["hint"]) == expected
