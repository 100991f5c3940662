"""Write what distributions build azguard from: a formula for Homebrew, and the folder debian/ of a source package.

    python -m docs.distributions FOLDER

All of it comes from pyproject.toml, the version and the lock; the digest is that of the sdist in dist/, if it is there.
The formula's resources are the sdists that the lock pins. Where they are says FOLDER/pylock.toml, which uv writes
(docs/releasing.md); without it the formula has none. Debian's helper finds what azguard needs in the wheel.
"""

import hashlib
import sys
import tomllib
from email.utils import formatdate
from pathlib import Path

from azguard import __version__
from docs import materials
from docs.links import ROOT, home

_FORMULA = """\
class Azguard < Formula
  include Language::Python::Virtualenv

  desc "{description}"
  homepage "{home}"
  url "{home}/releases/download/v{version}/azguard-{version}.tar.gz"
  sha256 "{digest}"
  license "{license}"

  depends_on "certifi" => :no_linkage
  depends_on "cryptography" => :no_linkage
  depends_on "libyaml"
  depends_on "pydantic" => :no_linkage
  depends_on "python@3.13"
{resources}
  def install
    virtualenv_install_with_resources
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/azguard --version")
    assert_match "no storage account", shell_output("#{{bin}}/azguard blob list site 2>&1", 78)
  end
end
"""
_RESOURCE = """
  resource "{name}" do
    url "{url}"
    sha256 "{digest}"
  end
"""
# What the formulas bring that azguard's depends on.
_OF_FORMULAS = {
    "annotated-types",
    "certifi",
    "cffi",
    "cryptography",
    "pycparser",
    "pydantic",
    "pydantic-core",
    "typing-inspection",
}
_CONTROL = """\
Source: azguard
Section: utils
Priority: optional
Maintainer: {maintainer}
Build-Depends: debhelper-compat (= 13), dh-sequence-python3, pybuild-plugin-pyproject, python3-all, \
python3-setuptools (>= 77.0.1)
Rules-Requires-Root: no
Standards-Version: 4.7.0
Homepage: {home}

Package: azguard
Architecture: all
Depends: ${{misc:Depends}}, ${{python3:Depends}}
Recommends: bash-completion
Description: {description}
 No write is unconditional, and a change of a blob, an entity or a file is
 applied exactly once, even when answers of the service get lost. Locks run
 one job at a time, and end it when the lock is lost.
"""
_RULES = """\
#!/usr/bin/make -f
export PYBUILD_DISABLE = test
%:
\tdh $@ --buildsystem=pybuild
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: azguard
Source: {home}

Files: *
Copyright: {copyright}
License: Expat
{licence_text}
"""
_CHANGELOG = """\
azguard ({version}-1) unstable; urgency=medium

  * New upstream release.

 -- {maintainer}  {date}
"""


def render_resources(packages: str, lock: str) -> str:
    """Return the formula's resources.

    Args:
        packages: which sdists there are, as uv writes it (PEP 751).
        lock: requirements.txt, which has their digests.

    Raises:
        ValueError: the lock does not pin one of them.
    """
    pins = {materials.key(materials.parse(pin).name): pin for pin in materials.read_pins(lock)}
    written = []
    for package in tomllib.loads(packages)["packages"]:
        name = materials.key(package["name"])
        if name in _OF_FORMULAS or (name in pins and not materials.is_for_here(materials.parse(pins[name]))):
            continue
        digest = package["sdist"]["hashes"]["sha256"]
        if f"sha256:{digest}" not in pins.get(name, ""):
            raise ValueError(f"requirements.txt does not pin {name} {package['version']} with {digest}")
        written.append(_RESOURCE.format(name=name, url=package["sdist"]["url"], digest=digest))
    return "".join(written)


def render(sdist: Path, resources: str = "") -> dict[str, str]:
    """Return the files by their path."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    _, _, notice, *lines = (ROOT / "LICENSE").read_text(encoding="utf-8").splitlines()
    facts = {
        "description": project["description"],
        "license": project["license"],
        "version": __version__,
        "home": home() or "https://example.invalid/azguard",
        "digest": hashlib.sha256(sdist.read_bytes()).hexdigest() if sdist.exists() else "0" * 64,
        "maintainer": "azguard maintainers <azguard@example.invalid>",
        "copyright": notice.removeprefix("Copyright (c) "),
        "licence_text": "\n".join(f" {line}" if line else " ." for line in lines[1:]),
        "date": formatdate(0),
        "resources": resources,
    }
    templates = {
        "azguard.rb": _FORMULA,
        "debian/control": _CONTROL,
        "debian/rules": _RULES,
        "debian/copyright": _COPYRIGHT,
        "debian/changelog": _CHANGELOG,
        "debian/source/format": "3.0 (quilt)\n",
    }
    # What make reads has no facts, and is no template.
    return {path: text if text is _RULES else text.format(**facts) for path, text in templates.items()}


def main(folder: Path) -> None:
    """Write the files."""
    packages = folder / "pylock.toml"
    resources = ""
    if packages.exists():
        resources = render_resources(packages.read_text(encoding="utf-8"), materials.LOCK.read_text(encoding="utf-8"))
    for name, text in render(ROOT / "dist" / f"azguard-{__version__}.tar.gz", resources).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "debian" / "rules").chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
