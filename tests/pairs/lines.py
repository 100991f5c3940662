"""The lines to type: each pair of options stands in one, together with at most four others that it goes with."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from tests.pairs import rules
from tests.pairs.described import Chosen, Described, Typed

#: So many options stand in one line at the most.
WIDEST = 6
_TRIES = 12
# Pairs of options that all commands share are typed once: here, where every condition means something; and where the
# account is what a command is about.
_SHARES_ALL = ("blob put", "profile set")
# Whether a condition can have this value depends on the operation, or on what this scope holds.
_OF_MORE = ("@held", "*")
Pair = tuple[Typed, Typed]


@dataclass(frozen=True)
class Line:
    """A line to type."""

    described: Described
    #: The arguments that it needs, then the options and other arguments.
    places: tuple[Chosen, ...]
    rows: tuple[Chosen, ...]

    @property
    def words(self) -> list[str]:
        """Return the words of the line, the options behind the arguments."""
        return self._join([row.words for row in self.rows if not row.row.is_place])

    def shuffle(self, chance: random.Random, *others: str) -> list[str]:
        """Return the words of the line in another order, and by other names; ``others`` are words beside them."""
        rows = [row for row in self.rows if not row.row.is_place]
        ordered = iter([row for row in rows if row.row.names[0] in self.described.ordered])
        mixed = chance.sample(rows, len(rows))
        options = [
            (next(ordered) if row.row.names[0] in self.described.ordered else row).write(chance) for row in mixed
        ]
        if others:
            options.insert(chance.randint(0, len(options)), list(others))
        return self._join(options, chance)

    def _join(self, options: list[list[str]], chance: random.Random | None = None) -> list[str]:
        """Return the words of the line, the options behind its arguments, or among them in their order."""
        given = [*self.places, *(row for row in self.rows if row.row.is_place)]
        tails = [row.words for row in given if row.words[0] == "--"] or [list(self.described.tail)]
        places = [row.words for row in given if row.words[0] != "--"]
        parts = [*places, *options]
        if chance is not None:
            at = set(chance.sample(range(len(parts)), len(places)))
            left = iter(places), iter(options)
            parts = [next(left[0] if number in at else left[1]) for number in range(len(parts))]
        return [*self.described.name.split(), *(word for part in (*parts, *tails) for word in part)]

    @property
    def broken(self) -> rules.Rule | None:
        """Return the rule that it breaks; None where the table allows it."""
        first = [word for place in self.places for word in place.words]
        optional = [word for row in self.rows if row.row.is_place for word in row.words if row.words[0] != "--"]
        return rules.find_broken(self.described.rules, self._names, self.described.find_kind(first or optional))

    @property
    def _names(self) -> list[str]:
        return [name for row in (*self.places, *self.rows) for name in row.row.names]

    @property
    def is_checked(self) -> bool:
        """Return whether a function looks at one of its options, which needs more than the line."""
        conditions = [row for row in self.rows if row.row.group == "Conditions"]
        if self.described.is_unguarded or len(conditions) > 1 or any(row.value in _OF_MORE for row in conditions):
            return True
        names = self._names
        checks = [rule for rule in self.described.rules if rule["kind"] == "checked"]
        return any(name in names for rule in checks for name in rule["options"])

    def has(self, name: str) -> bool:
        """Return whether an option stands in the line."""
        return any(name in row.row.names for row in self.rows)

    def find_value(self, name: str) -> str | None:
        """Return the value of an option; None if it does not stand there."""
        return next((row.value for row in self.rows if name in row.row.names), None)


def list_pairs(described: Described) -> list[Pair]:
    """Return the pairs of options of a command that have to stand together in some line."""
    own, shared = described.own, described.shared
    pairs = [*combinations(own, 2), *((one, other) for one in own for other in shared)]
    if described.name in _SHARES_ALL:
        pairs += combinations(shared, 2)
    # An option stands once in a line, with one value.
    return [(one, other) for one, other in pairs if one.names[0] != other.names[0]]


def list_lines(described: Described, chance: random.Random) -> Iterator[Line]:
    """Yield the lines of a command: those that cover all pairs, and refused options alone."""
    pairs = list_pairs(described)
    chance.shuffle(pairs)
    left: dict[tuple[Typed, ...], None] = dict.fromkeys([(), *pairs, *((row,) for row in described.shared)])
    for alone in ((), *((row,) for row in described.own)):
        line = _type(described, alone, chance)
        if line.broken is not None:
            yield line
    while left:
        wanted = next(iter(left))
        line = _complete(described, wanted, chance)
        if line.broken is None:
            line = _widen(line, left, chance)
        rows = [each.row for each in line.rows]
        for covered in ((), *permutations(rows, 2), *((row,) for row in rows)):
            left.pop(covered, None)
        yield line


def _type(described: Described, wanted: Sequence[Typed], chance: random.Random) -> Line:
    """Return the line of some options alone, at any address."""
    return Line(described, *(tuple(row.choose(chance) for row in rows) for rows in (described.places, wanted)))


def _complete(described: Described, wanted: Sequence[Typed], chance: random.Random) -> Line:
    """Return the line of some options with what they need beside them, at an address that takes them if one does."""
    count = max((len(place.values) for place in described.places), default=1) + 1
    tries = [tuple(chance.choice(place.values) for place in described.places) for _ in range(count)]
    lines = [_complete_at(described, each, wanted, chance) for each in tries]
    return next((line for line in lines if line.broken is None), lines[0])


def _complete_at(
    described: Described, addresses: Sequence[str], wanted: Sequence[Typed], chance: random.Random
) -> Line:
    places = tuple(Chosen(row, value) for row, value in zip(described.places, addresses, strict=True))
    line = Line(described, places, tuple(row.choose(chance) for row in wanted))
    for row in (*described.always, *chance.sample(described.meant, len(described.meant) and chance.randint(0, 1))):
        line = _add(line, row, chance) or line
    for _ in range(WIDEST - len(line.rows)):
        missing = _find_missing(line)
        if missing is None:
            break
        line = _add(line, missing, chance, is_needed=True) or line
    return line


def _add(line: Line, row: Typed, chance: random.Random, *, is_needed: bool = False) -> Line | None:
    """Return the line with another option; None if it has that, or may not have it."""
    if any(row.names[0] == each.row.names[0] for each in line.rows):
        return None
    wider = Line(line.described, line.places, (*line.rows, row.choose(chance)))
    return wider if is_needed or wider.broken is None or line.broken is not None else None


def _find_missing(line: Line) -> Typed | None:
    """Return an option that a rule wants beside those of a line."""
    broken = line.broken
    if broken is None or broken["kind"] not in ("needs", "one_of", "any_of"):
        return None
    wanted = broken["others"] if broken["kind"] == "needs" else broken["options"]
    names = {name for each in line.rows for name in each.row.names}
    found = [row for row in line.described.own if any(name in wanted and name not in names for name in row.names)]
    return found[0] if found and not any(name in names for name in wanted) else None


def _widen(line: Line, left: Mapping[tuple[Typed, ...], None], chance: random.Random) -> Line:
    """Return the line with options beside it that cover pairs that are left, and that no rule refuses."""
    candidates = [row for pair in list(left)[: 4 * _TRIES] for row in pair]
    chance.shuffle(candidates)
    for row in candidates[:_TRIES]:
        if len(line.rows) < WIDEST:
            line = _add(line, row, chance) or line
    return line
