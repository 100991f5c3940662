"""The words of the command line for queues and messages: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "message_get_unknown": "wait, then run it again; azguard queue show {target} tells about how many there are",
    "message_not_text": "--encoding base64 sends any bytes; the reader of the message has to decode it",
    "message_put_unknown": (
        "look before you put it again: azguard message peek {target}; readers that take a message once need no look"
    ),
    "message_too_large": "keep large content in a blob, and put its address",
    "message_update_unknown": "receive it again when its time is over: azguard message get QUEUE",
    "metadata_changed": "azguard queue metadata get {target}, then decide",
    "never_received": "receive it first: azguard message get {container}; or name the receipt: --pop-receipt R",
    "receipt_stale": "the last one who received it has the receipt that is good; do nothing more with this message",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
