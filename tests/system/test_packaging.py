"""What is built holds azguard and nothing else, and runs where there is no checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

import pytest
from build import ProjectBuilder
from build.env import DefaultIsolatedEnv
from pyproject_hooks import quiet_subprocess_runner

from azguard import __version__
from tests.support.places import REPOSITORY

# Where the modules of the wheel come from; the two links in azguard/ lead to the last two again.
SOURCES = {"azguard": "azguard", "cli": "azguard/cli", "commands": "azguard/commands"}
NOT_COPIED = (".*", "build", "dist", "*.egg-info", "__pycache__", "node_modules")


@dataclass(frozen=True)
class Built:
    """A copy of the checkout, and what was built from it: an sdist, the wheel of that, and two wheels directly."""

    checkout: Path
    sdist: Path
    wheel: Path
    direct_wheel: Path
    #: What ``pip install -e`` installs.
    editable_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("packaging")
    checkout = folder / "checkout"
    shutil.copytree(REPOSITORY, checkout, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    # All is built where nothing is installed but what pyproject.toml says that building requires.
    quiet = warnings.catch_warnings(action="ignore")
    with quiet, pytest.MonkeyPatch.context() as patch, DefaultIsolatedEnv() as apart:
        # What is installed here is used a few times: it is not worth compiling.
        patch.setenv("PIP_COMPILE", "0")
        of_checkout = ProjectBuilder.from_isolated_env(apart, checkout, runner=quiet_subprocess_runner)
        apart.install(of_checkout.build_system_requires)
        sdist = Path(of_checkout.build("sdist", folder / "sdist"))
        shutil.unpack_archive(sdist, folder)
        unpacked = folder / sdist.name.removesuffix(".tar.gz")
        of_sdist = ProjectBuilder.from_isolated_env(apart, unpacked, runner=quiet_subprocess_runner)
        wheel = Path(of_sdist.build("wheel", folder / "of sdist"))
        direct, editable = (Path(of_checkout.build(kind, folder / "direct")) for kind in ("wheel", "editable"))
    assert len({sdist, wheel, direct, editable}) == 4
    return Built(checkout, sdist, wheel, direct, editable)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that borrows the dependencies of ours and our pip, but not our azguard."""
    folder = tmp_path_factory.mktemp("venv")
    run(folder, sys.executable, "-m", "venv", "--without-pip", str(folder))
    (site_packages,) = folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return folder


def run(cwd: Path, *words: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "PYTHON"))}
    answer = subprocess.run(
        words, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def modules() -> list[str]:
    """Return what a wheel must hold, as the checkout has it."""
    found = []
    for source, package in SOURCES.items():
        for folder, _, files in os.walk(REPOSITORY / source):  # follows no links
            if "__pycache__" not in folder:
                inside = Path(package) / Path(folder).relative_to(REPOSITORY / source)
                found += [str(inside / file) for file in files]
    return sorted(found)


def contents(path: Path) -> list[tuple[str, int]]:
    """Return the files of a wheel by name, each with its checksum."""
    with zipfile.ZipFile(path) as wheel:
        return sorted((file.filename, file.CRC) for file in wheel.infolist())


def test_a_wheel_holds_every_module_once_and_nothing_else(built: Built) -> None:
    names = [name for name, _ in contents(built.wheel)]
    assert [name for name in names if ".dist-info/" not in name and ".data/" not in name] == modules()


def test_a_wheel_installs_every_manual_page_where_man_looks(built: Built) -> None:
    data = [name for name, _ in contents(built.wheel) if ".data/" in name]
    pages = (REPOSITORY / "docs" / "man").iterdir()
    places = [f"azguard-{__version__}.data/data/share/man/man{page.suffix[1:]}/{page.name}" for page in pages]
    assert data == sorted(places)


def test_a_wheel_built_directly_is_the_same(built: Built) -> None:
    # It is what ``pip install CHECKOUT`` installs.
    assert contents(built.direct_wheel) == contents(built.wheel)


def test_an_sdist_holds_what_building_needs_and_no_link(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        members = sdist.getmembers()
    assert {member.name.split("/")[1] for member in members if "/" in member.name} == {
        *SOURCES, "docs", "azguard.egg-info", "pyproject.toml", "setup.cfg", "MANIFEST.in", "LICENSE", "PKG-INFO",
        "README.md",
    }  # fmt: skip
    assert [member.name for member in members if not (member.isfile() or member.isdir())] == []


def test_the_metadata_names_the_licence_the_script_and_the_extras(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        info = f"azguard-{__version__}.dist-info"
        metadata = message_from_string(wheel.read(f"{info}/METADATA").decode())
        scripts = wheel.read(f"{info}/entry_points.txt").decode()
        licence = wheel.read(f"{info}/licenses/LICENSE").decode()
    assert {
        "name": metadata["Name"],
        "version": metadata["Version"],
        "licence": metadata["License-Expression"],
        "python": metadata["Requires-Python"],
        "extras": metadata.get_all("Provides-Extra"),
        "readme": str(metadata.get_payload()).strip(),
    } == {
        "name": "azguard",
        "version": __version__,
        "licence": "MIT",
        "python": ">=3.11",
        "extras": ["docs", "emulator", "smb", "test"],
        "readme": (REPOSITORY / "README.md").read_text(encoding="utf-8").strip(),
    }
    assert scripts == "[console_scripts]\nazguard = azguard.__main__:main\n"
    assert licence == (REPOSITORY / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("how", ["wheel", "editable checkout"])
def test_it_runs_where_there_is_no_checkout(how: str, built: Built, venv: Path, tmp_path: Path) -> None:
    is_wheel = how == "wheel"
    what, home = (built.wheel, venv) if is_wheel else (built.editable_wheel, built.checkout)
    inside, script = str(venv / "bin" / "python"), str(venv / "bin" / "azguard")
    install = [inside, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    run(tmp_path, *install, "--force-reinstall", str(what))
    where = "import azguard.cli.app, azguard.commands.blob.content as blob; print(azguard.__file__, blob.__file__)"
    assert [Path(path).is_relative_to(home) for path in run(tmp_path, inside, "-c", where).split()] == [True, True]
    assert run(tmp_path, script, "--version") == f"azguard {__version__}\n"
    assert run(tmp_path, inside, "-m", "azguard", "--help") == run(tmp_path, script, "--help")
    assert run(tmp_path, script, "blob", "--help").startswith("Usage: azguard blob ")
    assert run(tmp_path, script, "help", "paths").startswith("How --set, --unset and --increment name a value.\n")
