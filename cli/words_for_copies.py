"""The words of the command line for copies and snapshots: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "copy_ended": "there is nothing left to stop: azguard blob show {target}",
    "copy_failed": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "copy_is_another": "leave --copy-id out to stop the copy that is pending",
    "copy_pending": ("wait longer with --timeout; or stop it: azguard blob abort-copy {target} --copy-id {copy_id}"),
    "copy_replaced": "see what is there now: azguard blob show {target}",
    "copy_source_changed": "see what the source is now: azguard blob show {target}",
    "copy_source_missing": "check its name: --source CONTAINER/NAME",
    "copy_source_unreadable": "give a SAS that allows to read it: --source-sas @FILE",
    "copy_was_aborted": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "keeping_unknown": "try again; a snapshot may have been made: azguard blob list CONTAINER --include snapshots",
    "no_copy": "azguard blob copy {target} --source CONTAINER/NAME begins one",
    "nothing_kept": "see what is kept: azguard blob list CONTAINER --prefix NAME --include snapshots,versions",
    "not_in_emulator": "use a real account for this",
    "snapshot_first_needs_version": "name the version that is to be replaced: --etag ETAG; or leave it out",
    "source_tags_need_metadata": ("give the metadata itself: --metadata KEY=VALUE; or leave --source-if-tags out"),
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
