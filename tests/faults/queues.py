"""Queues in the matrix: what is there, and a rival who writes the metadata, or receives a message."""

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import Exists
from azguard.requests.deadline import Deadline
from azguard.resources import lifecycles, parts, properties
from azguard.updates import update
from azguard.updates.compared import ComparedMetadata
from azguard.updates.resource import UpdatePlan
from tests.faults.matrix import Rival
from tests.support import sdk_clients

_THEIRS = {"theirs": "1"}
_OP = "rivalrivalrivalr"


def content(direct: Account, name: str) -> bytes | None:
    """Return the messages of a queue that can be seen, one after the other; None if it is gone."""
    try:
        found = sdk_clients.queue(direct, Address(Kind.QUEUE, (name,))).peek_messages(max_messages=32)
    except ResourceNotFoundError:
        return None
    # A message that the network has sent twice is there twice.
    return "".join(dict.fromkeys(each.content for each in found)).encode()


def compete(direct: Account, name: str, rival: Rival) -> None:
    """Make the queue or, if it is there, write its metadata as another writer, and receive what can be received."""
    address = Address(Kind.QUEUE, (name,))
    client, target = sdk_clients.queue(direct, address), Target(direct, address)
    if rival is Rival.AZGUARD:
        try:
            lifecycles.create(target, _THEIRS, Deadline(), _OP)
        except Exists:
            metadata = ComparedMetadata(target, properties.fetch, parts.send_metadata)
            update.update(metadata, UpdatePlan(lambda _: b'{"theirs": "1"}', _OP), Deadline())
        return
    try:
        client.create_queue(metadata=_THEIRS)
    except ResourceExistsError:
        client.set_queue_metadata(_THEIRS)
    client.receive_message(visibility_timeout=300)
