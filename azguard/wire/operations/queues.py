"""Operations on queues and messages."""

from azguard.wire.rows import Guard, Part, changes, creates, free, reads

_RECEIPT = "the pop receipt takes their place"

# Queues have neither ETags nor leases; the pop receipt of a message is its version.
QUEUE_CREATE = creates("queue.create", "create-queue4")
QUEUE_DELETE = changes("queue.delete", "delete-queue3")
QUEUE_GET_METADATA = reads("queue.get_metadata", "get-queue-metadata")
QUEUE_SET_METADATA = changes("queue.set_metadata", "set-queue-metadata", guard=Guard.COMPARE, part=Part.METADATA)
QUEUE_GET_ACL = reads("queue.get_acl", "get-queue-acl")
QUEUE_SET_ACL = changes("queue.set_acl", "set-queue-acl", guard=Guard.COMPARE, part=Part.ACL)
QUEUE_PUT_MESSAGE = free("queue.put_message", "put-message")
# A GET that writes: it hides the messages and gives them new receipts.
QUEUE_GET_MESSAGES = free("queue.get_messages", "get-messages")
QUEUE_PEEK_MESSAGES = reads("queue.peek_messages", "peek-messages")
QUEUE_UPDATE_MESSAGE = free("queue.update_message", "update-message", remark=_RECEIPT)
QUEUE_DELETE_MESSAGE = free("queue.delete_message", "delete-message2", remark=_RECEIPT)
QUEUE_CLEAR_MESSAGES = changes("queue.clear_messages", "clear-messages")
