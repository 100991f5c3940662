"""The words for conditions, what was read, updates and documents: see ``hints``."""

import re
import shlex
from collections.abc import Callable, Mapping

from azguard.cli.words.templates import Words
from azguard.wire.rows import Condition

_PATHS = "write replicas, a.b.c, items[0], items[-1], a\\.b or a JSON Pointer, /a/b"
# A condition in a sentence of the core, where the command line has its option.
_CONDITION = re.compile(rf"(?<![\w-])({'|'.join(sorted(Condition, key=len, reverse=True))})(?![\w-])")
_UNSET = "an unset shell variable looks like this"
_FENCE_EMPTY = f"{_UNSET}; azguard lock run sets AZGUARD_FENCE"


def _explain_ignored(facts: Mapping[str, object]) -> str:
    """Return the words of a refusal, whose reason names conditions: as options here."""
    why = _CONDITION.sub(r"--\g<0>", str(facts["why"]))
    return f"{facts['option']} {facts['what']}: {why}"


def _how_to_see(facts: Mapping[str, object]) -> str:
    """Return the commands that read a version of a resource, or name one."""
    kind, target = facts["noun"], facts["target"]
    if part := facts.get("part"):
        return f"read it first: azguard {kind} {part} get {target}; or name the version you mean: --etag ETAG"
    match kind:
        case "blob" | "file":
            return f"read it first: azguard {kind} get {target} -f FILE; or name the version you mean: --etag ETAG"
        case "entity":
            version = '"etag": "ETAG"' if "line" in facts else "--etag ETAG"
            return f"read it first: azguard entity get {target}; or name the version you mean: {version}"
        case "table":
            return f"read it first: azguard table acl get {target}"
        case _:
            return f"look at it first: azguard {kind} show {target}; then name what you saw: --etag ETAG"


def _how_to_leave_out(facts: Mapping[str, object]) -> str:
    # A command about a lease, without an id, takes the one that this scope holds.
    if facts["option"] == "--fence":
        return _FENCE_EMPTY
    without = "" if facts["option"] == "--lease-id" else " to be guarded by what you last read"
    return f"{_UNSET}; leave the option out{without}"


def _unless_json(example: str) -> Callable[[Mapping[str, object]], str]:
    """Return the hint at a malformed ETag: it may be one that ``--query etag`` printed as JSON."""
    return lambda facts: "this is JSON; read the ETag with -o tsv" if '\\"' in str(facts["message"]) else example


def _how_to_go_on(facts: Mapping[str, object]) -> str:
    return f"{_how_to_see(facts)}; or say {_name_overwriting(facts)}"


def _name_overwriting(facts: Mapping[str, object]) -> str:
    return '"last_writer_wins": true' if "line" in facts else "--last-writer-wins"


def _contradict(facts: Mapping[str, object]) -> str:
    # A line of JSON has keys and no options.
    other = f'"{facts["other"]}"' if "line" in facts else f"--{str(facts['other']).replace('_', '-')}"
    return f"{facts['option']} and {other} do not go together: {facts['why']}"


def _how_to_update_another_type(facts: Mapping[str, object]) -> str:
    if facts.get("blob_type") != "AppendBlob":
        return "its metadata can be updated: add --metadata"
    return (
        "it takes only --append and --append-line, without --op-id, --fence, --max-attempts, --wait, "
        "--snapshot-first and --dry-run; its metadata can be updated: add --metadata"
    )


def _as_typed(facts: Mapping[str, object]) -> str:
    """Return the message, which speaks of the option where the scope was typed, else of the variable."""
    message, option = str(facts["message"]), facts["option"]
    return f"{option}{message.removeprefix('the scope')}" if option else message


