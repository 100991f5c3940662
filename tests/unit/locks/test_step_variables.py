"""The variables that are left for later steps, in the format of each reader."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from azguard.cli.output import stream
from azguard.errors import ConfigError
from azguard.locks.environment import StepVariables

_TWO_LINES = {"AZGUARD_LOCK": "blob:locks/a\nblob:locks/b c", "AZGUARD_FENCE": "7"}


def step_variables(file: str | None, environ: Mapping[str, str]) -> StepVariables:
    return StepVariables.of(file, environ, stream.write_command)


def test_github_reads_several_lines_between_marks_that_no_value_has(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("BEFORE=1\n")
    assert step_variables(None, {"GITHUB_ENV": str(file)}).write(_TWO_LINES) == ("GITHUB_ENV",)
    written = re.sub(r"azguard-[0-9a-f]{32}", "MARK", file.read_text())
    assert written == "BEFORE=1\nAZGUARD_LOCK<<MARK\nblob:locks/a\nblob:locks/b c\nMARK\nAZGUARD_FENCE=7\n"


def test_a_shell_reads_several_lines_in_quotes(tmp_path: Path) -> None:
    file = tmp_path / "env"
    assert step_variables(str(file), {}).write(_TWO_LINES) == (str(file),)
    assert file.read_text() == "AZGUARD_LOCK='blob:locks/a\nblob:locks/b c'\nAZGUARD_FENCE=7\n"


def test_azure_pipelines_reads_one_line_from_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    found = step_variables(None, {"TF_BUILD": "True"}).write({"AZGUARD_LOCK": "blob:locks/50%\nblob:locks/b"})
    assert (found, *capsys.readouterr()) == (
        ("azure-pipelines",), "", "##vso[task.setvariable variable=AZGUARD_LOCK]blob:locks/50%AZP25%0Ablob:locks/b\n"
    )  # fmt: skip


def test_the_file_of_github_is_written_once_in_its_format_whoever_names_it(tmp_path: Path) -> None:
    file, link = tmp_path / "env", tmp_path / "link"
    link.symlink_to(file)
    assert step_variables(str(link), {"GITHUB_ENV": str(file)}).write({"A": "b c"}) == ("GITHUB_ENV",)
    assert file.read_text() == "A=b c\n"


def test_without_a_reader_nothing_is_written() -> None:
    assert step_variables(None, {"GITHUB_ENV": ""}).write({"A": "1"}) == ()


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_held(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        step_variables(str(tmp_path / "no" / "file"), {})


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    step_variables(str(tmp_path / "env"), {}).write({"A": "1"})
    assert os.stat(tmp_path / "env").st_mode & 0o777 == 0o600
