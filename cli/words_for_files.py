"""The words of the command line for shares, directories and files: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _show_again(facts: Mapping[str, object]) -> str:
    """Return the command that shows what is there now."""
    return f"look, then decide: azguard {facts['noun']} show {facts['target']}"


def _close_handles(facts: Mapping[str, object]) -> str:
    """Return how to see who has a file open, and how to close a handle that is known."""
    target, found = facts["target"], facts.get("handles")
    if not isinstance(found, list) or not found:
        return f"see who has it open: azguard file handle list {target}"
    close = f"--handle-id {found[0]['handle_id']}" if len(found) == 1 else "--close-all"
    return (
        "close it there and try again\n      "
        f"or by force, and what that program has not written yet is lost: azguard file handle close {target} {close}"
    )


#: What to type next.
HINTS: Mapping[str, Words] = {
    "directory_not_empty": "a directory is deleted when it is empty; see azguard file list {target}",
    "file_delete_pending": _close_handles,
    "file_exists": "read it, then decide: azguard file get {target} -f FILE; or leave it alone: --if-exists skip",
    "file_is_open": _close_handles,
    "file_is_read_only": "remove the attribute: azguard file set-properties {target} --attributes None",
    "parent_not_found": "create it first: azguard dir create {parent}",
    "path_of_other_type": "choose another name; see what is there: azguard file list {container}",
    "range_beyond_end": "choose bytes inside the file; they are counted from 0",
    "temporary_file_failed": "the file itself is as it was; try again",
    "rename_to_other_share": "name a directory of the same share",
    "file_keeps_changing": "try again when its writers pause",
    "not_whole_blocks": "to clear other bytes, write zeros with azguard file range put",
    "range_behind_end": "make it longer first: azguard file resize {target} --size {needed}",
    "range_incomplete": "look at what is there, then go on from {next_offset}: --offset {next_offset}",
    "range_is_empty": "did the command before the pipe fail?",
    "share_being_deleted": "wait 30 seconds or more, then try again",
    "share_is_full": "delete what is not needed, or let it hold more: azguard share quota {container} GIB",
    "share_has_snapshots": "--delete-snapshots include deletes them too",
    "share_or_file_changed": _show_again,
    "share_not_found": "check the name: azguard share list; to create it: azguard share create {container}",
    "share_snapshot_not_found": "see what there is: azguard share list --include-snapshots --prefix {container}",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
