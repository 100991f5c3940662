"""What a command reads: a file, or stdin."""

from pathlib import Path

import pytest

from azguard.cli import inputs
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
