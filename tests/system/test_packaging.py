"""What is built holds azguard and nothing else, and runs where there is no checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

import pytest

from azguard import __version__
from tests.support.places import REPOSITORY

# Where the modules of the wheel come from; the two links in azguard/ lead to the last two again.
SOURCES = {"azguard": "azguard", "cli": "azguard/cli", "commands": "azguard/commands"}
NOT_COPIED = (".*", "build", "dist", "*.egg-info", "__pycache__", "node_modules")


@dataclass(frozen=True)
class Built:
    """A copy of the checkout, and what was built from it: an sdist, the wheel of that, and a wheel directly."""

    checkout: Path
    sdist: Path
    wheel: Path
    direct_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("packaging")
    checkout = folder / "checkout"
    shutil.copytree(REPOSITORY, checkout, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    python("-m", "build", "--outdir", str(folder / "both"), str(checkout))
    python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "direct"), str(checkout))
    (sdist,) = (folder / "both").glob("*.tar.gz")
    (wheel,) = (folder / "both").glob("*.whl")
    (direct_wheel,) = (folder / "direct").glob("*.whl")
    return Built(checkout, sdist, wheel, direct_wheel)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that borrows the dependencies of ours, but not our azguard."""
    folder = tmp_path_factory.mktemp("venv")
    # Our pip installs into it: to give it one of its own takes longer than all else.
    python("-m", "venv", "--without-pip", str(folder))
    (site_packages,) = folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return folder


def python(*words: str) -> None:
    run(Path.cwd(), sys.executable, *words)


def run(cwd: Path, *words: str) -> str:
    # What builds runs once: it is not worth compiling.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "PYTHON"))}
    environ = {**kept, "PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
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


def test_a_wheel_holds_every_module_once_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    assert sorted(name for name in names if ".dist-info/" not in name and ".data/" not in name) == modules()


def test_a_wheel_installs_every_manual_page_where_man_looks(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        data = [name for name in wheel.namelist() if ".data/" in name]
    pages = (REPOSITORY / "docs" / "man").iterdir()
    places = [f"azguard-{__version__}.data/data/share/man/man{page.suffix[1:]}/{page.name}" for page in pages]
    assert sorted(data) == sorted(places)


def test_a_wheel_built_directly_holds_the_same(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel, zipfile.ZipFile(built.direct_wheel) as direct:
        assert sorted(direct.namelist()) == sorted(wheel.namelist())


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


# A wheel of a checkout is what ``pip install CHECKOUT`` installs.
@pytest.mark.parametrize("how", ["wheel", "wheel of a checkout", "editable checkout"])
def test_it_runs_where_there_is_no_checkout(how: str, built: Built, venv: Path, tmp_path: Path) -> None:
    what = {
        "wheel": [str(built.wheel)],
        "wheel of a checkout": [str(built.direct_wheel)],
        "editable checkout": ["-e", str(built.checkout)],
    }[how]
    inside, script = str(venv / "bin" / "python"), str(venv / "bin" / "azguard")
    python("-m", "pip", "--python", inside, "install", "--quiet", "--force-reinstall", "--no-deps", *what)
    where = "import azguard.cli.app, azguard.commands.blob as blob; print(azguard.__file__, blob.__file__)"
    home = built.checkout if how == "editable checkout" else venv
    assert [Path(path).is_relative_to(home) for path in run(tmp_path, inside, "-c", where).split()] == [True, True]
    assert run(tmp_path, script, "--version") == f"azguard {__version__}\n"
    assert run(tmp_path, inside, "-m", "azguard", "--help") == run(tmp_path, script, "--help")
    assert run(tmp_path, script, "blob", "--help").startswith("Usage: azguard blob ")
    assert run(tmp_path, script, "help", "paths").startswith("How --set, --unset and --increment name a value.\n")
