"""What a command reads: a file, or stdin."""

from pathlib import Path

import pytest

from azguard.cli import inputs, values
from azguard.errors import UsageError


@pytest.mark.parametrize(
    ("takes_folders", "hint"), [(True, "add --recursive to write all files below it"), (False, "name a file")]
)
def test_a_folder_is_refused_with_an_option_that_the_command_has(
    tmp_path: Path, takes_folders: bool, hint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        inputs.source(str(tmp_path), takes_folders=takes_folders)
    assert refused.value.hint == hint


@pytest.mark.parametrize(("text", "hint"), [("0", "--wait 1s"), ("8d", "--wait 604800s"), ("1.5s", "--wait 2s")])
def test_the_hint_at_a_number_of_seconds_is_near_what_was_typed(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        values.seconds(text, "--wait", 1, 604800)
    assert refused.value.hint == hint


def test_a_file_whose_name_is_too_long_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    assert [inputs.is_writable(tmp_path / name) for name in ("x" * 300, "a/b", "new", "")] == [
        False,
        False,
        True,
        False,
    ]
