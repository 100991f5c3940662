"""The words of the command line for edits and updates of content: see ``hint_table``."""

import shlex
from collections.abc import Mapping

from azguard.cli.words import Words


def _set_a_number(facts: Mapping[str, object]) -> str:
    return "set a number first: --set " + shlex.quote(f"{facts['path']}=0")


#: What to type next.
HINTS: Mapping[str, Words] = {
    "append_to_metadata": "use --set NAME=VALUE",
    "content_is_empty": "to make it JSON first, begin with --append '{{}}'",
    "increment_of_no_number": _set_a_number,
    "increment_of_whole_number": """make it a double first: --set '{path}="{type}"'""",
    "metadata_names_differ_in_case": "use {name} for both, or --unset one of them",
    "output_is_empty": "if the content is to be empty: --allow-empty",
    "output_is_not_json": "mend the command; if it is meant: --any-content",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "append_to_metadata": "--append does not apply to metadata",
    "increment_of_no_number": "--increment: {message}",
    "increment_of_whole_number": "--increment: {message}",
    "patch_failed": "--json-patch: {message}",
    "sum_too_large": "--increment: {message}",
}
