"""The words of the command line for the ETag cache and its scopes: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _as_typed(facts: Mapping[str, object]) -> str:
    """Return the message, which speaks of the option where the scope was typed, else of the variable."""
    message, option = str(facts["message"]), facts["option"]
    return f"{option}{message.removeprefix('the scope')}" if option else message


#: What to type next.
HINTS: Mapping[str, Words] = {
    "address_not_in_account": "see what was read: azguard cache list",
    "address_not_in_scope": "see what was read: azguard cache list --all-scopes",
    "cache_record_malformed": "import what azguard cache export printed",
    "cache_record_not_object": "each line is one JSON object, as azguard cache export prints",
    "cache_unusable": "correct what the warning says, or choose another folder: AZGUARD_CACHE_DIR",
    "copy_changed_here": "--overwrite takes theirs; -f OTHER reads theirs beside your file, to compare",
    "kept_file_not_deleted": "mend what it says, then run it again",
    "scope_empty": "an unset shell variable looks like this; leave it out to get a scope of your own session",
    "scope_malformed": "use letters and digits",
    "temporary_folder_fails": "make room there, or name another one: TMPDIR",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {"scope_empty": _as_typed, "scope_malformed": _as_typed}
