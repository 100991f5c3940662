"""The words of the command line for what the core raises: by the reason of an error.

A template takes the facts of the error: ``{address}`` with its prefix, ``{noun}``, ``{target}`` without it,
``{option}``, the option of the argument that is wrong, ``{code}``, the service's own code, ``{message}``, and whatever
is in ``facts`` and ``values``. In what to type next, address and target are quoted for a shell. Where the words depend
on the facts, a row is a function of them.
"""

from collections.abc import Mapping

from azguard.cli.words import accounts, conditions, files, leases, services
from azguard.cli.words.templates import Words

#: The tables, by subject.
PAGES = (accounts, conditions, files, leases, services)
#: What to type next.
HINTS: Mapping[str, Words] = {reason: words for page in PAGES for reason, words in page.HINTS.items()}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {reason: words for page in PAGES for reason, words in page.WORDS.items()}
