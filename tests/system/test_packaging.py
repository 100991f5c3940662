"""What is built holds azguard and nothing else, and runs where there is no checkout."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path
from typing import Literal

import pytest
from build import ProjectBuilder

from azguard import __version__
from tests.support.places import REPOSITORY

# Where the modules of the wheel come from; the two links in azguard/ lead to the last two again.
SOURCES = {"azguard": "azguard", "cli": "azguard/cli", "commands": "azguard/commands"}
# When the commit was made, as the builds are told.
COMMITTED = "1700000000"
HIDDEN = (".ci", ".github", ".gitignore", ".pre-commit-config.yaml")
NOT_COPIED = ("build", "dist", "*.egg-info", "__pycache__", "node_modules")


@dataclass(frozen=True)
class Built:
    """A copy of the checkout, and what was built from it: an sdist, the wheel of that, and both once more elsewhere."""

    checkout: Path
    unpacked: Path
    sdist: Path
    wheel: Path
    #: Built in another folder, by a user with another umask, of files with other times.
    second_sdist: Path
    #: What ``pip install CHECKOUT`` installs.
    direct_wheel: Path
    #: What ``pip install -e`` installs.
    editable_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("packaging")
    checkout = folder / "checkout"
    shutil.copytree(REPOSITORY, checkout, symlinks=True, ignore=not_copied)
    first, second = folder / "first", folder / "second"
    sdist = build("sdist", checkout, first, SOURCE_DATE_EPOCH=COMMITTED)
    shutil.unpack_archive(sdist, folder)
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    # Nothing but the files tells of the commit.
    wheel = build("wheel", unpacked, first)
    elsewhere = checkout.rename(folder / "elsewhere")
    for path in elsewhere.rglob("*"):
        if path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (0, 10**9))
    umask = os.umask(0o077)
    try:
        second_sdist, direct = (
            build(kind, elsewhere, second, SOURCE_DATE_EPOCH=COMMITTED) for kind in ("sdist", "wheel")
        )
    finally:
        os.umask(umask)
    editable = build("editable", elsewhere, folder / "editable")
    return Built(elsewhere, unpacked, sdist, wheel, second_sdist, direct, editable)


def not_copied(folder: str, names: list[str]) -> set[str]:
    """Return what no commit has: caches, the virtual environment, what was built."""
    hidden = {name for name in names if name.startswith(".") and name not in HIDDEN}
    return hidden | shutil.ignore_patterns(*NOT_COPIED)(folder, names)


def build(kind: Literal["sdist", "wheel", "editable"], source: Path, into: Path, **environ: str) -> Path:
    """Build with the setuptools that is installed here: to install one apart takes longer than to build."""

    def quiet(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        run(Path(cwd or "."), *cmd, **{**(extra_environ or {}), **environ})

    # An editable installation is warned of in any case.
    with warnings.catch_warnings(action="default" if kind != "editable" else "ignore"):
        return Path(ProjectBuilder(source, runner=quiet).build(kind, into))


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that borrows the dependencies of ours and our pip, but not our azguard."""
    folder = tmp_path_factory.mktemp("venv")
    run(folder, sys.executable, "-m", "venv", "--without-pip", str(folder))
    (site_packages,) = folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return folder


def run(cwd: Path, *words: str, **environ: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "PYTHON"))}
    answer = subprocess.run(
        words,
        cwd=cwd,
        env={**kept, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
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


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_source(path: Path) -> bool:
    """Return whether a file of the copy was in the checkout, and is no file behind a link to a folder."""
    return path.is_file() and not {"build", "azguard.egg-info", "__pycache__"} & set(path.parts)


def test_a_wheel_holds_every_module_once_and_nothing_else(built: Built) -> None:
    names = [name for name, _ in contents(built.wheel)]
    assert [name for name in names if ".dist-info/" not in name and ".data/" not in name] == modules()


def test_a_wheel_installs_manual_pages_and_completions_where_man_and_shells_look(built: Built) -> None:
    pages = [f"man/man{page.suffix[1:]}/{page.name}" for page in (REPOSITORY / "docs" / "man").iterdir()]
    scripts = ["bash-completion/completions/azguard", "fish/vendor_completions.d/azguard.fish"]
    places = [*pages, *scripts, "zsh/site-functions/_azguard"]
    data = [name for name, _ in contents(built.wheel) if ".data/" in name]
    assert data == sorted(f"azguard-{__version__}.data/data/share/{place}" for place in places)


def test_one_commit_gives_the_same_bytes_by_any_user_anywhere_at_any_time(built: Built) -> None:
    assert (digest(built.second_sdist), digest(built.direct_wheel)) == (digest(built.sdist), digest(built.wheel))


def test_an_index_takes_the_sdist_and_the_wheel(built: Built) -> None:
    run(built.unpacked, sys.executable, "-m", "twine", "check", "--strict", str(built.sdist), str(built.wheel))
    run(built.unpacked, sys.executable, "-m", "check_wheel_contents", str(built.wheel))


def test_an_sdist_holds_the_whole_checkout_and_no_link(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        members = {member.name.partition("/")[2]: member.isfile() for member in sdist.getmembers()}
    made = {name for name in members if name.startswith("azguard.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    kept = {str(path.relative_to(built.checkout)) for path in built.checkout.rglob("*") if is_source(path)}
    assert (set(members) - made, set(members.values())) == (kept - made, {True})


@pytest.mark.parametrize("of_git", [False, True])
def test_a_checkout_without_links_runs(of_git: bool, built: Built) -> None:
    if of_git:  # with core.symlinks=false
        for name in ("cli", "commands"):
            (built.unpacked / "azguard" / name).write_text(f"../{name}", encoding="utf-8")
    where = "import azguard.cli.app, azguard.commands.about as about; print(azguard.cli.__file__, about.__file__)"
    expected = [built.unpacked / "cli" / "__init__.py", built.unpacked / "commands" / "about.py"]
    assert run(built.unpacked, sys.executable, "-c", where).split() == [str(path) for path in expected]
    assert run(built.unpacked, sys.executable, "-m", "azguard", "--version") == f"azguard {__version__}\n"


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


def test_the_image_starts_what_the_wheel_has(built: Built, tmp_path: Path) -> None:
    recipe = REPOSITORY / "examples" / "image"
    said = dict(
        line.split(" ", 1) for line in (recipe / "Containerfile").read_text(encoding="utf-8").splitlines() if line
    )
    _, *words = json.loads(said["ENTRYPOINT"])
    environ = dict(each.split("=") for each in said["ENV"].split())
    place = environ.pop("PYTHONPATH")
    assert f" --target {place} ." in (recipe / "Containerfile").read_text(encoding="utf-8")
    shutil.unpack_archive(built.wheel, tmp_path / "lib", "zip")
    answer = run(tmp_path, sys.executable, *words, "--version", **environ, PYTHONPATH=str(tmp_path / "lib"))
    assert (answer, said["USER"]) == (f"azguard {__version__}\n", "65532:65532")
    run(tmp_path, "bash", "-n", str(recipe / "try-without-engine.sh"))
