"""What distributions build azguard from says what pyproject.toml says."""

import hashlib
from email import message_from_string
from pathlib import Path

from azguard import __version__
from docs import distributions


def test_the_formula_and_the_source_package_name_this_version(tmp_path: Path) -> None:
    sdist = tmp_path / "sdist"
    sdist.write_bytes(b"1")
    files = distributions.render(sdist)
    source, _, package = files["debian/control"].partition("\n\n")
    formula = dict(line.split(" ", 1) for line in map(str.strip, files["azguard.rb"].splitlines()) if " " in line)
    summary = "Concurrency-safe operations on Azure Storage from the command line"
    assert (
        message_from_string(source)["Source"],
        message_from_string(package)["Description"].splitlines()[0],
        files["debian/changelog"].splitlines()[0],
        (formula["desc"], formula["license"], formula["sha256"]),
    ) == (
        "azguard",
        summary,
        f"azguard ({__version__}-1) unstable; urgency=medium",
        (f'"{summary}"', '"MIT"', f'"{hashlib.sha256(b"1").hexdigest()}"'),
    )
