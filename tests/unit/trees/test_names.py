"""Names on the disk, and the patterns that mean some of them."""

from datetime import UTC, datetime

import pytest

from azguard.errors import ConfigError, UsageError
from azguard.resources.tree_store import ListedItem
from azguard.trees.names import NameIndex, Patterns, check_pattern
from tests.support.cases import cases

MOMENT = datetime(2026, 11, 21, 10, tzinfo=UTC)


def index(*names: str) -> NameIndex:
    made = NameIndex()
    made.add_all(ListedItem(name, f'"{name}"', MOMENT, 3, "bWQ1", "PageBlob") for name in names)
    return made


def test_a_name_is_found_with_all_that_was_listed_of_it() -> None:
    assert index("a", "b").find("b") == ListedItem("b", '"b"', MOMENT, 3, "bWQ1", "PageBlob")
    assert index("a").find("nothing") is None


def test_what_is_not_marked_is_left_in_order() -> None:
    found = index("b", "a", "c")
    found.mark("b")
    found.mark("nothing")
    assert [each.name for each in found.list_unmarked()] == ["a", "c"]


def test_a_folder_marks_all_below_it_and_nothing_beside() -> None:
    found = index("a", "a/x", "a/y/z", "a.b", "a-b", "ab", "a0")
    found.mark("a", with_all_below=True)
    assert [each.name for each in found.list_unmarked()] == ["a-b", "a.b", "a0", "ab"]


def test_names_that_are_taken_for_one_are_found_and_marked_by_any_of_them() -> None:
    found = NameIndex(str.upper)
    found.add_all(ListedItem(name, None, None, 3, None) for name in ("Readme", "Dir/x", "other"))
    found.mark("README")
    found.mark("dIR", with_all_below=True)
    assert [each.name for each in found.list_unmarked()] == ["other"]
    assert (found.find("readME"), found.is_marked("readme"), found.is_marked("other")) == (
        ListedItem("Readme", None, None, 3, None), True, False,
    )  # fmt: skip


def test_a_full_disk_for_temporary_files_is_no_fault_of_azguard() -> None:
    found = NameIndex()
    found._database.execute("PRAGMA max_page_count = 3")
    with pytest.raises(ConfigError, match="database or disk is full") as full:
        found.add_all(ListedItem(str(number), None, None, 3, "x" * 1000) for number in range(20))
    assert full.value.reason == "temporary_folder_fails"


NAMES = ("index.html", "css/a.css", "css/a.map", "drafts/x.html", "a/drafts/y.html")


def selected(include: tuple[str, ...], exclude: tuple[str, ...]) -> list[str]:
    found = Patterns(include, exclude)
    return [name for name in NAMES if found.selects(name)]


@cases(
    ("include", "exclude", "left"),
    ((), (), list(NAMES)),
    (("*.html",), (), ["index.html", "drafts/x.html", "a/drafts/y.html"]),
    ((), ("drafts/",), ["index.html", "css/a.css", "css/a.map"]),
    ((), ("/drafts/",), ["index.html", "css/a.css", "css/a.map", "a/drafts/y.html"]),
    (("css/", "index.html"), ("*.map",), ["index.html", "css/a.css"]),
    (("nothing",), (), []),
)
def test_what_is_included_is_not_excluded(include: tuple[str, ...], exclude: tuple[str, ...], left: list[str]) -> None:
    assert selected(include, exclude) == left


@cases("pattern", "", " ", "!*.css", "#*", "./a", "../a", "a\\")
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        check_pattern(pattern, "exclude")
