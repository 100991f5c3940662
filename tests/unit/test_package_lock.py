"""The lock file pins what pyproject.toml asks for, and what that needs: each by digest."""

import re
import tomllib
from functools import cache
from importlib.metadata import requires, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import REPOSITORY

LOCK = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8")
# A pin begins a line; its digests are on the lines below it.
PINS = [part.split("    # via")[0] for part in re.split(r"\n(?=\w)", LOCK)[1:]]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@cache
def pinned() -> dict[str, Requirement]:
    """Return what the lock file has for this machine, by name."""
    found = [Requirement(pin.partition(" \\\n")[0]) for pin in PINS]
    return {canonicalize_name(each.name): each for each in found if each.marker is None or each.marker.evaluate()}


def needed(requirements: list[str]) -> set[str]:
    """Return the names of what has to be installed, as the packages that are installed here tell.

    A package is not asked if its version here is another than the pinned one: a later one may need something else.
    """
    names: set[str] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        if name not in names and (each.marker is None or each.marker.evaluate({"extra": ""})):
            names.add(name)
            if name in pinned() and pinned()[name].specifier.contains(version(name), prereleases=True):
                waiting += [Requirement(further) for further in requires(name) or ()]
    return names


def test_it_pins_all_that_has_to_be_installed() -> None:
    assert needed(PROJECT["dependencies"]) <= set(pinned())


def test_each_pin_is_a_version_that_is_asked_for() -> None:
    asked = {canonicalize_name(each.name): each.specifier for each in map(Requirement, PROJECT["dependencies"])}
    versions = {name: next(iter(each.specifier)) for name, each in pinned().items()}
    assert [name for name, wanted in asked.items() if not wanted.contains(versions[name].version)] == []
    assert {each.operator for each in versions.values()} == {"=="}


def test_each_pin_has_digests() -> None:
    assert [pin for pin in PINS if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", pin)] == []
