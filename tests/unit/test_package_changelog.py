"""Fragments become sections of the changelog."""

import pytest

from docs import changelog

BEFORE = (
    "# Changelog\n\n## Unreleased\n\n### Added\n\n- One.\n"
    "\n### Security\n\n- Safe.\n\n## 0.1.0 - 2026-01-02\n\n- Old.\n"
)
AFTER = (
    "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n### Added\n\n- One.\n- Two\n  lines.\n"
    "\n### Fixed\n\n- Three.\n\n### Security\n\n- Safe.\n\n## 0.1.0 - 2026-01-02\n\n- Old.\n"
)


def test_fragments_are_merged_into_the_sections_of_a_release() -> None:
    merged = changelog.merge(BEFORE, [("fixed", "Three.\n"), ("added", "Two\nlines.\n")])
    assert changelog.release(merged, "0.2.0", "2026-12-01") == AFTER


def test_a_version_that_was_written_before_its_tag_takes_more_and_no_other_does() -> None:
    reopened = changelog.reopen(changelog.merge(AFTER, []), "0.2.0")
    assert changelog.release(changelog.merge(reopened, []), "0.2.0", "2026-12-01") == AFTER
    with pytest.raises(ValueError, match=r"has 0\.1\.0"):
        changelog.reopen(AFTER, "0.1.0")


def test_each_fragment_has_a_kind_and_the_changelog_takes_them() -> None:
    entries = [(changelog.kind_of(path), path.read_text(encoding="utf-8")) for path in changelog.fragments()]
    now = changelog.CHANGELOG.read_text(encoding="utf-8")
    assert all(text.strip() in changelog.merge(now, entries).replace("\n  ", "\n") for _, text in entries)