#: What to type next.
HINTS: Mapping[str, Words] = {
    # Documents.
    "metadata_name_malformed": "use letters, digits and _; the first is no digit",
    "metadata_name_reserved": "leave it out; azguard keeps it",
    "metadata_too_large": "keep large values in a blob, and its name here",
    "metadata_value_malformed": (
        "use visible ASCII, without spaces at either end; encode other text, for example in base64"
    ),
    "metadata_value_nested": "quote it to store its JSON as text",
    "path_escape_unknown": "only {escaped} are escaped",
    "path_index_too_large": "[-] appends",
    "path_malformed": _PATHS,
    "path_name_malformed": f"{_PATHS}; an empty name only as a JSON Pointer, special characters as in a\\.b",
    "path_names_array": "write [0], [-1] or, to append, [-]",
    "pointer_malformed": "write ~ as ~0, / in a name as ~1",
    "yaml_not_editable": "a command can edit it: -- yq -i '.a = 1' {{}}",
    "yaml_way_is_shared": "change it where it stands ({anchor}), or set the whole value above it",
    # Conditions.
    "number_malformed": "{option} 7",
    "size_malformed": "{option} 512, {option} 4MiB",
    "wildcard_without_effect": "name a version, as in {option} ETAG, or leave it out",
    "cannot_be_guarded": lambda facts: f"to do it without a guard: {_name_overwriting(facts)}",
    "condition_empty": _how_to_leave_out,
    "condition_ignored": "leave it out",
    "conditions_contradict": "leave one of them out",
    "entity_etag_malformed": _unless_json(
        """an entity's ETag looks like W/"datetime'2026-11-21T10%3A00%3A00.0000000Z'", quotes included"""
    ),
    "policies_etag_malformed": "copy it, with its quotes, as azguard table acl get prints it",
    "etag_malformed": _unless_json('an ETag looks like 0x8DC1234567890AB or "0x8DC1234567890AB"'),
    "etag_needs_race": "add --allow-race to accept that",
    "read_version_needs_race": "add --allow-race to accept that, or --last-writer-wins to write over any version",
    "etag_not_kept_on_change": ("nothing can guard this by a version; to do it without a guard: --last-writer-wins"),
    "etag_on_conditional_read": "on a read, use --if-match",
    "etag_on_read": "leave it out",
    "etag_weak": "copy it from azguard … show",
    "fence_empty": _FENCE_EMPTY,
    "fence_malformed": (
        "azguard lock run sets AZGUARD_FENCE; under several locks it has a line for each: give one of them"
    ),
    "fence_on_snapshot": "leave it out",
    "fence_overtaken": "the lock has had another holder since: stop, acquire it again, and read before you write",
    "fence_tag_malformed": "remove that tag, or write it with {digits} digits",
    "deleted_here": "if it is to stay deleted, there is nothing to do",
    "if_match_not_enforced": "use --etag: azguard compares the version itself, where it can",
    "last_of_source": "name the ETag itself",
    "never_read": _how_to_see,
    "never_read_before_write": _how_to_go_on,
    "never_read_but_leased": lambda facts: f"{_how_to_go_on(facts)}, so that only the lease guards it",
    "read_in_part": "read it whole: azguard entity get {target}; or use merge; or name the version: --etag ETAG",
    "remembered_version_damaged": lambda facts: f"azguard cache forget {facts['address']}; then {_how_to_see(facts)}",
    "tag_of_fence_changed": "leave that tag as it is; or leave --fence out",
    "tag_of_fence_given": "leave it out",
    "tags_condition_malformed": "index tags are of visible ASCII, in one line: \"stage\" = 'live'",
    "tags_leave_no_place_for_fence": "leave a tag out",
    "two_versions_of_file": (
        "name the version that its content was made of: --etag ETAG; "
        "or read it again, and merge: azguard blob get {target} -f THEIRS"
    ),
    # Updates.
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
    "increment_of_no_number": lambda facts: f"set a number first: --set {shlex.quote(str(facts['path']) + '=0')}",
    "increment_of_whole_number": """make it a double first: --set '{path}="{type}"'""",
    "key_of_another_change": "choose another key; or count the key as done for any change: --op-id-any-change",
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
    "update_leased": "run it again, or wait longer: --wait 5m",
    "update_meets_lease": "wait for its holder with --wait, or work inside that lease with --lease-id",
    "update_of_nothing": "add --create to make it",
    # Cache.
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
WORDS: Mapping[str, Words] = {
    # Conditions.
    "condition_empty": "{option} is empty",
    "condition_ignored": _explain_ignored,
    "conditions_contradict": _contradict,
    "entity_etag_malformed": "{option}: {message}",
    "etag_malformed": "{option}: {message}",
    "etag_needs_race": ("with --etag azguard can only compare and then write here; another writer may come between"),
    "etag_not_kept_on_change": _explain_ignored,
    "etag_on_conditional_read": "--etag guards writes, and {operation} writes nothing",
    "etag_on_read": "--etag guards writes, and {operation} writes nothing",
    "etag_weak": "{option}: {message}",
    "fence_empty": "--fence is empty",
    "fence_malformed": "--fence: {message}",
    "fence_on_snapshot": "--fence is not for {target}: a snapshot or version keeps the fence it was made with",
    "if_match_not_enforced": _explain_ignored,
    "last_of_source": "{option}: {message}",
    "number_malformed": "{option}: {message}",
    "policies_etag_malformed": "{option}: {message}",
    "size_malformed": "{option}: {message}",
    "tags_condition_malformed": "{option}: {message}",
    "tag_of_fence_given": "--fence and --tags fence=… do not go together: the tag is the fence's",
    "tags_leave_no_place_for_fence": (
        "--fence and {tags} --tags do not go together: the service takes {most}, and the fence is one"
    ),
    "wildcard_without_effect": ("{option} '*' means nothing here: only a write that creates can require absence"),
    # Updates.
    "append_to_metadata": "--append does not apply to metadata",
    "increment_of_no_number": "--increment: {message}",
    "increment_of_whole_number": "--increment: {message}",
    "op_id_malformed": "{option}: {message}",
    "op_id_of_another_entity": "{option}: {message}",
    "patch_failed": "--json-patch: {message}",
    "sum_too_large": "--increment: {message}",
    # Cache.
    "scope_empty": _as_typed,
    "scope_malformed": _as_typed,
}
