"""The words of the command line for conditions, ETags, lease ids and fences: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
