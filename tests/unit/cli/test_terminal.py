"""Colours: where they are wanted, what gets them, and that they change no letter."""

import io
from collections.abc import Mapping

import pytest

from azguard.cli.output import terminal
from azguard.cli.output.results import Output
from tests.support.cases import cases


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@cases(
    ("stream", "shared", "environ", "is_colored"),
    (Terminal(), {}, {"TERM": "xterm"}, True),
    (Terminal(), {}, {"TERM": "dumb"}, False),
    (Terminal(), {}, {"TERM": "xterm", "NO_COLOR": "1"}, False),
    (Terminal(), {}, {"TERM": "xterm", "NO_COLOR": ""}, True),
    (Terminal(), {"no_color": True}, {"TERM": "xterm", "FORCE_COLOR": "1"}, False),
    (Terminal(), {}, {"TERM": "xterm", "FORCE_COLOR": "0"}, False),
    (io.StringIO(), {}, {"TERM": "xterm"}, False),
    (io.StringIO(), {}, {"FORCE_COLOR": "1"}, True),
    (io.StringIO(), {}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    (Terminal(), {}, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
)
def test_colours_are_for_terminals_unless_the_user_says_otherwise(
    stream: io.StringIO, shared: Mapping[str, object], environ: Mapping[str, str], is_colored: bool
) -> None:
    assert terminal.is_colored(stream, shared, environ) is is_colored


def test_a_stream_that_is_closed_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert terminal.is_terminal(stream) is False


def test_a_label_is_coloured_where_it_begins_a_line() -> None:
    shown = terminal.paint_labels("error: no error: here\nhint: a\n      b")
    assert shown == "\x1b[1;31merror:\x1b[0m no error: here\n\x1b[36mhint:\x1b[0m a\n      b"


def test_the_lines_of_a_diff_are_coloured_by_what_they_say() -> None:
    shown = terminal.paint_diff("--- a\n+++ b\n@@ -1 +1 @@\n-1\n+2\n 3\n\\ No newline at end of file\n")
    assert shown == (
        "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-1\x1b[0m\n\x1b[32m+2\x1b[0m\n"
        " 3\n\\ No newline at end of file\n"
    )


@cases(("said", "width"), ("40", 40), ("200", 200), ("", 80), ("0", 80), ("wide", 80))
def test_the_width_is_what_columns_says_or_80(said: str, width: int) -> None:
    assert terminal.width(io.StringIO(), {"COLUMNS": said}) == width


def test_a_line_of_waiting_is_no_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "60")
    line = "waiting for blob:locks/deploy: 2nd in the queue; locks/deploy is held by ops@build-7 for 12m; 9m left"
    Output(format="json").say(line)
    shown = stream.getvalue().splitlines()
    assert (max(map(len, shown)) <= 60, " ".join(" ".join(shown).split())) == (True, line)
