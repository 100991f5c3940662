"""The lines of a tree beside the bar, on one terminal."""

import pytest

from azguard.cli.output import terminal
from azguard.cli.output.results import Output
from azguard.cli.output.terminal import ERASE
from azguard.cli.output.trees import Lines
from azguard.trees.runs import TreeItem


@pytest.mark.parametrize("output", ["json", "tsv", "yaml", "table"])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_printed_erases_the_bar_on_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str, is_terminal: bool
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: is_terminal)
    lines = Lines(Output(output, progress=True))
    lines.print(TreeItem("blob:c/a", None, "created").done())
    lines.end()
    shown = capsys.readouterr().out
    assert (shown.count(ERASE), shown.startswith(ERASE), "blob:c/a" in shown) == (is_terminal, is_terminal, True)


def test_what_is_not_printed_erases_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    Lines(Output("none", progress=True)).print(TreeItem("blob:c/a", None, "created").done())
    assert capsys.readouterr().out == ""
