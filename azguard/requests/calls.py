"""One request sent once, and its outcome.

A state-changing request is *committed* (2xx), *refused* (a status that says it did not happen), *not sent* (no
connection came to be) or *in doubt* (everything else). A read has no doubt: it is simply made again, and so
is a page of a listing.

And the service's own time, told by it alone, asked for once and counted on. What takes something from another because
of its age counts from such a time: the Last-Modified of a write of its own, or the time that the service writes into
the text of a refusal. The Date of an answer can be that of a gateway.
"""

import uuid
from collections.abc import Callable, Hashable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, ConfigError, LoginFailed, Unavailable
from azguard.frozen import frozen
from azguard.requests.commits import NotSent, WriteRefused
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import BUSY, NOT_IMPLEMENTED, find_time, service_code, status
from azguard.requests.service_errors import translate
from azguard.wire import client
from azguard.wire.call import call as send
from azguard.wire.client import CONNECT_SECONDS, Limits
from azguard.wire.failures import NoAnswer, NotConnected, Unreadable, says_later
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from azguard.wire.xml import Page

T = TypeVar("T")
M = TypeVar("M", bound=Hashable)
# These say that this transmission did not commit. The last six come from what stands before the service.
# 304 is what a write is answered whose condition on a source did not hold.
REFUSALS = frozenset({304, 400, 401, 403, 404, 409, 412, 413, 416, 405, 407, 411, 414, 415, 431})
# Even with little time left a write that was sent is worth waiting for: asking afterwards costs more. So it gets twice
# the time for asking.
_ANSWER_TO_SETTLE = 2.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class CallOutcome(Enum):
    """The outcome of one transmission."""

    COMMITTED = "committed"
    REFUSED = "refused"
    NOT_SENT = "not sent"
    IN_DOUBT = "in doubt"


@frozen
class CallResult(Generic[T]):
    """The outcome of one transmission, with the answer or the error."""

    outcome: CallOutcome
    answer: T | None = None
    error: BaseException | None = None


def send_once(call: Callable[[], T]) -> CallResult[T]:
    """Make a state-changing request once and return its outcome. Ctrl-C passes through.

    Raises:
        ConfigError: the account cannot be asked like that, which is found before anything is sent.
    """
    try:
        return CallResult(CallOutcome.COMMITTED, call())
    except ConfigError:
        raise
    # Everything that is not known to be something else is a doubt.
    except Exception as error:  # noqa: BLE001  # whatever is wrong with the answer, the request was sent
        return CallResult(outcome_of(error), error=error)


def describe(sent: CallResult[Any]) -> str:
    """Return the outcome of a transmission with its reason, such as ``refused (ConditionNotMet)``."""
    if sent.error is None:
        return sent.outcome.value
    found = status(sent.error)
    if found is None:
        why = "no connection" if sent.outcome is CallOutcome.NOT_SENT else "no answer"
    else:
        why = service_code(sent.error) or f"HTTP {found}"
    return f"{sent.outcome.value} ({why})"


def outcome_of(error: BaseException) -> CallOutcome:
    """Return the outcome of a request that ended with an exception."""
    if isinstance(error, NotSent):
        return CallOutcome.NOT_SENT
    if isinstance(error, WriteRefused):
        return CallOutcome.REFUSED
    found = status(error)
    if found is not None:
        code = service_code(error)
        # What an SMB client has not flushed yet is refused with 408 or 500, and nothing was done.
        is_refused = found in REFUSALS or code in NOT_IMPLEMENTED or code in BUSY
        return CallOutcome.REFUSED if is_refused else CallOutcome.IN_DOUBT
    was_never_sent = isinstance(error, (LoginFailed, NotConnected))
    return CallOutcome.NOT_SENT if was_never_sent else CallOutcome.IN_DOUBT


def write_timeouts(deadline: Deadline, at_least: float | None = None) -> Limits:
    """Return the timeouts of one write, in seconds; ``at_least`` is how long its answer is waited for."""
    patient = _ANSWER_TO_SETTLE * deadline.settle_seconds if at_least is None else at_least
    return Limits(
        min(CONNECT_SECONDS, max(0.5, deadline.remaining)),
        min(deadline.answer_seconds, max(patient, deadline.remaining)),
    )


def hold_back(target: Target, deadline: Deadline) -> None:
    """Wait as long as the service asks to be left alone; not at all where that is past the deadline."""
    seconds = client.find_pause_seconds(target.endpoint)
    if 0 < seconds < deadline.remaining:
        deadline.pause(seconds)


