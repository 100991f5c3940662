"""The words of the command line for edits and updates of content: see ``hint_table``."""

import shlex
from collections.abc import Mapping

from azguard.cli.words import Words


def _set_a_number(facts: Mapping[str, object]) -> str:
    return "set a number first: --set " + shlex.quote(f"{facts['path']}=0")


def _how_to_update_another_type(facts: Mapping[str, object]) -> str:
    if facts.get("blob_type") != "AppendBlob":
        return "its metadata can be updated: add --metadata"
    return (
        "it takes only --append and --append-line, without --op-id, --fence, --max-attempts, --wait-lease, "
        "--snapshot-first and --dry-run; its metadata can be updated: add --metadata"
    )


#: What to type next.
HINTS: Mapping[str, Words] = {
    "append_to_metadata": "use --set NAME=VALUE",
    "blob_type_unknown": "--blob-type block writes without looking",
    "content_is_empty": "to make it JSON first, begin with --append '{{}}'",
    "edit_has_marks": "delete the lines <<<<<<<, ======= and >>>>>>>, and what you do not want of the two sides",
    "edit_not_resumable": "name the file in which the earlier edit was kept; FILE.base is beside it",
    "edit_not_yaml": "if that is meant: --any-content",
    "editor_missing": "name one: export EDITOR=nano",
    "editor_needs_terminal": "in a script use azguard safe-update, or an EDITOR that needs no terminal",
    "fence_needs_permission": (
        "--fence reads and writes index tags, which needs a permission of its own: "
        "t in a SAS, or the role Storage Blob Data Owner"
    ),
    "fence_needs_tags": "--fence needs index tags, which accounts with a hierarchical namespace do not have",
    "increment_of_no_number": _set_a_number,
    "increment_of_whole_number": """make it a double first: --set '{path}="{type}"'""",
    "key_of_another_change": "choose another key; or count the key as done, whatever it changed: --op-id-any-change",
    "metadata_names_differ_in_case": "use {name} for both, or --unset one of them",
    "no_block_blob_to_update": _how_to_update_another_type,
    "other_blob_type": "if that is meant: --blob-type block",
    "output_is_empty": "to write it empty: --allow-empty",
    "output_is_not_json": "correct the command; if this is meant: --any-content",
    "op_id_malformed": ("copy it whole from the result, or choose a key of your own that does not begin with {prefix}"),
    "op_id_of_another_entity": "copy the id of this entity's update, or choose a key of your own",
    "property_is_string": "to keep it a string: --set-string {path}=TEXT; else unset it first: --unset {path}",
    "property_of_other_type": "if the type is to change, unset it first: --unset {path}",
    "put_is_empty": "did the command before the pipe fail? To write it empty: --allow-empty",
    "put_never_read": (
        "read it first: azguard blob get {target} -f THEIRS, "
        "or name the version with --etag, or overwrite with --last-writer-wins"
    ),
    "snapshot_has_no_snapshots": "leave --delete-snapshots out",
    "some_updates_failed": "correct the cause, then run the same command again: no update is applied twice",
    "updates_without_key_failed": (
        "a second run would update the finished ones twice: leave them out with --where; "
        "the next time use --op-id KEY: with it a second run applies nothing twice"
    ),
    "transform_nested_too_deeply": "azguard edits a few hundred levels; a command can edit more: -- CMD",
    "update_gave_up": "run it again, or allow more time: --timeout 5m",
    "update_meets_lease": "wait for its holder with --wait-lease, or work inside that lease with --lease-id",
    "update_of_nothing": "add --create to make it",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "append_to_metadata": "--append does not apply to metadata",
    "increment_of_no_number": "--increment: {message}",
    "increment_of_whole_number": "--increment: {message}",
    "op_id_malformed": "{option}: {message}",
    "op_id_of_another_entity": "{option}: {message}",
    "patch_failed": "--json-patch: {message}",
    "sum_too_large": "--increment: {message}",
}
