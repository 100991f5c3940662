"""Ranges of a file are written, cleared and listed, and its length is set: each under its guard."""

from typing import Any

import pytest
from azure.storage.fileshare import ShareLeaseClient

from azguard.errors import Forbidden
from azguard.requests import settle
from azguard.resources import properties
from azguard.wire.call import call
from azguard.wire.failures import Broken, BrokenAnswer
from azguard.wire.operations.shares import FILE_SET_PROPERTIES
from azguard.wire.rows import Operation
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault

ANYHOW = "--last-writer-wins"
#: What is written, by the command: its words, its input, and what is in the file of eight times ``a`` then.
WRITES = {
    "resize": (("file", "resize", "{file}", "4"), b"", b"aaaa"),
    "put": (("file", "range", "put", "{file}", "--offset", "2"), b"new", b"aanewaaa"),
}
_PIECE = 4 * 1024**2
_NO_SNAPSHOT = "2020-01-01T00:00:00.0000000Z"


def read(cli: CliWorld, file: str) -> bytes:
    return bytes(files_world.client(cli, file).download_file().readall())


def etag(cli: CliWorld, file: str) -> str:
    return str(cli.call("file", "show", file).json["etag"])


@pytest.mark.parametrize("name", WRITES)
def test_a_write_of_the_version_that_was_read_is_guarded_by_a_lease(files_cli: CliWorld, name: str) -> None:
    file = files_world.make(files_cli, b"a" * 8, metadata={"owner": "me"})
    words, stdin, content = WRITES[name]
    line = [word.format(file=file) for word in words]
    done = files_cli.call(*line, "--etag", etag(files_cli, file), stdin=stdin).json
    shown = files_cli.call("file", "show", file).json
    assert (done["guard"], done["outcome"], done["etag"]) == ("lease", "committed", shown["etag"])
    assert (read(files_cli, file), shown["metadata"], shown["lease_state"]) == (content, {"owner": "me"}, "available")
    # The version that was written guards the next write.
    assert files_cli.call(*line, stdin=stdin).code == 0


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize("name", WRITES)
def test_a_lost_answer_is_settled_by_the_lease(files_cli: CliWorld, name: str, fault: Fault) -> None:
    file = files_world.make(files_cli, b"a" * 8)
    words, stdin, content = WRITES[name]
    line = [word.format(file=file) for word in words]
    which = "comp=properties" if name == "resize" else "comp=range"
    ran, log = files_world.spoilt(files_cli, fault, *line, "--etag", etag(files_cli, file), which=which, stdin=stdin)
    assert (ran.code, ran.json["etag"], read(files_cli, file)) == (0, etag(files_cli, file), content)
    assert sum(committed for _, committed in log) == (2 if fault is Fault.REPLAYED else 1)


@pytest.mark.parametrize("name", WRITES)
def test_without_a_version_a_lost_answer_is_unknown(files_cli: CliWorld, name: str) -> None:
    file = files_world.make(files_cli, b"a" * 8)
    words, stdin, _ = WRITES[name]
    line = [word.format(file=file) for word in words]
    ran, _ = files_world.spoilt(files_cli, Fault.DROP, *line, ANYHOW, which="PUT ", stdin=stdin)
    assert ran.code == 74


@pytest.mark.parametrize("name", [*WRITES, "clear"])
def test_another_version_is_left_alone(files_cli: CliWorld, name: str) -> None:
    file = files_world.make(files_cli, b"a" * 512)
    words = WRITES[name][0] if name in WRITES else ("file", "range", "clear", "{file}", "--length", "512")
    line, before = [word.format(file=file) for word in words], etag(files_cli, file)
    never = files_cli.call(*line, stdin=b"x")
    files_world.client(files_cli, file).upload_file(b"theirs")
    ran = files_cli.call(*line, "--etag", before, stdin=b"x")
    assert (never.code, ran.code, read(files_cli, file)) == (42, 42, b"theirs")


