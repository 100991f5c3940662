"""The lines to type: each pair of options stands in one, together with at most four others that it goes with."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from azguard.cli.rules.engine import Rule
from azguard.errors import UsageError
from tests.pairs.described import Described, Typed

#: So many options stand in one line at the most.
WIDEST = 6
_TRIES = 12
# Pairs of options that all commands share are typed once: here, where every condition means something.
_SHARES_ALL = "blob put"


@dataclass(frozen=True)
class Line:
    """A line to type."""

    described: Described
    rows: tuple[Typed, ...]
    #: The rule that it breaks; None where the table allows it.
    broken: UsageError | None

    @property
    def words(self) -> list[str]:
        """Return the words of the line."""
        typed = [word for row in self.rows for word in row.words]
        tail = ["--", "true"] if self.described.runs_command else []
        return [*self.described.name.split(), *self.described.places, *typed, *tail]

    @property
    def is_checked(self) -> bool:
        """Return whether a function looks at one of its options, which needs more than the line."""
        names = _names(self.rows)
        if self.described.is_unguarded or any(row.group == "Conditions" for row in self.rows):
            return True
        return any(name in names for rule in self.described.rules if rule.kind == "checked" for name in rule.options)


def list_lines(described: Described, chance: random.Random) -> Iterator[Line]:
    """Yield the lines of a command: those that cover all pairs, and one for each pair that a rule refuses."""
    own, shared = described.own, described.shared
    pairs = [*combinations(own, 2), *((one, other) for one in own for other in shared)]
    if described.name == _SHARES_ALL:
        pairs += combinations(shared, 2)
    chance.shuffle(pairs)
    left = dict.fromkeys(pairs)
    yield Line(described, (), find_broken(described, ()))
    for row in own:
        broken = find_broken(described, (row,))
        if broken is not None:
            yield Line(described, (row,), broken)
    while left:
        pair = next(iter(left))
        del left[pair]
        line = _complete(described, pair)
        if line.broken is None:
            line = _widen(line, left, chance)
        for covered in combinations(line.rows, 2):
            left.pop(covered, None)
            left.pop((covered[1], covered[0]), None)
        yield line


def find_broken(described: Described, rows: Sequence[Typed]) -> UsageError | None:
    """Return what a line with these options is refused with; None if the rules allow it."""
    typed = [*_names(rows), *described.place_names]
    # Where an address of any kind can be typed, it is that of a blob.
    found = (rule.find_broken(typed, lambda: "blob") for rule in described.rules)
    return next((error for error in found if error is not None), None)


def _complete(described: Described, pair: tuple[Typed, ...]) -> Line:
    """Return the line of a pair, with what the two need beside them."""
    rows = pair
    for _ in range(WIDEST - len(pair)):
        missing = _find_missing(described.rules, rows, described)
        if missing is None:
            break
        rows = (*rows, missing)
    return Line(described, rows, find_broken(described, rows))


def _find_missing(rules: Sequence[Rule], rows: Sequence[Typed], described: Described) -> Typed | None:
    names = _names(rows)
    for rule in rules:
        is_open = rule.kind == "needs" and any(name in names for name in rule.options)
        wanted = rule.others if is_open else rule.options if rule.kind == "one_of" else ()
        if wanted and not any(name in names for name in wanted):
            found = [row for row in described.own if any(name in wanted for name in _names((row,)))]
            if found:
                return found[0]
    return None


def _widen(line: Line, left: dict[tuple[Typed, Typed], None], chance: random.Random) -> Line:
    """Return the line with options beside it that cover pairs that are left, and that no rule refuses."""
    candidates = [row for pair in list(left)[: 4 * _TRIES] for row in pair]
    chance.shuffle(candidates)
    rows = line.rows
    for row in candidates[:_TRIES]:
        if len(rows) >= WIDEST or row in rows:
            continue
        if find_broken(line.described, (*rows, row)) is None:
            rows = (*rows, row)
    return Line(line.described, rows, None)


def _names(rows: Sequence[Typed]) -> list[str]:
    return [name for row in rows for name in row.names]
