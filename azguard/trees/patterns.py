"""Which names of a tree are meant: patterns as in ``.gitignore``, on names relative to its root."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from azguard.errors import UsageError

if TYPE_CHECKING:
    from pathspec import PathSpec

# A negation, a comment, and what no name below the folder begins with.
_MEANS_NOTHING = ("!", "#", "./", "../")


@dataclass(frozen=True)
class Patterns:
    """What is included, all if nothing is named, and what is excluded from that."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def check(self) -> None:
        """Refuse what is no pattern.

        Raises:
            UsageError: one is empty, malformed, or can mean no file.
        """
        for argument, patterns in (("include", self.include), ("exclude", self.exclude)):
            for each in patterns:
                if not _is_pattern(each):
                    raise UsageError(
                        f"{argument}: {each!r} is no pattern", argument=argument, reason="tree_pattern_malformed"
                    )

    def selects(self, name: str) -> bool:
        """Return whether a name is meant, relative to the root of the tree."""
        if not self.include and not self.exclude:
            return True
        included = not self.include or self._included.match_file(name)
        return included and not self._excluded.match_file(name)

    @cached_property
    def _included(self) -> "PathSpec[Any]":
        return _parse(self.include)

    @cached_property
    def _excluded(self) -> "PathSpec[Any]":
        return _parse(self.exclude)


def _is_pattern(text: str) -> bool:
    if not text.strip() or text.startswith(_MEANS_NOTHING):
        return False
    try:
        _parse([text])
    except ValueError:
        return False
    return True


def _parse(patterns: Sequence[str]) -> "PathSpec[Any]":
    from pathspec import PathSpec

    return PathSpec.from_lines("gitignore", patterns)
