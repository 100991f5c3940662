"""The words of the command line for queues and messages: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "claim_taken_over": "there is nothing to do: another worker has the message now",
    "events_not_readable": "name the file that queue work --events wrote; it may be on another machine",
    "message_get_unknown": "wait, then run it again; azguard queue show {target} tells about how many there are",
    "message_move_duplicated": (
        "if its readers do not take each key once, delete one of the two; see azguard message peek {source}"
    ),
    "message_move_unknown": "look before you move it again: azguard message peek {destination}",
    "message_not_text": "--encoding base64 sends any bytes; the reader of the message has to decode it",
    "move_without_destination": "name the queue: azguard queue move {target} TO",
    "moves_not_counted": "set the most to move: --count 1000",
    "moved_to_itself": "name another queue",
    "some_moves_failed": "each is named above; correct the cause, then run it again for those that were not moved",
    "message_put_unknown": (
        "look before you put it again: azguard message peek {target}; readers that take a message once need no look"
    ),
    "message_too_large": "keep large content in a blob, and put its address",
    "message_delete_unknown": "do nothing more with it: it is deleted, or it is received again when its time is over",
    "message_update_unknown": "receive it again when its time is over: azguard message get QUEUE",
    "messages_refused_in_a_row": "correct the command, then put them back: azguard queue move {poison} {queue}",
    "metadata_changed": "look, then decide: azguard queue metadata get {target}",
    "never_received": "receive it first: azguard message get {container}; or name the receipt: --pop-receipt R",
    "once_body_not_json": "leave --once-key out, or put messages whose body is JSON",
    "once_key_malformed": "an expression such as order.id; see https://jmespath.org",
    "once_key_missing": "try the expression on a message: azguard message peek QUEUE",
    "once_row_foreign": "name a table that workers alone write: azguard table create Once",
    "once_table_missing": "check the name: azguard table list; to create it: azguard table create {target}",
    "poison_queue_missing": "no worker has moved a message there yet; or name another one: --poison-queue QUEUE",
    "places_killed": "the messages come again when their time is over; start the worker again",
    "receipt_stale": "the last one who received it has the receipt that is good; do nothing more with this message",
    "worker_stopped": "correct the cause, then start the worker again; messages that were not handled come again",
    "work_file_not_writable": "choose a file in a folder that is there and that you may write",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
