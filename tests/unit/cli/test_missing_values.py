"""An option without its value: the hint is the help of that very command."""

import typer

from azguard.cli import errors
from azguard.cli.parsing import command_spec
from docs.manual import find_root


def _hint(words: list[str]) -> str | None:
    try:
        context = find_root().make_context("azguard", words)
        context.meta[command_spec.ARGV] = tuple(words)
        find_root().invoke(context)
    except typer.TyperException as error:
        return errors._usage(error, words).hint
    return None


def test_the_hint_names_the_command_whose_option_has_no_value() -> None:
    assert [_hint(["blob", "put", "--etag"]), _hint(["lock", "run", "a", "-E"]), _hint(["-o"])] == [
        "azguard blob put --help",
        "azguard lock run --help",
        "azguard --help",
    ]


def test_an_option_that_is_not_known_keeps_its_own_hint() -> None:
    words = ["blob", "put", "site/a", "--etga", "x"]
    assert _hint(words) == "did you mean --etag?"