def read(call: Callable[[Limits], T], target: Target, deadline: Deadline) -> T:
    """Make a read, again on transient failures, until it answers, or the deadline passes before it may be asked again.

    ``call`` takes the timeouts.

    Raises:
        AzguardError: the service refused, or did not answer in time.
    """
    pause = _FIRST_PAUSE
    hold_back(target, deadline)
    while True:
        left = max(0.5, deadline.remaining)
        limits = Limits(
            min(CONNECT_SECONDS, left), min(deadline.answer_seconds, left), is_strict=deadline.ends is not None
        )
        try:
            return call(limits)
        except Exception as error:  # whatever a read raises, asking again is safe
            wait = max(pause, client.find_pause_seconds(target.endpoint))
            if not _is_transient(error) or deadline.remaining <= wait:
                raise translate(error, target) from error
        deadline.pause(wait)
        pause = min(_LONGEST_PAUSE, pause * 2)


def follow(
    ask: Callable[[M | None, Limits], tuple[T, M | None]], target: Target, deadline: Deadline
) -> Iterator[tuple[T, bool]]:
    """Yield the pages of a listing, and whether another one follows; a page that failed is asked for again.

    ``ask`` takes the marker of a page, None for the first one, and the timeouts. It returns the page and the marker of
    the next one, None after the last one.

    Raises:
        Unavailable: the service gave no page in time, or one that leads back to an earlier one.
    """
    seen = set[M]()
    marker: M | None = None
    while True:
        page, marker = read(partial(ask, marker), target, deadline.fresh())
        if marker in seen:
            raise Unavailable(
                f"the list of {target} never ends: {target.endpoint} names the same next page again",
                str(target.address),
                reason="listing_never_ends",
            )
        yield page, marker is not None
        if marker is None:
            return
        seen.add(marker)


def walk_pages(
    operation: Operation, target: Target, deadline: Deadline, wrapper: str, *tags: str, **asked: Any
) -> "Iterator[Page]":
    """Yield the pages of a listing in XML, in constant memory, as ``follow`` does; see ``xml.parse_page``."""
    from azguard.wire.xml import parse_page

    def ask(marker: str | None, timeouts: Limits) -> "tuple[Page, str | None]":
        page = parse_page(send(operation, target, timeouts, **asked, marker=marker), wrapper, *tags)
        return page, page.marker

    return (page for page, _ in follow(ask, target, deadline))


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, Unreadable):
        return True
    found = status(error)
    if found is not None:
        return says_later(found) and service_code(error) not in NOT_IMPLEMENTED
    if isinstance(error, NoAnswer):
        return error.may_pass
    return isinstance(error, OSError)


class ServiceClock:
    """The service's clock, told once and counted on by a clock of ours."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heard: tuple[datetime, float] | None = None

    def learn(self, account: Account, kind: Kind, deadline: Deadline) -> None:
        """Ask for the time, unless it was told before; see ``ask_service_time``.

        Raises:
            Unavailable: the service does not answer.
        """
        if self._heard is None and (moment := ask_service_time(account, kind, deadline)) is not None:
            self.set(moment)

    def set(self, moment: datetime) -> None:
        """Take note of a time that the service has just told."""
        self._heard = moment, self._now()

    def read(self, at: float | None = None) -> datetime | None:
        """Return the time at a moment of our clock, by default now; None if it was never told.

        The answer that told it took a while. So this is never later than the service's time.
        """
        if self._heard is None:
            return None
        moment, heard_at = self._heard
        return moment + timedelta(seconds=(self._now() if at is None else at) - heard_at)


def ask_service_time(account: Account, kind: Kind, deadline: Deadline) -> datetime | None:
    """Return the service's time, by a read that it refuses; None if the refusal does not say it.

    Nothing is written, and it takes no permission.

    Raises:
        Unavailable: the service does not answer.
    """
    from azguard.wire.operations import blobs, shares

    # A name that nothing has.
    name = uuid.uuid4().hex
    given: dict[str, Any] = {}
    if kind.service == "file":
        nothing, operation = Target(account, Address(Kind.SHARE, (name,))), shares.SHARE_GET_STATS
    else:
        nothing, operation = Target(account, Address(Kind.BLOB, (name, name))), blobs.BLOB_GET_BLOCK_LIST
        given["blocklisttype"] = "committed"
    try:
        read(lambda timeouts: send(operation, nothing, timeouts, **given), nothing, deadline)
    except Unavailable:
        raise
    except AzguardError as error:  # as was meant
        return find_time(error)
    return None
