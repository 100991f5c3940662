"""Which names are meant: patterns as in .gitignore."""

import pytest

from azguard.errors import UsageError
from azguard.trees.names import Patterns, check_pattern
from tests.support.cases import cases

NAMES = ("index.html", "css/a.css", "css/a.map", "drafts/x.html", "a/drafts/y.html")


def selected(include: tuple[str, ...], exclude: tuple[str, ...]) -> list[str]:
    found = Patterns(include, exclude)
    return [name for name in NAMES if found.selects(name)]


@cases(
    ("include", "exclude", "left"),
    [
        ((), (), list(NAMES)),
        (("*.html",), (), ["index.html", "drafts/x.html", "a/drafts/y.html"]),
        ((), ("drafts/",), ["index.html", "css/a.css", "css/a.map"]),
        ((), ("/drafts/",), ["index.html", "css/a.css", "css/a.map", "a/drafts/y.html"]),
        (("css/", "index.html"), ("*.map",), ["index.html", "css/a.css"]),
        (("nothing",), (), []),
    ],
)
def test_what_is_included_less_what_is_excluded(
    include: tuple[str, ...], exclude: tuple[str, ...], left: list[str]
) -> None:
    assert selected(include, exclude) == left


@cases("pattern", ["", " ", "!*.css", "#*", "./a", "../a", "a\\"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        check_pattern(pattern, "exclude")
