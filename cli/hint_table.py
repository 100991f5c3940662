"""The words of the command line for what the core raises: by the reason of an error.

A template takes the facts of the error: ``{address}`` with its prefix, ``{target}`` without it, ``{option}``, the
option of the argument that is wrong, ``{code}``, the service's own code, ``{message}``, and whatever is in ``facts``.
"""

from collections.abc import Mapping

#: What to type next.
HINTS: Mapping[str, str] = {}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, str] = {}
