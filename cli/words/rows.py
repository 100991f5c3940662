"""What a row of a table of words is."""

from collections.abc import Callable, Mapping

#: A template, or a function of the facts where the words depend on them.
Words = str | Callable[[Mapping[str, object]], str]
