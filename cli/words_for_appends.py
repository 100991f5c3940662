"""The words of the command line for appends, pages and blocks: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _how_to_go_on(facts: Mapping[str, object]) -> str:
    """Return what to type to append the rest of a content, of which a part was appended."""
    rest = f"tail -c +{int(str(facts['appended_bytes'])) + 1} FILE"
    return f"{rest} | azguard blob append {facts['target']} --append-position {facts['next_position']}"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "append_elsewhere": "to append wherever it ends, leave --append-position out",
    "append_end_unknown": "with the permission to add alone: --last-writer-wins; after a lost answer it is then not "
    "known whether it was applied",
    "append_gave_up": "give it more time: --timeout 5m",
    "append_incomplete": _how_to_go_on,
    "append_is_empty": "did the command before the pipe fail? If empty input is no fault: --allow-empty",
    "append_lines_incomplete": "append the lines that are missing",
    "append_over_size": "begin another blob, or raise --max-size",
    "append_to_nothing": "to create it: --create",
    "append_unknown": "look at that byte. If no other writer writes equal bytes: --guard content; else --guard lease",
    "blob_is_sealed": "begin another blob",
    "line_too_long": "append it as content, in several pieces: -f FILE without --lines",
    "no_append_blob": "azguard safe-update blob:{target} --append-line TEXT adds to a block blob",
    "no_append_blob_to_seal": "only append blobs can be sealed",
    "too_many_blocks": "begin another blob",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
