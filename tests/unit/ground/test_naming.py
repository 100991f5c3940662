"""Names of files in a share."""

import pytest

from azguard import naming
from azguard.errors import UsageError
from tests.support.cases import cases

LONGEST = "/".join(["d"] * 251)


@cases("path", "a/b.c", "a.", "a ", "con", "ß/é", LONGEST)
def test_a_path_of_a_share_may_be(path: str) -> None:
    naming.check("file", "file", ("share", path))


@cases("path", "a:b", "a\x81", "a//b", "a/../b", "\udc80", f"{LONGEST}/d", "a" * 256)
def test_a_path_of_a_share_is_refused(path: str) -> None:
    with pytest.raises(UsageError):
        naming.check("file", "file", ("share", path))


@cases("path", "a.", "a /b", "x/CoN", "lpt9")
def test_a_new_path_that_windows_could_not_open_is_refused(path: str) -> None:
    with pytest.raises(UsageError):
        naming.check_new_path(path)


@cases(
    ("one", "other", "same"),
    ("Readme", "README", True),
    ("é/x", "É/X", True),
    ("ß", "SS", False),
    ("a", "b", False),
    ("é", "e\u0301", False),
)
def test_paths_that_differ_in_the_case_of_their_letters_name_one_file(one: str, other: str, *, same: bool) -> None:
    assert (naming.fold_path(one) == naming.fold_path(other)) is same
