"""How a result is shown as one row of a table: a result type lists its columns in ``COLUMNS``."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from azguard.frozen import frozen

#: The metadata of a field that no format prints: only the one line on a terminal is made from it.
UNPRINTED: Mapping[str, bool] = MappingProxyType({"is_unprinted": True})


class Unit(Enum):
    """What a number counts; a column of numbers is flush right."""

    ITEMS = "items"
    BYTES = "bytes"
    SECONDS = "seconds"


@frozen
class Column:
    """One field of a result, as a table shows it."""

    name: str
    #: The heading; None is the name.
    title: str | None = None
    #: Of a number, what it counts.
    unit: Unit | None = None
    #: What says nothing as long as it is so in every row.
    usual: object = None
    #: The values that a reader must not miss.
    marked: tuple[str, ...] = ()
    #: Of several columns that do not fit, the one with the lowest rank is left out first; None is never left out.
    rank: int | None = None
    #: The name of a column that says the same once more, so that it is not shown beside this one.
    replaces: str | None = None
    #: Whether it is a text of any length, of which a table shows the beginning in one line.
    is_cut: bool = False


CHECK = Column(name="check")
VERDICT = Column(name="verdict", marked=("differs",))
DETAIL = Column(name="detail", is_cut=True)
# What is left out of a narrow table, in this order; the address and the state never are.
NAME = Column(name="name", replaces="address")
ADDRESS = Column(name="address")
STATE = Column(name="state", marked=("held", "changed", "vanished", "leased", "expired", "unanswered", "unknown"))
ETAG = Column(name="etag", rank=0)
FILE = Column(name="file", rank=1)
CLOCK = Column(name="clock", usual="service", rank=2)
HOLDER = Column(name="holder", rank=12)
CONTENT_TYPE = Column(name="content_type", title="type", rank=4)
UNTIL = Column(name="until", rank=5)
CONFIRMED = Column(name="confirmed", rank=6)
LAST_MODIFIED = Column(name="last_modified", rank=7)
LEASE_STATE = Column(name="lease_state", title="lease", usual="available", marked=("leased", "breaking"), rank=8)
KIND = Column(name="kind", usual="azguard", rank=6)
HOLDING_STATE = Column(name="state", marked=("held", "breaking"))
HOLDING_SINCE = Column(name="since", rank=5)
HOLDING_REASON = Column(name="reason", rank=9, is_cut=True)
HOLDING_FENCE = Column(name="fence", unit=Unit.ITEMS, rank=4)
ALIVE = Column(name="alive", rank=7)
ENDS = Column(name="ends", rank=3)
CHANGE = Column(name="change")
CONTENT_LENGTH = Column(name="content_length", title="bytes", unit=Unit.BYTES, rank=9)
POSITION = Column(name="position", title="at byte", unit=Unit.BYTES, rank=9)
APPENDED_BYTES = Column(name="appended_bytes", title="appended", unit=Unit.BYTES, rank=9)
BLOCK_ID = Column(name="block_id")
BLOCK_STATE = Column(name="state", marked=("uncommitted",))
SIZE = Column(name="size", unit=Unit.BYTES)
OFFSET = Column(name="offset", title="at byte", unit=Unit.BYTES, rank=9)
WRITTEN_BYTES = Column(name="written_bytes", title="written", unit=Unit.BYTES, rank=9)
RANGE_START = Column(name="start", unit=Unit.BYTES)
RANGE_END = Column(name="end", unit=Unit.BYTES)
RANGE_LENGTH = Column(name="length", unit=Unit.BYTES, rank=13)
CLEARED = Column(name="cleared", usual=False)
FENCE = Column(name="fence", unit=Unit.ITEMS, rank=10)
AGE = Column(name="age", unit=Unit.SECONDS, rank=11)
PID = Column(name="pid", rank=12)
SINCE = Column(name="since")
ENDED = Column(name="ended")
HOLDER_NAME = Column(name="holder")
RUN = Column(name="run", rank=12)
EXIT_STATUS = Column(name="exit_status", title="exit", unit=Unit.ITEMS)
BROKEN_BY = Column(name="broken_by")
BREAK_REASON = Column(name="break_reason", is_cut=True)
SECONDS_LEFT = Column(name="seconds_left", title="left", unit=Unit.SECONDS, rank=11)
HELD_BY = Column(name="held_by", title="holder", rank=12)
LEASE_ID = Column(name="lease_id", rank=13)
DURATION = Column(name="duration", unit=Unit.SECONDS, rank=11)
MESSAGES = Column(name="approximate_message_count", title="messages, about", unit=Unit.ITEMS, rank=9)
NEXT_VISIBLE = Column(name="time_next_visible", title="visible again", rank=9)
DEQUEUES = Column(name="dequeue_count", title="received", unit=Unit.ITEMS, rank=8)
DESTINATION = Column(name="destination")
MOVED = Column(name="moved", unit=Unit.ITEMS)
CONTENT = Column(name="content", is_cut=True)
TEXT = Column(name="text", is_cut=True)
DECODED = Column(name="decoded", is_cut=True, rank=7)
COPY_STATUS = Column(name="copy_status", title="copy", marked=("pending", "aborted", "failed"))
SNAPSHOT = Column(name="snapshot")
VERSION = Column(name="version_id", title="version")
TYPE = Column(name="type")
NEXT_MARKER = Column(name="next_marker", title="next marker")
LEGAL_HOLD = Column(name="legal_hold", title="legal hold", usual=False)
IMMUTABLE_UNTIL = Column(name="immutable_until", title="immutable until")
POLICY_MODE = Column(name="policy_mode", title="policy")
DELETED_VERSION = Column(name="deleted_version", title="deleted version")
PERMISSION_KEY = Column(name="permission_key", title="key")
PERMISSION = Column(name="permission", is_cut=True)
ATTRIBUTES = Column(name="attributes", rank=9)
QUOTA = Column(name="quota", title="GiB", unit=Unit.ITEMS, rank=9)
OUTCOME = Column(name="outcome", rank=11)
TREE_OUTCOME = Column(name="outcome", marked=("failed", "unknown", "not tried", "would refuse"))
REASON = Column(name="reason", rank=10)
HANDLE_PATH = Column(name="path")
HANDLE_ID = Column(name="handle_id", title="handle")
CLIENT = Column(name="client")
CLIENT_NAME = Column(name="client_name", title="machine", rank=9)
ACCESS = Column(name="access")
OPENED = Column(name="opened", rank=10)
CLOSED = Column(name="closed", unit=Unit.ITEMS)
FAILED = Column(name="failed", unit=Unit.ITEMS, usual=0)
