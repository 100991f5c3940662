"""The lock file pins what pyproject.toml asks for, and what that needs: each by digest; pip installs that."""

import json
import re
import tomllib
from functools import cache
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement

from docs import materials
from tests.support.places import REPOSITORY

LOCK = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8")
PINS = materials.read_pins(LOCK)
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@cache
def pinned() -> dict[str, Requirement]:
    """Return what the lock file has for this machine, by name."""
    return {materials.key(each.name): each for each in map(materials.parse, PINS) if materials.is_for_here(each)}


def needed(requirements: list[str]) -> set[str]:
    """Return the names of what has to be installed, as the packages that are installed here tell.

    A package is not asked if its version here is another than the pinned one: a later one may need something else.
    """
    names: set[str] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        each = waiting.pop()
        name = materials.key(each.name)
        if name not in names and (each.marker is None or each.marker.evaluate({"extra": ""})):
            names.add(name)
            if name in pinned() and pinned()[name].specifier.contains(version(name), prereleases=True):
                waiting += [Requirement(further) for further in requires(name) or ()]
    return names


def test_it_pins_all_that_has_to_be_installed() -> None:
    assert needed(PROJECT["dependencies"]) <= set(pinned())


def test_each_pin_is_a_version_that_is_asked_for() -> None:
    asked = {materials.key(each.name): each.specifier for each in map(Requirement, PROJECT["dependencies"])}
    versions = {name: next(iter(each.specifier)) for name, each in pinned().items()}
    assert [name for name, wanted in asked.items() if not wanted.contains(versions[name].version)] == []
    assert {each.operator for each in versions.values()} == {"=="}


def test_each_pin_has_digests() -> None:
    assert [pin for pin in PINS if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", pin)] == []


def test_what_is_installed_is_compared_with_the_lock_the_licences_and_the_bill(tmp_path: Path) -> None:
    for name, version_, licence in (
        ("a-b", "1", "License-Expression: MIT"),
        ("c", "2", "Classifier: License :: OSI Approved :: ISC License (ISCL)\nLicense: ISC License"),
        ("d", "3", "License: BSD"),
    ):
        folder = tmp_path / f"{name.replace('-', '_')}-{version_}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version_}\n{licence}\n")
    lock = "# made\n" + "".join(
        f"{pin} \\\n    --hash=sha256:0\n" for pin in ("a-b==1", "c==1", "w==1 ; os_name == 'x'")
    )
    page = "| licence | packages |\n| --- | --- |\n| MIT | a-b, c |\n| BSD | d |\n"
    bill = json.dumps({"components": [{"name": "A_b", "version": "1"}, {"name": "w", "version": "1"}]})
    assert materials.find_differences(tmp_path, lock, page, bill) == [
        "requirements.txt: c is 2, not 1",
        "requirements.txt: d is 3, not named",
        "docs/packages.md: c is ISC, not MIT",
        "the bill of materials: c is 2, not named",
        "the bill of materials: d is 3, not named",
    ]
