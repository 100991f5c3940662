"""``azguard blob append`` and ``append seal``: where bytes land, what stops them, and what is said of a part."""

import io
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from azguard.blobs.content import append_write
from tests.faults.rules import Rule, by_rules
from tests.support import scripted_service
from tests.support.blob_world import client as sdk
from tests.support.blob_world import content
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.scripted_service import Answer

LOG = {"x-ms-blob-type": "AppendBlob", "ETag": '"0x1"', "Content-Length": "4", "Last-Modified": "Sun, 21 Nov 2026 "
       "23:00:00 GMT", "x-ms-creation-time": "Sun, 21 Nov 2026 23:00:00 GMT"}  # fmt: skip


@pytest.fixture
def log(cli: CliWorld) -> str:
    """Return an append blob that this scope never read."""
    blob = f"{cli.container()}/log"
    with sdk(cli, blob) as client:
        client.create_append_blob()
        client.append_block(b"one\n")
    return blob


@contextmanager
def spoilt(cli: CliWorld, *rules: str) -> Iterator[CliWorld]:
    """Yield the world behind a proxy that spoils the requests that the rules name."""
    with proxy.running(cli.port, by_rules([Rule.parse(rule) for rule in rules])) as between:
        yield cli.through(between.port)


@pytest.mark.parametrize(
    ("words", "stdin", "after"),
    [
        (("--line", "two"), b"", b"one\ntwo\n"),
        (("--line", "two", "--line", "three"), b"", b"one\ntwo\nthree\n"),
        (("--lines",), b"two\nthree", b"one\ntwo\nthree\n"),
        ((), b"two", b"one\ntwo"),
        (("--last-writer-wins",), b"two", b"one\ntwo"),
        (("--guard", "lease"), b"two", b"one\ntwo"),
        (("--append-position", "4", "--max-size", "7"), b"two", b"one\ntwo"),
    ],
)
def test_what_was_never_read_is_appended_to_at_its_end(
    cli: CliWorld, log: str, words: tuple[str, ...], stdin: bytes, after: bytes
) -> None:
    ran = cli.call("blob", "append", log, *words, stdin=stdin)
    added = len(after) - 4
    assert (ran.code, content(cli, log)) == (0, after), ran.err
    assert [ran.json[name] for name in ("position", "appended_bytes", "content_length")] == [4, added, len(after)]


@pytest.mark.parametrize(
    ("words", "guard"),
    [((), "position"), (("--guard", "content"), "position"), (("--guard", "lease"), "lease"),
     (("--last-writer-wins",), "none"), (("--append-position", "4"), "conditions")],
)  # fmt: skip
def test_a_result_names_its_guard(cli: CliWorld, log: str, words: tuple[str, ...], guard: str) -> None:
    assert cli.call("blob", "append", log, *words, stdin=b"two").json["guard"] == guard


def test_a_version_that_was_read_guards_content_and_no_line(cli: CliWorld, log: str) -> None:
    cli.call("blob", "get", log, "-f", "log")
    assert cli.call("blob", "append", log, stdin=b"two\n").json["guard"] == "if-match"
    assert cli.call("blob", "append", log, stdin=b"three\n").code == 0
    with sdk(cli, log) as client:
        client.append_block(b"theirs\n")
    refused = cli.call("blob", "append", log, "-o", "json", stdin=b"four\n")
    assert (refused.code, refused.error["expected_etag"] is not None) == (42, True)
    assert cli.call("blob", "append", log, "--line", "four").code == 0
    assert content(cli, log) == b"one\ntwo\nthree\ntheirs\nfour\n"


def test_what_others_appended_is_not_taken_for_read(cli: CliWorld, log: str) -> None:
    cli.call("blob", "append", log, "--line", "two")
    assert cli.call("blob", "delete", log).code == 42


def test_a_blob_that_is_all_ours_is_known(cli: CliWorld) -> None:
    blob = f"{cli.container()}/new"
    made = cli.call("blob", "append", blob, "--create", "--metadata", "a=b", stdin=b"one\n").json
    assert (made["created"], made["position"]) == (True, 0)
    assert (cli.call("blob", "show", blob).json["metadata"], cli.call("blob", "delete", blob).code) == ({"a": "b"}, 0)


