"""The command line as it was typed."""

from azguard.cli.parsing import command_line
from tests.support.cases import cases


def test_what_follows_two_dashes_is_another_programs() -> None:
    assert command_line.split(["lock", "run", "a", "--", "b", "--", "c"]) == (
        ["lock", "run", "a"],
        ["--", "b", "--", "c"],
    )


def test_without_two_dashes_every_word_is_ours() -> None:
    assert command_line.split(["blob", "get"]) == (["blob", "get"], [])


@cases(
    ("words", "value"),
    (["--lease-id", "a"], "a"),
    (["--lease-id=a=b"], "a=b"),
    (["--lease-id=a", "--lease-id", "b"], "b"),
    (["--lease-id", "a", "--lease-id=b"], "b"),
    (["--lease-id"], ""),
    (["--lease"], None),
    (["--", "--lease-id", "a"], None),
)
def test_the_value_of_an_option_is_the_last_that_was_typed(words: list[str], value: str | None) -> None:
    assert command_line.find_value(words, "--lease-id") == value


@cases(
    ("words", "asked"),
    (["-o", "json"], True),
    (["-ojson"], True),
    (["--output", "json"], True),
    (["--output=json"], True),
    (["-o", "table"], False),
    (["json", "-o"], False),
    (["--", "-o", "json"], False),
)
def test_json_is_asked_for_by_one_option(words: list[str], asked: bool) -> None:
    assert command_line.wants_json(words) is asked


@cases(
    ("words", "shown"),
    (["--account-key", "secret"], "--account-key @FILE"),
    (["--account-key=secret"], "--account-key=@FILE"),
    (["--sas-token", "@file"], "--sas-token @file"),
    (["--sas-token=@file"], "--sas-token=@file"),
    (["https://a.b/c?sv=1&sig=secret"], "'https://a.b/c?SAS'"),
    (["https://a.b/c?snapshot=1"], "'https://a.b/c?snapshot=1'"),
    (["--set", "a=b c"], "--set 'a=b c'"),
)
def test_a_line_that_is_shown_names_what_to_fill_in_for_a_secret(words: list[str], shown: str) -> None:
    assert command_line.show(words) == shown


def test_options_are_dropped_and_kept_with_their_values() -> None:
    typed = ["blob", "put", "a", "-f", "-", "--etag", "x", "--if-match=y", "--profile", "p", "--emulator"]
    assert (command_line.drop(typed, command_line.GUARDS), command_line.keep(typed, ["--profile", "--emulator"])) == (
        ["blob", "put", "a", "--profile", "p", "--emulator"],
        ["--profile", "p", "--emulator"],
    )


@cases(
    ("word", "typed"),
    ("a b", "'a b'"),
    ("a\u202eb.txt", r"$'a\u202eb.txt'"),
    ("it's\x1b[31m\\", r"$'it\'s\u001b[31m\\'"),
    ("a\x9bb\U000e0001", r"$'a\u009bb\U000e0001'"),
)
def test_a_name_that_no_terminal_shows_is_quoted_so_that_a_shell_reads_it_back(word: str, typed: str) -> None:
    assert command_line.quote(word) == typed
