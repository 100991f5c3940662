"""The words of the command line for accounts, credentials, profiles and the way to the service: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