def test_our_own_lines_behind_a_version_that_was_read_keep_it_known(cli: CliWorld, log: str) -> None:
    cli.call("blob", "get", log, "-f", "log")
    for line in ("two", "three"):
        assert cli.call("blob", "append", log, "--line", line).code == 0
    assert cli.call("blob", "append", log, stdin=b"four\n").json["guard"] == "if-match"
    # The file on the disk has none of these lines: writing it would lose them.
    assert cli.call("blob", "put", log, "-f", "log", "--blob-type", "block").code == 42


def test_a_line_of_an_update_keeps_it_known_too(cli: CliWorld, log: str) -> None:
    cli.call("blob", "get", log, "-f", "log")
    assert cli.call("safe-update", f"blob:{log}", "--append-line", "two").code == 0
    assert cli.call("blob", "append", log, stdin=b"three\n").json["guard"] == "if-match"


def test_a_line_behind_what_was_not_read_makes_nothing_known(cli: CliWorld, log: str) -> None:
    cli.call("blob", "get", log, "-f", "log")
    with sdk(cli, log) as client:
        client.append_block(b"theirs\n")
    assert cli.call("blob", "append", log, "--line", "mine").code == 0
    assert cli.call("blob", "append", log, stdin=b"more\n").code == 42


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--append-position", "3"), "does not end at byte 3"), (("--max-size", "6"), "longer than 6 bytes")],
)
def test_a_refused_append_says_where_it_ends(cli: CliWorld, log: str, words: tuple[str, ...], reason: str) -> None:
    ran = cli.call("blob", "append", log, *words, stdin=b"two")
    assert (ran.code, reason in ran.err, content(cli, log)) == (42, True, b"one\n"), ran.err


def test_a_refused_append_tells_of_the_empty_blob_that_it_created(cli: CliWorld, log: str) -> None:
    ran = cli.call("blob", "append", f"{log}-2", "--create", "--line", "long", "--max-size", "2")
    assert (ran.code, f"{log}-2 was created for it, and stays" in ran.err, content(cli, f"{log}-2")) == (42, True, b"")


@pytest.mark.parametrize("words", [("--guard", "lease"), ()])
def test_equal_bytes_behind_the_named_place_are_not_ours(cli: CliWorld, log: str, words: tuple[str, ...]) -> None:
    """Another writer's bytes stood there before: no lease that is taken later proves them ours."""
    ran = cli.call("blob", "append", log, "--append-position", "0", *words, stdin=b"one\n")
    assert (ran.code, content(cli, log)) == (42, b"one\n"), ran.out + ran.err


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [
        ("append", ("--if-match", "*"), 42),
        ("append", ("--etag", '"0x1"'), 42),
        ("append", ("--append-position", "4"), 42),
        ("append", ("--lease-id", "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"), 49),
        ("page put", ("--if-match", '"0x1"'), 42),
    ],
)
def test_a_condition_on_a_blob_creates_none(cli: CliWorld, command: str, words: tuple[str, ...], code: int) -> None:
    blob = f"{cli.container()}/new"
    create = ("--create", "512") if command == "page put" else ("--create",)
    ran = cli.call("blob", *command.split(), blob, *create, *words, stdin=bytes(512))
    assert (ran.code, cli.call("blob", "exists", blob).code) == (code, 44), ran.out + ran.err


def test_empty_input_is_refused_unless_it_is_said_to_be_meant(cli: CliWorld, log: str) -> None:
    refused, done = (cli.call("blob", "append", log, *words) for words in ((), ("--allow-empty",)))
    assert (refused.code, done.code, done.json["outcome"], content(cli, log)) == (2, 0, "unchanged", b"one\n")


