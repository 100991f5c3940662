"""Compare what is installed in a folder with what this repository says of it; exit status 1 if they differ.

    python -m docs.materials FOLDER [SBOM.json]

FOLDER is what ``pip install --requirement requirements.txt --target FOLDER`` made. What is in it has to be what the
lock pins for this machine, with the licences that the table in docs/packages.md names. A bill of materials in CycloneDX
has to have all that, too; what else it has is for other systems, as the lock says.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.links import ROOT

LOCK = ROOT / "requirements.txt"
_LICENCES = ROOT / "docs" / "packages.md"
# What packages without a License-Expression have instead.
_OF_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_ROW = re.compile(r"^\| (?P<licence>[A-Z][\w.-]+(?: OR [\w.-]+)?) \| (?P<names>[a-z][\w., -]*) \|$", re.MULTILINE)


def read_pins(lock: str) -> list[str]:
    """Return the pins of a lock file, each with its digests: a pin begins a line, and its digests are below it."""
    return [part.split("    # via")[0] for part in re.split(r"\n(?=\w)", lock)[1:]]


def parse(pin: str) -> Requirement:
    """Return which version of what a pin asks for."""
    return Requirement(pin.partition(" \\\n")[0])


def key(name: str) -> str:
    """Return the name of a package in its normal form."""
    return canonicalize_name(name)


def is_for_here(pin: Requirement) -> bool:
    """Return whether a pin is for this system and this Python."""
    return pin.marker is None or pin.marker.evaluate()


def find_licence(package: Distribution) -> str:
    """Return the licence that a package names, as SPDX writes it where the package tells so much."""
    said = package.metadata
    names = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier") or ()]
    known = [
        *(said.get_all("License-Expression") or ()),
        *(_OF_CLASSIFIER[name] for name in names if name in _OF_CLASSIFIER),
        *(said.get_all("License") or ()),
    ]
    return known[0] if known else "unknown"


def read_licences(page: str) -> dict[str, str]:
    """Return the licence of each package that a table of the page names."""
    rows = _ROW.finditer(page)
    return {key(name): row["licence"] for row in rows for name in row["names"].split(", ")}


def compare(what: str, said: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each package of which something else is said than what is there."""
    for name in sorted({*said, *there}):
        if said.get(name) != there.get(name):
            yield f"{what}: {name} is {there.get(name, 'not installed')}, not {said.get(name, 'named')}"


def find_differences(folder: Path, lock: str, page: str, bill: str | None) -> list[str]:
    """Return a line for each package of which the lock, the page or a bill of materials does not say what is there."""
    found = {key(each.name): each for each in distributions(path=[str(folder)])}
    versions = {name: each.version for name, each in found.items()}
    pins = [parse(pin) for pin in read_pins(lock)]
    pinned = {key(pin.name): next(iter(pin.specifier)).version for pin in pins if is_for_here(pin)}
    elsewhere = {key(pin.name) for pin in pins} - set(pinned)
    licences = {name: find_licence(each) for name, each in found.items()}
    differences = [
        *compare("requirements.txt", pinned, versions),
        *compare("docs/packages.md", read_licences(page), licences),
    ]
    if bill is not None:
        parts = {key(each["name"]): each["version"] for each in json.loads(bill)["components"]}
        said = {name: version for name, version in parts.items() if name not in elsewhere}
        differences += compare("the bill of materials", said, versions)
    return differences


def main(folder: str, *bills: str) -> int:
    """Print the differences."""
    texts = [each.read_text(encoding="utf-8") for each in (LOCK, _LICENCES, *map(Path, bills))]
    differences = find_differences(Path(folder), texts[0], texts[1], texts[2] if bills else None)
    sys.stdout.write("".join(f"{line}\n" for line in differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
