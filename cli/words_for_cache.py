"""The words of the command line for the ETag cache and its scopes: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "cache_record_malformed": "import what azguard cache export printed",
    "cache_record_not_object": "each line is one JSON object, as azguard cache export prints",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