def test_a_version_that_is_there_after_our_lease_was_broken_is_not_taken_for_ours(
    files_cli: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files_world.make(files_cli, b"a" * 8)
    before = etag(files_cli, file)

    def lose(operation: Operation, *given: Any, **named: Any) -> Any:
        """Lose the request, while an operator breaks the lease and another program writes."""
        if operation is not FILE_SET_PROPERTIES:
            return call(operation, *given, **named)
        theirs = files_world.client(files_cli, file)
        ShareLeaseClient(theirs).break_lease()
        theirs.resize_file(2)
        raise BrokenAnswer(Broken.TIMED_OUT)

    monkeypatch.setattr(settle, "call", lose)
    ran = files_cli.call("file", "resize", file, "--size", "4", "--etag", before, "--timeout", "10s")
    assert (ran.code, read(files_cli, file)) == (74, b"aa")


def test_what_a_resize_in_doubt_made_is_not_taken_for_the_version_that_was_read(
    files_cli: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files_world.make(files_cli, b"a" * 8)
    files_cli.call("file", "get", file)

    def lose(operation: Operation, *given: Any, **named: Any) -> Any:
        answer = call(operation, *given, **named)
        if operation is FILE_SET_PROPERTIES:
            raise BrokenAnswer(Broken.TIMED_OUT)
        return answer

    def refuse(*_: Any) -> Any:
        raise Forbidden("it may not be read now")

    with monkeypatch.context() as spoilt:
        spoilt.setattr(settle, "call", lose)
        spoilt.setattr(properties, "fetch_whatever_lease", refuse)
        codes = [files_cli.call("file", "resize", file, "4", "--timeout", "10s").code]
    codes.append(files_cli.call("file", "resize", file, "6").code)
    assert (codes, read(files_cli, file)) == ([74, 42], b"aaaa")


def test_ranges_are_sparse(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"a" * 1536)
    assert files_cli.call("file", "resize", file, "--size", "1MiB", "--etag", etag(files_cli, file)).code == 0
    cleared = files_cli.call("file", "range", "clear", file, "--offset", "512", "--length", "512").json
    files_cli.call("file", "range", "put", file, "--offset", "4096", stdin=b"end")
    listed = files_cli.call("file", "range", "list", file).json
    assert (cleared["guard"], cleared["written_bytes"]) == ("lease", 512)
    assert [(each["start"], each["end"]) for each in listed] == [(0, 511), (1024, 1535), (4096, 4098)]
    part = files_cli.call("file", "range", "list", file, "--length", "600").json
    assert [(each["start"], each["length"], each["cleared"]) for each in part] == [(0, 512, False)]


def test_what_differs_from_a_snapshot_is_listed(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"a" * 2048)
    taken = files_world.sdk(files_cli, file.partition("/")[0]).create_snapshot()["snapshot"]
    files_cli.call("file", "range", "clear", file, "--length", "512", ANYHOW)
    files_cli.call("file", "range", "put", file, "--offset", "1024", ANYHOW, stdin=b"b" * 512)
    listed = files_cli.call("file", "range", "list", file, "--previous-snapshot", taken).json
    assert [(each["start"], each["cleared"]) for each in listed] == [(0, True), (1024, False)]


def test_more_than_one_piece_is_written_under_one_lease(files_cli: CliWorld) -> None:
    file, content = files_world.make(files_cli, bytes(_PIECE + 8)), b"x" * (_PIECE + 5)
    done = files_cli.call("file", "range", "put", file, "--etag", etag(files_cli, file), stdin=content).json
    assert (done["written_bytes"], done["attempts"], done["etag"]) == (len(content), 2, etag(files_cli, file))
    assert read(files_cli, file) == content + bytes(3)


def test_a_write_that_stops_in_the_middle_says_where_to_go_on(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, bytes(_PIECE + 8))
    files_cli.call("file", "resize", file, "--size", str(_PIECE + 7), "--etag", etag(files_cli, file))
    ran = files_cli.call("file", "range", "put", file, "-o", "json", stdin=bytes(_PIECE + 9))
    assert (ran.code, ran.error["cause"], ran.error["next_offset"]) == (20, "bad_request", _PIECE)
    # The rest goes over the version that the pieces made.
    again = files_cli.call("file", "range", "put", file, "--offset", str(_PIECE), stdin=b"rest")
    assert (again.code, files_cli.call("file", "show", file).json["lease_state"]) == (0, "available")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("resize", "{file}", ANYHOW), 2, "team/plan.txt 1MiB"),
        (("resize", "{file}", "--size", "5TiB", ANYHOW), 2, None),
        (("range", "clear", "{file}", ANYHOW), 2, "--length 512"),
        (("range", "clear", "{file}", "--length", "5", ANYHOW), 2, "write zeros"),
        (("range", "put", "{file}", "--offset", "6", ANYHOW), 40, "azguard file resize {file} 10"),
        (("range", "put", "{file}x", ANYHOW), 44, None),
        (("range", "list", "{file}x"), 44, None),
        (("range", "list", "{file}", "--previous-snapshot", "then"), 2, "it looks like 2026"),
        (
            ("range", "list", "{file}", "--previous-snapshot", _NO_SNAPSHOT),
            44,
            "azguard share list --include snapshots",
        ),
    ],
)
def test_an_error_tells_the_way_out(files_cli: CliWorld, words: tuple[str, ...], code: int, said: str | None) -> None:
    file = files_world.make(files_cli, b"a" * 8)
    ran = files_cli.call("file", *(word.format(file=file) for word in words), "-o", "json", stdin=b"four")
    assert (ran.code, said is None or said.format(file=file) in ran.error["hint"]) == (code, True)
