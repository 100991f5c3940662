"""Which options of a command go together: rules as rows, checked before any request, with one form of words.

A rule stands beside the options: in ``RULES`` of their dataclass, or at the command. An option is named as it is typed,
such as ``--no-log`` for the flag that is switched off, or ``--guard=lease`` for one of its values; an argument by its
metavar; a kind of address as its prefix, such as ``queue:``.
"""

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet

from azguard.address import Kind
from azguard.errors import UsageError
from azguard.frozen import frozen


@frozen
class Rule:
    """What must hold between options."""

    #: ``excludes``: none of ``others`` beside any of ``options``. ``needs``: one of ``others`` with each of them.
    #: ``one_of``: one of ``options``, and no more. ``any_of``: one of them, or more. ``at_most_one``: one, or none.
    #: ``only_for``: ``options`` for these kinds of address alone.
    #: ``checked``: a function says it, because it needs more than the line: the cache, a file, the clock.
    kind: str
    options: tuple[str, ...]
    others: tuple[str, ...] = ()
    #: The reason, in a sentence without its full stop.
    why: str = ""
    #: What to type instead; by default, what the kind of rule tells.
    hint: str = ""
    #: Of ``checked``: what is checked, in words, and the function that does it.
    does: str = ""
    by: str = ""
    #: The rule does not hold beside one of these.
    unless: tuple[str, ...] = ()

    def find_broken(self, typed: AbstractSet[str], find_kind: Callable[[], str | None]) -> "UsageError | None":
        """Return the error if the options of a line break it; ``find_kind`` tells the kind of its first address."""
        if not typed.isdisjoint(self.unless):
            return None
        given = [name for name in self.options if name in typed or (name[-1] == ":" and name[:-1] == find_kind())]
        match self.kind:
            case "excludes":
                other = next((name for name in self.others if name in typed), None)
                return self._refuse_both(given[0], other) if given and other else None
            case "needs":
                is_met = not given or not typed.isdisjoint(self.others)
                return None if is_met else self._refuse_alone(given[0])
            case "one_of":
                return self._refuse_both(*given[:2]) if len(given) > 1 else None if given else self._refuse_none()
            case "any_of":
                return None if given else UsageError(self.why, hint=self.hint)
            case "at_most_one":
                return self._refuse_both(*given[:2]) if len(given) > 1 else None
            case "only_for" if given:
                kind = find_kind()
                return None if kind is None or kind in self.others else self._refuse_kind(given[0], kind)
        return None

    @property
    def _because(self) -> str:
        return f": {self.why}" if self.why else ""

    def _refuse_both(self, one: str, other: str) -> UsageError:
        return UsageError(
            f"{_word(one)} and {_word(other)} do not go together{self._because}",
            hint=self.hint or "leave one of them out",
        )

    def _refuse_alone(self, one: str) -> UsageError:
        needed = " or ".join(map(_word, self.others))
        out = "" if one.endswith(":") else f", or leave {one} out"
        return UsageError(f"{_word(one)} needs {needed}{self._because}", hint=self.hint or f"add {needed}{out}")

    def _refuse_none(self) -> UsageError:
        known = " or ".join(self.options)
        what = f"{known} is missing" if len(self.options) == 1 else f"one of {', '.join(self.options)} is needed"
        return UsageError(f"{what}{self._because}", hint=self.hint or f"add {known}")

    def _refuse_kind(self, one: str, address: str) -> UsageError:
        known = list_kinds(self.others)
        message = (
            f"{one} {'is for' if one.startswith('-') else 'names'} {known}, not {Kind(address).one}{self._because}"
        )
        return UsageError(message, hint=self.hint or (f"leave {one} out" if one.startswith("-") else ""))

    def list_excluded(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the options that none of these goes with."""
        if any(name in names for name in self.unless):
            return ()
        if self.kind == "excludes":
            return self.others if any(name in names for name in self.options) else self._list_if(self.others, names)
        if self.kind in ("one_of", "at_most_one"):
            return tuple(name for name in self._list_if(self.options, names) if name not in names)
        return ()

    def _list_if(self, sides: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
        return self.options if any(name in names for name in sides) else ()


def list_kinds(kinds: Iterable[str]) -> str:
    """Return kinds of addresses as words: ``a blob, a share or a file``."""
    *others, last = [Kind(each).one for each in kinds]
    return f"{', '.join(others)} or {last}" if others else last


def _word(name: str) -> str:
    """Return an option as it is typed; a kind of address, or a command, as a word."""
    if name == "CMD...":
        return "a command"
    return Kind(name[:-1]).one if name.endswith(":") else name


def excludes(options: str, others: str, why: str = "", hint: str = "", unless: str = "") -> Rule:
    """Return the rule that no two of both go together; the names are divided by blanks."""
    return Rule("excludes", tuple(options.split()), tuple(others.split()), why, hint, unless=tuple(unless.split()))


def needs(options: str, others: str, why: str = "", hint: str = "", unless: str = "") -> Rule:
    """Return the rule that each option, or kind of address, needs one of the others beside it."""
    return Rule("needs", tuple(options.split()), tuple(others.split()), why, hint, unless=tuple(unless.split()))


def one_of(options: str, why: str = "", hint: str = "") -> Rule:
    """Return the rule that one of the options is needed, and no more."""
    return Rule("one_of", tuple(options.split()), (), why, hint)


def any_of(options: str, why: str, hint: str, unless: str = "") -> Rule:
    """Return the rule that one of the options is needed, or more of them; ``why`` says what is missing."""
    return Rule("any_of", tuple(options.split()), (), why, hint, unless=tuple(unless.split()))


def at_most_one(options: str, why: str = "") -> Rule:
    """Return the rule that no two of the options go together."""
    return Rule("at_most_one", tuple(options.split()), (), why)


def only_for(options: str, kinds: str, why: str = "", hint: str = "") -> Rule:
    """Return the rule that the options are for addresses of these kinds alone, such as ``blob entity``."""
    return Rule("only_for", tuple(options.split()), tuple(kinds.split()), why, hint)


def checked(options: str, does: str, by: str) -> Rule:
    """Return the row of what a function checks, because it needs more than the line; ``by`` is ``module.function``."""
    return Rule("checked", tuple(options.split()), does=does, by=by)


def check(rules: Iterable[Rule], typed: Collection[str], find_kind: Callable[[], str | None]) -> None:
    """Refuse a line that breaks a rule: the first one that it breaks.

    Raises:
        UsageError: names both options, or the one that is missing.
    """
    names = frozenset(typed)
    for rule in rules:
        broken = rule.find_broken(names, find_kind)
        if broken is not None:
            raise broken
