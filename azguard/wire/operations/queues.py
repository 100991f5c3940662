"""Operations on queues and messages."""

from azguard.wire.rows import (
    LIST,
    XML,
    Guard,
    Settlement,
    changes,
    creates,
    free,
    reads,
    sets_acl,
    sets_metadata,
    speaks,
)

_RECEIPT = "the pop receipt takes their place"
_MESSAGES = "{name}/messages"

# Queues have neither ETags nor leases; the pop receipt of a message is its version.
# A queue with the same metadata answers 204: only a copy of the same request has them, so its outcome is in doubt.
QUEUE_CREATE = creates("queue.create", "create-queue4", http=speaks("PUT", sends="metadata", ok=(201,)))
QUEUE_DELETE = changes("queue.delete", "delete-queue3", settle=Settlement.NOTHING, http=speaks("DELETE", ok=(204,)))
QUEUE_LIST = reads("queue.list", "list-queues1", http=LIST)
QUEUE_GET_METADATA = reads(
    "queue.get_metadata", http=speaks("GET", "metadata", returns="metadata approximate_message_count")
)
QUEUE_SET_METADATA = sets_metadata(
    "queue.set_metadata", guard=Guard.COMPARE, http=speaks("PUT", "metadata", sends="metadata", ok=(204,))
)
QUEUE_GET_ACL = reads("queue.get_acl", http=speaks("GET", "acl"))
QUEUE_SET_ACL = sets_acl("queue.set_acl", guard=Guard.COMPARE, http=speaks("PUT", "acl", headers=XML, ok=(204,)))
QUEUE_PUT_MESSAGE = free(
    "queue.put_message",
    "put-message",
    settle=Settlement.NOTHING,
    http=speaks("POST", path=_MESSAGES, sends="visibilitytimeout messagettl", headers=XML, ok=(201,)),
)
# A GET that writes: it hides the messages and gives them new receipts.
QUEUE_GET_MESSAGES = free(
    "queue.get_messages",
    "get-messages",
    settle=Settlement.NOTHING,
    http=speaks("GET", path=_MESSAGES, sends="numofmessages visibilitytimeout"),
)
QUEUE_PEEK_MESSAGES = reads(
    "queue.peek_messages",
    "peek-messages",
    http=speaks("GET", path=_MESSAGES, query=(("peekonly", "true"),), sends="numofmessages"),
)
QUEUE_UPDATE_MESSAGE = free(
    "queue.update_message",
    "update-message",
    remark=_RECEIPT,
    settle=Settlement.RECEIPT,
    http=speaks(
        "PUT", sends="popreceipt visibilitytimeout body_type", returns="popreceipt time_next_visible", ok=(204,)
    ),
)
QUEUE_DELETE_MESSAGE = free(
    "queue.delete_message",
    "delete-message2",
    remark=_RECEIPT,
    settle=Settlement.RECEIPT,
    http=speaks("DELETE", sends="popreceipt", ok=(204,)),
)
QUEUE_CLEAR_MESSAGES = changes(
    "queue.clear_messages",
    "clear-messages",
    settle=Settlement.NOTHING,
    http=speaks("DELETE", path=_MESSAGES, ok=(204,)),
)