def test_a_missing_blob_is_created_only_if_that_is_said(cli: CliWorld) -> None:
    blob = f"{cli.container()}/new"
    ran = cli.call("blob", "append", blob, "--line", "one", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (44, "to create it: --create")


def test_nothing_is_appended_to_a_block_blob(cli: CliWorld) -> None:
    blob = f"{cli.container()}/block"
    cli.call("blob", "put", blob, stdin=b"one\n")
    ran = cli.call("blob", "append", blob, "--line", "two", "--create")
    assert (ran.code, "is a block blob" in ran.err, content(cli, blob)) == (40, True, b"one\n")
    # Then azguard has not looked at what is there, and the service says it.
    ran = cli.call("blob", "append", blob, "--line", "two", "--last-writer-wins")
    assert (ran.code, "is a blob of another type" in ran.err, content(cli, blob)) == (40, True, b"one\n")


def test_a_leased_blob_is_appended_to_with_the_lease_alone(cli: CliWorld, log: str) -> None:
    lease = cli.call("lease", "acquire", f"blob:{log}", "--infinite").json["lease_id"]
    without = cli.call("blob", "append", log, "--line", "two", scope="other", env={"AZGUARD_SCOPE": "other"})
    beside = cli.call("blob", "append", log, "--line", "two", "--guard", "lease", scope="other")
    held = cli.call("blob", "append", log, "--line", "two", "--lease-id", lease)
    assert (without.code, beside.code, held.code, content(cli, log)) == (49, 49, 0, b"one\ntwo\n")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces of ten bytes."""
    monkeypatch.setattr(append_write, "PIECE_BYTES", 10)


@pytest.mark.usefixtures("small")
def test_content_of_several_pieces_stands_in_one(cli: CliWorld, log: str) -> None:
    ran = cli.call("blob", "append", log, stdin=b"x" * 25)
    assert (ran.code, ran.json["block_count"], content(cli, log)) == (0, 4, b"one\n" + b"x" * 25)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "after"),
    [((), None), (("--lines",), b"one\naaaa\nbbbb\ntheirs\ncccc\ndd\neefff\n")],
    ids=["content", "lines"],
)
def test_bytes_of_others_stop_no_lines(cli: CliWorld, log: str, words: tuple[str, ...], after: bytes | None) -> None:
    pieces = append_write.read_pieces, append_write.read_lines

    def interrupt(read: Any) -> Any:
        def reading(source: io.BytesIO) -> Iterator[bytes]:
            for number, piece in enumerate(read(source)):
                # A piece is asked for while the one before it waits.
                if number == 2:
                    with sdk(cli, log) as client:
                        client.append_block(b"theirs\n")
                yield piece

        return reading

    with (
        patch.object(append_write, "read_pieces", interrupt(pieces[0])),
        patch.object(append_write, "read_lines", interrupt(pieces[1])),
    ):
        ran = cli.call("blob", "append", log, *words, "-o", "json", stdin=b"aaaa\nbbbb\ncccc\ndd\neefff")
    if after is None:
        facts = {name: ran.error[name] for name in ("appended_bytes", "position", "next_position", "cause")}
        assert (ran.code, facts) == (
            20, {"appended_bytes": 10, "position": 4, "next_position": 14, "cause": "changed"},
        )  # fmt: skip
        assert f"tail -c +11 FILE | azguard blob append {log} --append-position 14" in ran.error["hint"]
    else:
        assert (ran.code, content(cli, log)) == (0, after)


@pytest.mark.usefixtures("small")
def test_a_part_is_told_when_the_next_piece_is_in_doubt(cli: CliWorld, log: str) -> None:
    with spoilt(cli, "PUT appendblock 2 drop") as world:
        ran = world.call("blob", "append", log, "-o", "json", stdin=b"x" * 25)
    assert (ran.code, ran.error["appended_bytes"], ran.error["position"]) == (74, 10, 14)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fault", ["drop", "503-after", "reset", "503-before"])
@pytest.mark.parametrize("guard", ["content", "lease"])
def test_lost_answers_double_no_piece(cli: CliWorld, log: str, fault: str, guard: str) -> None:
    with spoilt(cli, *(f"PUT appendblock {number} {fault}" for number in (1, 3, 4))) as world:
        ran = world.call("blob", "append", log, "--guard", guard, stdin=b"abcdefghij" * 2 + b"xyz")
    assert (ran.code, content(cli, log)) == (0, b"one\n" + b"abcdefghij" * 2 + b"xyz")


def test_an_append_that_looks_at_nothing_is_unknown_after_a_lost_answer(cli: CliWorld, log: str) -> None:
    with spoilt(cli, "PUT appendblock * drop") as world:
        ran = world.call("blob", "append", log, "--line", "two", "--last-writer-wins")
    assert (ran.code, content(cli, log)) == (74, b"one\ntwo\n")


def test_an_append_that_looks_at_nothing_is_one_request(cli: CliWorld, log: str) -> None:
    with proxy.running(cli.port, lambda _: Fault.NONE) as between:
        assert cli.through(between.port).call("blob", "append", log, "--line", "two", "--last-writer-wins").code == 0
        asked: list[Request] = [each.request for each in between.log]
    assert [each.method for each in asked] == ["PUT"]


def test_a_blob_is_sealed_for_the_version_that_was_read(cli: CliWorld, log: str) -> None:
    assert cli.call("blob", "append", "seal", log).code == 42
    cli.call("blob", "get", log, "-f", "log")
    sealed = cli.call("blob", "append", "seal", log)
    assert (sealed.code, sealed.json["sealed"], sealed.json["content_length"]) == (0, True, 4)
    again, refused = cli.call("blob", "append", "seal", log), cli.call("blob", "append", log, "--line", "two")
    assert (again.code, refused.code, "is sealed" in refused.err) == (0, 40, True)


def test_a_block_blob_cannot_be_sealed(cli: CliWorld) -> None:
    blob = f"{cli.container()}/block"
    cli.call("blob", "put", blob, stdin=b"one\n")
    assert cli.call("blob", "append", "seal", blob).code == 40


# The emulator lets a sealed blob grow, so a scripted service answers as the live one is documented to.
@cases(
    ("status", "code", "exit_code", "words"),
    (409, "BlobIsSealed", 40, "begin another blob"),
    (409, "BlockCountExceedsLimit", 40, "begin another blob"),
    (412, "MaxBlobSizeConditionNotMet", 42, "raise --max-size"),
)
def test_a_live_refusal_says_what_to_do(offline: CliWorld, status: int, code: str, exit_code: int, words: str) -> None:
    with scripted_service.running(Answer(200, headers=LOG), Answer(status, code), Answer(200, headers=LOG)) as service:
        ran = offline.call(
            "blob", "append", "logs/a", "--line", "x", "--max-size", "100", "-o", "json",
            "--connection-string", service.connection_string,
        )  # fmt: skip
    assert (ran.code, words in ran.error["hint"]) == (exit_code, True), ran.err


def test_a_seal_by_another_at_another_place_is_not_ours(offline: CliWorld) -> None:
    """The answer to ours is lost; what is sealed then does not end where ours had to."""
    lost, sealed = Answer(503, "ServerBusy"), Answer(200, headers={**LOG, "x-ms-blob-sealed": "true"})
    with scripted_service.running(Answer(200, headers=LOG), lost, sealed) as service:
        cli = CliWorld(offline.root, service.connection_string)
        ran = cli.call("blob", "append", "seal", "logs/a", "--append-position", "3", "-o", "json")
    assert (ran.code, ran.error["kind"]) == (42, "changed")


def test_a_sealed_blob_is_not_sent_anything(offline: CliWorld) -> None:
    sealed = Answer(200, headers={**LOG, "x-ms-blob-sealed": "true"})
    with scripted_service.running(sealed) as service:
        ran = offline.call("blob", "append", "logs/a", "--line", "x", "--connection-string", service.connection_string)
        assert (ran.code, [method for method, _ in service.asked]) == (40, ["HEAD"])


def test_who_may_only_add_is_told_how(offline: CliWorld) -> None:
    refused = Answer(403, "AuthorizationPermissionMismatch")
    with scripted_service.running(refused) as service:
        ran = offline.call(
            "blob", "append", "logs/a", "--line", "x", "-o", "json", "--connection-string", service.connection_string
        )
    assert (ran.code, "--last-writer-wins" in ran.error["hint"]) == (43, True)


def test_a_signal_between_two_pieces_ends_the_append_and_says_how_far_it_came(cli: CliWorld) -> None:
    blob = f"{cli.container()}/log"
    process = cli.begin_fork("blob", "append", blob, "--create", "-o", "json")
    assert process.stdin is not None
    process.stdin.write(bytes(2 * append_write.PIECE_BYTES + 1))
    process.stdin.flush()
    # It waits for the rest of the third piece while the second one is not sent.
    until(lambda: cli.call("blob", "exists", blob).code == 0 and len(content(cli, blob)) > 0)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    error = json.loads(told)["error"]
    assert (process.returncode, error["appended_bytes"]) == (143, len(content(cli, blob)))
