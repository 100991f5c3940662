"""The words of the command line for what the core raises: by the reason of an error.

A template takes the facts of the error: ``{address}`` with its prefix, ``{target}`` without it, ``{option}``, the
option of the argument that is wrong, ``{code}``, the service's own code, ``{message}``, and whatever is in ``facts``
and ``values``. Where the words depend on those, a row is a function of them.
"""

from collections.abc import Mapping

from azguard.cli import (
    words_for_accounts,
    words_for_conditions,
    words_for_leases,
    words_for_names,
    words_for_programs,
    words_for_requests,
    words_for_tables,
    words_for_updates,
)
from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    **words_for_accounts.HINTS,
    **words_for_conditions.HINTS,
    **words_for_leases.HINTS,
    **words_for_names.HINTS,
    **words_for_programs.HINTS,
    **words_for_requests.HINTS,
    **words_for_tables.HINTS,
    **words_for_updates.HINTS,
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    **words_for_accounts.WORDS,
    **words_for_conditions.WORDS,
    **words_for_leases.WORDS,
    **words_for_names.WORDS,
    **words_for_programs.WORDS,
    **words_for_requests.WORDS,
    **words_for_tables.WORDS,
    **words_for_updates.WORDS,
}
