"""Queues in the matrix: what is there."""

from azure.core.exceptions import ResourceNotFoundError

from azguard.accounts.account import Account
from azguard.address import Address, Kind


def content(direct: Account, name: str) -> bytes | None:
    """Return the messages of a queue that can be seen, one after the other; None if it is gone."""
    try:
        found = direct.queue(Address(Kind.QUEUE, (name,))).peek_messages(max_messages=32)
    except ResourceNotFoundError:
        return None
    # A message that the network has sent twice is there twice.
    return "".join(dict.fromkeys(each.content for each in found)).encode()
