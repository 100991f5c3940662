"""Collect the fragments of changelog.d/ into CHANGELOG.md.

python -m docs.changelog                   show what the next release would say
python -m docs.changelog VERSION DATE      write it under that version, and remove the fragments;
                                           the same version may be written again, until it is tagged
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
FRAGMENTS = ROOT / "changelog.d"
CHANGELOG = ROOT / "CHANGELOG.md"
#: The sections of a version, in the order of Keep a Changelog.
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
_UNRELEASED = "## Unreleased\n"


def fragments() -> list[Path]:
    """Return the fragments, ordered by name."""
    return sorted(path for path in FRAGMENTS.glob("*.md") if path.name != "README.md")


def kind_of(fragment: Path) -> str:
    """Return the kind of a fragment.

    Raises:
        ValueError: its name has none.
    """
    found = re.fullmatch(rf".+\.({'|'.join(KINDS)})\.md", fragment.name)
    if found is None:
        raise ValueError(f"{fragment.name}: name it NAME.KIND.md, where KIND is {', '.join(KINDS)}")
    return found[1]


def merge(changelog: str, entries: Iterable[tuple[str, str]]) -> str:
    """Return a changelog whose unreleased sections end with these entries, each a kind and its text."""
    before, mark, rest = changelog.partition(_UNRELEASED)
    if not mark:
        raise ValueError(f"the changelog has no {_UNRELEASED.strip()!r}")
    end = re.search(r"^## ", rest, re.MULTILINE)
    body, released = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    sections = _split(body)
    for kind, text in entries:
        entry = "- " + text.strip().replace("\n", "\n  ")
        sections[kind] = f"{sections.get(kind, '')}{entry}\n"
    written = "".join(f"\n### {kind.capitalize()}\n\n{sections[kind]}" for kind in KINDS if kind in sections)
    return f"{before}{mark}{written}\n{released}".rstrip() + "\n"


def reopen(changelog: str, version: str) -> str:
    """Return a changelog in which what was written as of this version, the last one, is unreleased again.

    Raises:
        ValueError: more was written since.
    """
    opened = re.sub(rf"{_UNRELEASED}\n## {re.escape(version)} - .+\n", _UNRELEASED, changelog)
    if f"\n## {version} - " in opened:
        raise ValueError(f"the changelog has {version}, and something unreleased above it: choose another version")
    return opened


def release(changelog: str, version: str, date: str) -> str:
    """Return a changelog in which what was unreleased is of this version."""
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} - {date}\n", 1)


def _split(body: str) -> dict[str, str]:
    parts = re.split(r"^### (\w+)\n", body, flags=re.MULTILINE)[1:]
    found: Mapping[str, str] = dict(zip(parts[::2], parts[1::2], strict=True))
    return {kind.lower(): f"{text.strip()}\n" for kind, text in found.items()}


def main(words: list[str]) -> None:
    """Show the fragments, or write them into the changelog of a release."""
    entries = [(kind_of(path), path.read_text(encoding="utf-8")) for path in fragments()]
    if not words:
        sys.stdout.write(merge(_UNRELEASED, entries))
        return
    version, date = words
    merged = merge(reopen(CHANGELOG.read_text(encoding="utf-8"), version), entries)
    CHANGELOG.write_text(release(merged, version, date), encoding="utf-8")
    for path in fragments():
        path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
