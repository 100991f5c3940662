"""The words of the command line for appends, pages and blocks: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _how_to_go_on(facts: Mapping[str, object]) -> str:
    """Return what to type to append the rest of a content, of which a part was appended."""
    rest = f"tail -c +{int(str(facts['appended_bytes'])) + 1} FILE"
    return f"{rest} | azguard blob append {facts['target']} --append-position {facts['next_position']}"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "append_elsewhere": "leave --append-position out to append at the end, wherever that is",
    "append_end_unknown": "with the permission to add alone: --last-writer-wins; after a lost answer it is then not "
    "known whether it was applied",
    "append_gave_up": "allow more time: --timeout 5m",
    "append_incomplete": _how_to_go_on,
    "append_is_empty": "did the command before the pipe fail? To accept empty input: --allow-empty",
    "append_lines_incomplete": "append the lines that are missing",
    "append_over_size": "begin another blob, or raise --max-size",
    "append_to_nothing": "to create it: --create",
    "created_for_condition": "leave the condition out: then --create creates the blob",
    "append_unknown": (
        "read the blob from that byte on. For the next time: --guard content if no other writer writes equal bytes, "
        "else --guard lease"
    ),
    "blob_is_sealed": "begin another blob",
    "line_too_long": "append it as content, in several pieces: -f FILE without --lines",
    "no_append_blob": "azguard safe-update {address} --append-line TEXT adds to a block blob",
    "no_append_blob_to_seal": "only append blobs can be sealed",
    "block_id_malformed": "make one: echo -n block-0001 | base64",
    "block_ids_differ_in_length": "number them with zeros in front: block-0001, block-0010",
    "block_is_empty": "did the command before the pipe fail?",
    "block_missing": "azguard blob block list {target} shows those that are there",
    "block_too_long": "leave --block-id out: then it is staged as several blocks",
    "blocks_of_other_length": "azguard blob block list {target} shows them; commit them, or use ids of the same length",
    "content_not_whole_pages": "fill it up with zeros: truncate -s %512 FILE",
    "no_page_blob": "azguard blob page put {target} --create BYTES makes a page blob where there is none",
    "not_whole_pages": "write {option} {below} or {option} {above}",
    "pages_are_empty": "did the command before the pipe fail?",
    "pages_behind_end": "a page blob keeps its length: create a longer one",
    "pages_incomplete": "look at what is there, then go on from {next_offset}: --offset {next_offset}",
    "pages_keep_changing": "try again when its writers pause",
    "pages_never_read": "read its ranges and its version first, then name it: --etag ETAG; or say --last-writer-wins",
    "pages_of_nothing": "to create it: azguard blob page put {target} --create BYTES",
    "pages_unknown": "read those pages, then decide; without --lease-id and --last-writer-wins azguard can tell",
    "source_is_empty": "name another source",
    "too_many_blocks": "begin another blob",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
