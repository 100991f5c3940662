"""``--help`` of every command: readable in 80 columns, and the topics that it names."""

import os
import re
from io import StringIO

import pytest

from azguard.cli.help import layout, pages
from azguard.cli.help.pages import HelpText
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.command_tree import COMMANDS, command_at

EVERY = tuple(tuple(name.split()) for name, _ in COMMANDS)


@cases("path", (), *EVERY)
def test_help_fits_eighty_columns_and_groups_its_options(offline: CliWorld, path: tuple[str, ...]) -> None:
    ran = offline.call(*path, "--help", env={"COLUMNS": "80"})
    headings = re.findall(r"^([\w ]+):$", ran.out, re.MULTILINE)
    order = ["Examples", "Arguments", "Options", "Conditions", "Commands", "In short", "Read on"]
    assert (ran.code, ran.err, [line for line in ran.out.splitlines() if len(line) > 80]) == (0, "", [])
    assert headings == sorted(headings, key=order.index)


def test_a_word_that_names_no_command_has_no_help(offline: CliWorld) -> None:
    ran = offline.call("blob", "nosuch", "--help")
    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", "error: no such command 'nosuch'")


def test_every_option_and_argument_says_what_it_is_for() -> None:
    assert [(name, row.name) for name, command in COMMANDS for row in command.rows if not row.help] == []


def test_options_of_all_commands_stand_in_a_topic_of_their_own(offline: CliWorld) -> None:
    shown, topic = offline.call("blob", "put", "--help").out, offline.call("help", "options").out
    assert [name in shown for name in ("--account-name", "--query", "azguard help options")] == [False, False, True]
    assert [name in topic for name in ("--account-name", "--query")] == [True, True]


@cases("name", *pages.TOPICS)
def test_a_topic_is_readable_in_eighty_columns(offline: CliWorld, name: str) -> None:
    ran = offline.call("help", name, env={"COLUMNS": "80"})
    # What is to be typed stands as it is.
    text = [each for each in pages.find_topic(name) if each.kind != "code"]
    too_wide = [line for line in pages.render_page(text, 78).splitlines() if len(line) > 78]
    assert (ran.code, ran.out.splitlines()[0], too_wide) == (0, pages.TOPICS[name], [])


def test_topics_that_a_help_names_exist() -> None:
    named = {path: HelpText(command_at(path).help).topics for path in EVERY}
    assert [(path, topic) for path, found in named.items() for topic in found if topic not in pages.TOPICS] == []


@cases(("typed", "similar"), ("conditons", "conditions"), ("exitstatus", "exit-status"), ("tabel", "table"))
def test_a_misspelt_topic_or_command_is_answered_with_the_right_one(
    offline: CliWorld, typed: str, similar: str
) -> None:
    ran = offline.call("help", typed)
    assert (ran.code, ran.err) == (
        2, f"error: azguard has no command or topic '{typed}'\nhint: did you mean: azguard help {similar}\n",
    )  # fmt: skip


def test_headings_are_bold_only_on_a_terminal_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    shown = []
    for environ in ({"TERM": "xterm"}, {"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        monkeypatch.setattr(os, "environ", environ)
        shown.append(layout.emphasize("Usage: azguard\n\nOptions:\n  Not: one\n", terminal))
    plain = "Usage: azguard\n\nOptions:\n  Not: one\n"
    assert shown == ["\x1b[1mUsage:\x1b[0m azguard\n\n\x1b[1mOptions:\x1b[0m\n  Not: one\n", plain, plain]
