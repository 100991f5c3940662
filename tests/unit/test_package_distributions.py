"""What distributions build azguard from says what pyproject.toml says."""

import hashlib
import re
from email import message_from_string
from pathlib import Path

import pytest

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


def test_the_formula_has_the_sdists_that_the_lock_pins(tmp_path: Path) -> None:
    row = '[[packages]]\nname = "{0}"\nversion = "1"\nsdist = {{ url = "https://example.invalid/{0}", {1} }}\n'
    packages = "".join(row.format(name, 'hashes = { sha256 = "00" }') for name in ("a-b", "certifi"))
    lock = "# made\na-b==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n"
    formula = distributions.render(tmp_path / "none", distributions.render_resources(packages, lock))["azguard.rb"]
    found = re.findall(r'^  resource "(.*)" do\n    url "(.*)"\n    sha256 "(.*)"\n  end$', formula, re.MULTILINE)
    assert found == [("a-b", "https://example.invalid/a-b", "00")]
    with pytest.raises(ValueError, match="a-b 1"):
        distributions.render_resources(packages, lock.replace(":00", ":02"))
