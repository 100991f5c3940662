"""The words of the command line for tables, entities and what is in a container or a table: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "contents_not_listed": "--with-contents deletes it without looking",
    "entity_other_keys": "leave it out of the entity, or correct the address",
    "entity_bad_etag": "leave it as azguard entity get printed it; or take it out, and name the version with --etag",
    "entity_two_versions": "take out the one that it was not read as",
    "entity_not_json": "write for example {example}",
    "delete_copy_without_etag": "leave it out to be guarded by what you last read, or name the version with --etag",
    "line_unknown_key": "{known}",
    "line_incomplete": "{example}",
    "line_word": '"{name}" is one of: {words}',
    "line_condition_not_text": "leave it out to be guarded by what was read last",
    "line_insert_overwrites": '"op": "upsert" writes whatever is there',
    "line_mode_not_upsert": "leave it out",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
