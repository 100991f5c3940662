"""Templates: the words of a reason, with the facts of an error in them."""

from collections.abc import Callable, Mapping

#: A template, or a function of the facts where the words depend on them.
Words = str | Callable[[Mapping[str, object]], str]


def fill(words: Words | None, facts: Mapping[str, object]) -> str | None:
    """Return the words of a reason for these facts; None where it has none."""
    if words is None:
        return None
    return words.format_map(facts) if isinstance(words, str) else words(facts)
