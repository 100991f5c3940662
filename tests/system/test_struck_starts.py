"""A signal in the moment in which a process is started: it must not be left running."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from azguard.demo import race
from azguard.emulators import azurite_install, azurite_process, files_process

started: list["subprocess.Popen[bytes]"] = []


class Struck(subprocess.Popen[bytes]):
    """A process that is there when the signal comes, and not yet known to who starts it."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        started.append(self)
        signal.raise_signal(signal.SIGINT)


def start_azurite(folder: Path) -> None:
    plan = azurite_process.LaunchPlan(("sh", "-c", "sleep 1000"), os.environ, {}, None, 60.0)
    with tempfile.TemporaryFile() as log:
        azurite_process.launch(plan, log)


def install_azurite(folder: Path) -> None:
    azurite_install._run_npm(("sh", "-c", "sleep 1000"), folder, os.environ, print)


def start_files(folder: Path) -> None:
    with tempfile.TemporaryFile() as log:
        files_process.launch(os.environ, 0, None, str(folder), log, 60.0)


def start_writers(folder: Path) -> None:
    with race._start_writers(2, folder, os.environ):
        pass


@pytest.mark.parametrize(
    ("module", "start"),
    [
        pytest.param(azurite_process, start_azurite, id="azurite"),
        pytest.param(subprocess, install_azurite, id="npm"),
        pytest.param(files_process, start_files, id="files"),
        pytest.param(race, start_writers, id="demo"),
    ],
)
def test_a_process_ends_if_a_signal_comes_while_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, start: Any
) -> None:
    started.clear()
    monkeypatch.setattr(module, "Popen", Struck)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path)
    assert [each.wait(60) for each in started] == [-signal.SIGKILL]
