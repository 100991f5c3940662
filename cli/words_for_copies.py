"""The words of the command line for copies and snapshots: see ``hint_table``."""

import shlex
from collections.abc import Mapping

from azguard.cli.words import Words


def _show(facts: Mapping[str, object]) -> str:
    """Return the command that shows the blob or file that an error is about."""
    return f"azguard {facts['noun']} show {facts['target']}"


def _show_ended(facts: Mapping[str, object]) -> str:
    return f"there is nothing left to stop: {_show(facts)}"


def _stop_copy(facts: Mapping[str, object]) -> str:
    return f"see how far it is: {_show(facts)}; or stop it: azguard {facts['noun']} abort-copy {facts['target']}"


def _show_source(facts: Mapping[str, object]) -> str:
    shown = f"see what the source is now: {_show(facts)}"
    target = "".join(shlex.split(str(facts["target"])))
    if facts["noun"] != "file" or "://" in target:
        return shown
    share = target.partition("/")[0]
    return f"{shown}; a snapshot of its share does not change: azguard share snapshot {share}"


def _name_source(facts: Mapping[str, object]) -> str:
    name = "SHARE/PATH" if facts["noun"] == "file" else "CONTAINER/NAME"
    return f"check its name: --source {name}"


def _begin_copy(facts: Mapping[str, object]) -> str:
    name = "SHARE/PATH" if facts["noun"] == "file" else "CONTAINER/NAME"
    return f"azguard {facts['noun']} copy {facts['target']} --source {name} begins one"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "copy_ended": _show_ended,
    "copy_failed": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "copy_is_another": "leave --copy-id out to stop the copy that is pending",
    "copy_not_ended": _stop_copy,
    "copy_pending": ("wait longer with --timeout; or stop it: azguard blob abort-copy {target} --copy-id {copy_id}"),
    "copy_replaced": "see what is there now: azguard blob show {target}",
    "copy_source_changed": _show_source,
    "copy_source_missing": _name_source,
    "copy_source_unreadable": "give a SAS with the permission to read it: --source-sas @FILE",
    "copy_was_aborted": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "file_copy_aborted": "another program stopped it; copy again",
    "file_copy_failed": "{target} is as it was; copy again when the source can be read",
    "file_copy_too_slow": "allow more time: --timeout 12h",
    "keeping_unknown": "try again; a snapshot may have been made: azguard blob list CONTAINER --include snapshots",
    "no_copy": _begin_copy,
    "id_of_snapshot_and_version": "say which of the two: --from snapshot=ID, or --from versionid=ID",
    "nothing_kept": "see what is kept: azguard blob list CONTAINER --prefix NAME --include snapshots,versions",
    "no_such_id_kept": "see what is kept: azguard blob list CONTAINER --prefix NAME --include snapshots,versions",
    "not_in_emulator": "use a real account for this",
    "snapshot_first_needs_version": "name the version that is to be replaced: --etag ETAG; or leave it out",
    "source_tags_need_metadata": (
        "leave --source-if-tags out; or add --no-lineage, with which the service copies both; "
        "blob copy also takes the metadata itself: --metadata KEY=VALUE"
    ),
    "undeleted_without_current": (
        "see its versions: azguard blob list CONTAINER --prefix NAME --include versions; "
        "then azguard blob restore {target} --from versionid=ID"
    ),
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "snapshot_first_needs_version": (
        "--snapshot-first needs a write of one version: else another may be replaced than the one that was kept"
    ),
    "source_tags_need_metadata": (
        "{option} and the metadata of the source do not go together: it cannot be known that both are of one version"
    ),
}
