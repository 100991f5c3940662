"""The words of the command line for blobs and containers, and the files they are read to: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "archived_not_leasable": "to change the tier of any version: --last-writer-wins",
    "blob_is_archived": "azguard blob tier {target} --tier Hot brings it back, within hours",
    "blob_is_rehydrating": "see when it is back: azguard blob show {target} --query tier",
    "blob_of_other_type": "see its type: azguard blob show {target} --query blob_type",
    "container_changed": "look, then decide: azguard container show {target}",
    "content_md5_differs": "check the file: it was cut short, or the MD5 is of another file",
    "content_damaged": (
        "try again; if it happens often, a proxy changes the content: use https, or go past the proxy (NO_PROXY=HOST)"
    ),
    "file_is_folder": "name the file: -f {file}",
    "file_not_writable": "name another file with -f",
    "file_not_written": "free some space, or name another file with -f",
    "folder_not_writable": "make the folder first: mkdir -p {folder}",
    "output_incomplete": "use -f FILE, which is written whole or not at all; if the disk is full, free some space",
    "blob_wait_over": "wait longer, or see what is there: azguard blob show {target}",
    "never_read_before_wait": "read it first: azguard blob get {target}; or name the version: --if-none-match ETAG",
    "overwritten_too_often": "try again later",
    "overwritten_while_read": "read it to a file instead, which is tried again: -f FILE",
    "waited_for_snapshot": "leave ?snapshot=… or ?versionid=… out to wait for the blob itself",
    "tag_malformed": "use letters, digits, space + - . / : = _; at most 128 characters in a key, 256 in a value",
    "tags_changed": "look, then decide: azguard blob tags get {target}",
    "tags_not_object": 'write for example {{"stage": "live", "owner": "ops"}}',
    "too_many_tags": "leave one out; the fence of a lock is a tag too",
    "version_not_leasable": "to write the tags without a guard: --last-writer-wins",
    "wrong_range": "a proxy or a cache stands in between: go past it (NO_PROXY=HOST), or name the real endpoint",
    "written_in_between": "try again, or allow more time: --timeout 60s",
    "written_without_fence": "every writer of the blob has to give --fence; or try again",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "never_read_before_wait": "{target} was never read here, so there is no version to compare with",
}
