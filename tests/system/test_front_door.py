"""The front door: help and version however they are asked for, and odd command lines without a traceback."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from azguard import __version__
from tests.support.cases import cases
from tests.support.cli_world import CliWorld


@cases("words", (), ("--",), ("--", "--"), ("help",), ("help", "--"), ("--help",), ("-h",))
def test_azguard_alone_prints_its_help(offline: CliWorld, words: tuple[str, ...]) -> None:
    ran = offline.call(*words)
    assert (ran.code, ran.out, ran.err) == (0, offline.call("--help").out, "")


@cases("path", ("blob",), ("lock",), ("table", "acl"))
@cases("end", (), ("--",))
def test_a_group_alone_prints_its_help_and_ends_with_two(
    offline: CliWorld, path: tuple[str, ...], end: tuple[str, ...]
) -> None:
    ran = offline.call(*path, *end)
    assert (ran.code, ran.out, ran.err) == (2, "", offline.call(*path, "--help").out)


@cases(("words", "needs"), (("-v",), "azguard"), (("-q", "blob"), "azguard blob"), (("blob", "-q"), "azguard blob"))
def test_a_line_of_options_alone_is_told_what_is_missing(offline: CliWorld, words: tuple[str, ...], needs: str) -> None:
    ran = offline.call(*words)
    assert (ran.code, ran.err.splitlines()[-1]) == (2, f"error: {needs} needs a command")


@cases(
    ("query", "said"),
    ("nosuch", "--query matches nothing: the result has no nosuch\n"),
    ("path", ""),
    ("[?x=='1']", "--query matches nothing: the result has no x\n"),
)
def test_a_query_for_what_is_not_there_is_told(offline: CliWorld, query: str, said: str) -> None:
    assert offline.call("cache", "path", "--query", query).err == said


@cases(
    ("words", "needs"),
    (("-o", "json"), "azguard"),
    (("-o", "json", "--"), "azguard"),
    (("-ojson", "blob"), "azguard blob"),
)
def test_a_program_that_forgot_the_command_gets_its_error_as_json(
    offline: CliWorld, words: tuple[str, ...], needs: str
) -> None:
    ran = offline.call(*words)
    assert (ran.code, ran.error["message"], ran.error["hint"]) == (2, f"{needs} needs a command", f"{needs} --help")


@cases("path", ("blob",), ("blob", "put"), ("safe-update",), ("table", "acl", "set"), ("help",))
def test_help_of_a_command_is_what_its_option_prints_and_the_notes(offline: CliWorld, path: tuple[str, ...]) -> None:
    ran, option = offline.call("help", *path), offline.call(*path, "--help").out
    has_notes = path != ("blob",)
    assert (ran.code, ran.out[: len(option)], ran.out[len(option) :][:8], ran.err) == (
        0, option, "\nNotes:\n" if has_notes else "", "",
    )  # fmt: skip


@cases("words", ("version",), ("-V",), ("--version",), ("-q", "-V"), ("-V", "blob"))
def test_the_version_however_it_is_asked_for(offline: CliWorld, words: tuple[str, ...]) -> None:
    ran = offline.call(*words)
    assert (ran.code, ran.out, ran.err) == (0, f"azguard {__version__}\n", "")


@cases("options", ("-o", "json"), ("--query", "@"))
def test_the_version_is_data_for_a_program_that_asks_for_it(offline: CliWorld, options: tuple[str, ...]) -> None:
    assert offline.call("version", *options).json == {"version": __version__}


# Commands that do nothing without an account, and what people and scripts get wrong around them.
_ODD = [
    "--", "-", "", " ", "-o", "--output", "json", "xml", "--output=", "--output=json", "-ojson", "-oo", "--query", "[",
    "-q", "-v", "-V", "-h", "--help", "--version", "--debug", "--scope", "--profile", "--etag", "@last", "-f", "---",
    "--=", "-=", "=", "--nosuch", "-x", "blob", "blobs", "get", "put", "exists", "list", "acl", "table", "cache",
    "lease", "safe-update", "status", "help", "version", "completion", "bash", "site/a", "blob:", "ä", "\udcff", "*",
]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(_ODD), max_size=6))
def test_an_odd_command_line_is_answered_without_a_traceback(offline: CliWorld, words: list[str]) -> None:
    ran = offline.call(*words)
    assert ("Traceback" in ran.err and "--debug" not in words, ran.code == 1) == (False, False), ran.err


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("words", [(), ("blob",), ("-o", "json"), ("version",), ("completion", "bash")])
def test_help_that_cannot_be_written_ends_with_a_status_that_is_known(
    offline: CliWorld, words: tuple[str, ...], stream: str
) -> None:
    with open("/dev/full", "wb") as full:
        streams: dict[str, Any] = {stream: full}
        running = offline.begin_fork(*words, **streams)
        running.communicate()
    needs_stdout = words in ((), ("version",), ("completion", "bash"))
    expected = 73 if needs_stdout and stream == "stdout" else 0 if needs_stdout else 2
    assert running.returncode == expected
