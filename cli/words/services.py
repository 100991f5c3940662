"""The words for blobs, tables and queues: see ``hints``."""

import shlex
from collections.abc import Mapping

from azguard.cli.words.templates import Words

_SHOW = "azguard {noun} show {target}"


def _how_to_go_on(facts: Mapping[str, object]) -> str:
    """Return the command that appends the rest of a content, of which a part was appended."""
    rest = f"tail -c +{int(str(facts['appended_bytes'])) + 1} FILE"
    return f"{rest} | azguard blob append {facts['target']} --append-position {facts['next_position']}"


def _show_source(facts: Mapping[str, object]) -> str:
    shown = f"see what the source is now: {_SHOW.format_map(facts)}"
    target = "".join(shlex.split(str(facts["target"])))
    if facts["noun"] != "file" or "://" in target:
        return shown
    share = target.partition("/")[0]
    return f"{shown}; a snapshot of its share does not change: azguard share snapshot {share}"


def _name_form(facts: Mapping[str, object]) -> str:
    return "SHARE/PATH" if facts["noun"] == "file" else "CONTAINER/NAME"


#: What to type next.
HINTS: Mapping[str, Words] = {
    # Blobs.
    "archived_not_leasable": "to change the tier of any version: --last-writer-wins",
    "blob_directory_not_empty": "see what is in it: azguard blob list {container} --prefix {target}",
    "blob_is_directory": "choose another name; see what is there: azguard blob list {container}",
    "no_flat_namespace": (
        "it has no index tags: leave --tags, --if-tags and --fence out; azguard doctor tells what else it lacks"
    ),
    "blob_is_archived": "azguard blob tier {target} --tier Hot brings it back, within hours",
    "blob_is_rehydrating": "see when it is back: azguard blob show {target} --query tier",
    "blob_of_other_type": "see its type: azguard blob show {target} --query blob_type",
    "immutable": "see until when: azguard blob immutability show {target}; only the end of the policy or hold ends it",
    "container_immutable": (
        "see them: az storage container legal-hold show, az storage container immutability-policy show"
    ),
    "container_of_one_scope": "leave --encryption-scope out",
    "key_of_the_writer": "give the same: --encryption-key @FILE, or --encryption-scope NAME",
    "encrypted_with_another_key": (
        "give the one with which it was written; to change it: blob get with that key, then blob put with the new one"
    ),
    "not_encrypted_with_a_key": (
        "leave --encryption-key out, and unset AZGUARD_ENCRYPTION_KEY; to encrypt the blob: "
        "azguard blob put {target} -f FILE --encryption-key @FILE"
    ),
    "made_through_data_lake": "put it whole: azguard blob put {target} -f FILE",
    "no_version_to_keep": "switch versioning on for the account; or keep what is current: --last-writer-wins",
    "retention_unknown": "look before you try again: azguard blob immutability show {target}",
    "policy_is_final": "if that is meant: --cannot-be-undone",
    "policy_is_locked": "see it: azguard blob immutability show {target}",
    "policy_would_be_shorter": "to end it earlier: --shorten",
    "no_such_copy": "see the copy: azguard {noun} show {target} --query copy",
    "no_such_tier": "see its tier: azguard blob show {target} --query tier; Hot, Cool and Cold are for block blobs",
    "not_in_archive": "see its tier: azguard blob show {target} --query tier",
    "sequence_too_large": "see it: azguard blob show {target}",
    "source_of_other_account": "get it and put it: azguard blob get SOURCE | azguard blob put {target}",
    "source_of_other_type": "see its type: azguard blob show SOURCE --query blob_type",
    "too_many_snapshots": "delete old ones: azguard {noun} delete --help tells how",
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
    # Appends.
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
    "no_page_blob": "azguard blob page put {target} --create SIZE makes a page blob where there is none",
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
    # Copies.
    "copy_ended": f"there is nothing left to stop: {_SHOW}",
    "copy_failed": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "copy_is_another": "leave --copy-id out to stop the copy that is pending",
    "copy_not_ended": f"see how far it is: {_SHOW}; or stop it: azguard {{noun}} abort-copy {{target}}",
    "copy_pending": ("wait longer with --timeout; or stop it: azguard blob abort-copy {target} --copy-id {copy_id}"),
    "copy_replaced": "see what is there now: azguard blob show {target}",
    "copy_source_changed": _show_source,
    "copy_source_missing": lambda facts: f"check the name of the source: {_name_form(facts)}",
    "copy_source_unreadable": "give a SAS with the permission to read it: --source-sas @FILE",
    "copy_was_aborted": "see what is there now: azguard blob show {target}; to copy again, add --etag with its ETag",
    "file_copy_aborted": "another program stopped it; copy again",
    "file_copy_failed": "{target} is as it was; copy again when the source can be read",
    "file_copy_too_slow": "allow more time: --wait 12h",
    "keeping_unknown": "try again; a snapshot may have been made: azguard blob list CONTAINER --include snapshots",
    "no_copy": lambda facts: f"azguard {facts['noun']} copy {_name_form(facts)} {facts['target']} begins one",
    "id_of_snapshot_and_version": "say which of the two: --from snapshot=ID, or --from versionid=ID",
    "nothing_kept": "see what is kept: azguard blob list CONTAINER --prefix NAME --include snapshots,versions",
    "no_such_id_kept": "see what is kept: azguard blob list CONTAINER --prefix NAME --include snapshots,versions",
    "not_in_emulator": "use a real account for this",
    "snapshot_first_needs_version": "name the version that is to be replaced: --etag ETAG; or leave it out",
    "source_tags_need_metadata": (
        "leave --source-if-tags out; or add --no-lineage, with which the service copies both; "
        "blob copy also takes the metadata itself: --metadata KEY=VALUE"
    ),
    "nothing_deleted_kept": "see what is kept: azguard {noun} list --include deleted",
    "several_kept": (
        "name one: --deleted-version; see them: azguard {noun} list --include deleted "
        "--query '[?deleted].[name, deleted_version]' -o tsv"
    ),
    "no_such_permission": "see the key of a file: azguard file show {target}/PATH --query permission_key",
    "undeleted_without_current": (
        "see its versions: azguard blob list CONTAINER --prefix NAME --include versions; "
        "then azguard blob restore {target} --from versionid=ID"
    ),
    # Tables.
    "acl_changed": "look, then decide: azguard {noun} acl get {target}",
    "acl_field_unknown": "its fields are {known}",
    "acl_not_object": (
        '{{"readers": {{"start": "2026-01-01T00:00:00Z", "expiry": "2027-01-01T00:00:00Z", "permission": "r"}}}}'
    ),
    "acl_outcome_unknown": "look before you try again: azguard {noun} acl get {target}",
    "acl_permission_malformed": "use letters of {letters}, in this order",
    "acl_time_malformed": "write for example 2027-01-01T00:00:00Z",
    "annotation_without_property": "add {property}, or leave it out",
    "binary_malformed": "write it in base64",
    "boolean_malformed": "write true or false",
    "datetime_malformed": "write UTC, to 100 ns at most, from the year 1601 on: 2026-11-21T10:00:00.1234567Z",
    "double_malformed": "write a number, or one of the texts NaN Infinity -Infinity",
    "entity_exists": (
        "read it: azguard entity get {target}, then replace or merge; "
        "or write it without a guard: azguard entity upsert with --last-writer-wins"
    ),
    "entity_key_changed": "insert an entity under the other name, then delete this one",
    "entity_not_object": 'an entity looks like {{"price": 3}}',
    "entity_too_large": "keep large values in a blob, and its address here",
    "entity_too_large_with_lineage": "--no-lineage leaves it out; a lost answer can then end as exit 74",
    "filter_literal_open": "a quote within a literal is written twice: ''",
    "filter_number_not_finite": "filter on a number instead",
    "filter_parameter_given_twice": "give each parameter one value",
    "filter_parameter_malformed": (
        "write @name with blanks or brackets around it; in a literal, @ is only a character"
    ),
    "filter_parameter_name_malformed": "use letters, digits and underscores: --param p=eu",
    "filter_parameter_unused": "write @{name} where its value belongs",
    "filter_parameter_without_value": "add --param {name}=VALUE",
    "guid_malformed": "write for example c9da6455-213d-42c9-9a79-3e9149a57833",
    "int32_too_large": 'add "{annotation}": "{type}"',
    "integer_malformed": "write a whole number",
    "integer_too_large": "it has {bits} bits",
    "key_not_string": "the keys are strings: {key}={value}",
    "property_malformed": "write name=text or name:type=value, with a type of: {types}",
    "property_nested": "keep it as a string of JSON, or in properties of its own",
    "property_path_malformed": "write NAME, or NAME@odata.type for its type",
    "property_type_unknown": "its types are {types}",
    "property_typed_twice": "give each property one value and one type",
    "string_not_unicode": "half of a character is no Unicode text: write bytes as Edm.Binary",
    "string_without_quotes": "put it in quotes",
    "transaction_empty": 'write one JSON object on each line: {{"op": "insert", ...}}',
    "transaction_entity_twice": "an entity can be written once in a transaction",
    "transaction_in_two_partitions": "a transaction is within one partition of one table",
    "transaction_item_changed": (
        "see what it is now: azguard entity get {target}; then correct line {line}, also the version in it"
    ),
    "transaction_too_large": "split it; each transaction is all or nothing by itself",
    "type_without_property": "add {property}=…",
    "contents_not_listed": "--with-contents deletes it without looking",
    "entity_other_keys": "leave it out of the entity, or correct the address",
    "entity_bad_etag": "leave it as azguard entity get printed it; or remove it, and name the version with --etag",
    "entity_two_versions": "remove the one under which the entity was not read",
    "entity_not_json": "write for example {example}",
    "delete_copy_without_etag": "leave it out to be guarded by what you last read, or name the version with --etag",
    "line_unknown_key": "its keys are {known}",
    "line_incomplete": "write for example {example}",
    "line_word": '"{name}" is one of: {words}',
    "line_condition_not_text": "leave it out to be guarded by what was read last",
    "line_insert_overwrites": 'to overwrite what is there: "op": "upsert"',
    "line_mode_not_upsert": "leave it out",
    # Queues.
    "claim_taken_over": "there is nothing to do: another worker has the message now",
    "events_not_readable": "name the file that queue work --events wrote; it may be on another machine",
    "message_get_unknown": "wait, then run it again; azguard queue show {target} tells about how many there are",
    "message_move_duplicated": (
        "if its readers do not take each key once, delete one of the two; see azguard message peek {source}"
    ),
    "message_move_unknown": "look before you move it again: azguard message peek {destination}",
    "message_not_text": "--encoding base64 sends any bytes; the reader of the message has to decode it",
    "move_without_destination": "name the queue: azguard queue move {target} TO",
    "moves_not_counted": "set the most to move: --max-messages 1000",
    "moved_to_itself": "name another queue",
    "some_moves_failed": "each is named above; correct the cause, then run it again for those that were not moved",
    "message_put_unknown": (
        "look before you put it again: azguard message peek {target}; readers that take a message once need no look"
    ),
    "message_too_large": "keep large content in a blob, and put its address",
    "message_delete_unknown": "do nothing more with it: it is deleted, or it is received again when its time is over",
    "message_update_unknown": "receive it again when its time is over: azguard message get QUEUE",
    "messages_refused_in_a_row": "correct the command, then put them back: azguard queue move {poison} {queue}",
    "metadata_changed": "look, then decide: azguard {noun} metadata get {target}",
    "never_received": "receive it first: azguard message get {container}; or name the receipt: --pop-receipt R",
    "once_body_not_json": "leave --once-key out, or put messages whose body is JSON",
    "once_key_missing": "try the expression on a message: azguard message peek QUEUE",
    "once_row_foreign": "name a table that workers alone write: azguard table create Once",
    "once_table_missing": "check the name: azguard table list; to create it: azguard table create {target}",
    "poison_queue_missing": "no worker has moved a message there yet; or name another one: --poison-queue QUEUE",
    "places_killed": "the messages come again when their time is over; start the worker again",
    "receipt_stale": "another receiver may have the message now: do nothing more with it",
    "worker_stopped": "correct the cause, then start the worker again; messages that were not handled come again",
    "work_file_not_writable": "choose a file in a folder that is there and that you may write",
}


#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    # Blobs.
    "never_read_before_wait": "{target} was never read here, so there is no version to compare with",
    # Copies.
    "snapshot_first_needs_version": (
        "--snapshot-first needs a write of one version: else another may be replaced than the one that was kept"
    ),
    "source_tags_need_metadata": (
        "{option} and the metadata of the source do not go together: it cannot be known that both are of one version"
    ),
    # Tables.
    "filter_literal_open": "a literal in {option} does not end",
    "filter_parameter_given_twice": "{option} {name} is given twice",
    "filter_parameter_malformed": "{option}: {message}",
    "filter_parameter_name_malformed": "{option}: {message}",
    "filter_parameter_unused": "{option} {name} is not in the filter",
    "filter_parameter_without_value": "{option} has @{name}, which has no value",
}
