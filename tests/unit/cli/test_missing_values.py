"""An option without its value: the hint is the help of that very command."""

from azguard.cli.errors import Facts
from azguard.cli.parsing.parser import parse_and_call
from azguard.errors import UsageError


def _hint(words: list[str]) -> str | None:
    try:
        parse_and_call(Facts(tuple(words)), words)
    except UsageError as error:
        return error.hint
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
