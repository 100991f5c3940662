"""The service's clock: the only clock that all users of a lease share.

The Date of an answer can be that of a gateway with a wrong clock. So it is good enough to be shown, and is not believed
where it is proved wrong. What takes something from another because of its age counts from a time that comes from the
service itself: the Last-Modified of a write of its own, or the time that the service writes into the text of a refusal.
"""

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import Account
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Unavailable
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline

#: The service accepts a request that is signed with a key if its date is at most so far from the service's clock.
CLOCK_SKEW = timedelta(minutes=15)
# Source: https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
_TOLD = re.compile(r"\bTime:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
_REFUSED_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Answers:
    """Hears the answers to one call of the SDK that is no download: pass ``hear`` as its ``raw_response_hook``."""

    def __init__(self) -> None:
        #: The Date of the last answer, in whole seconds; None if it has none, or one that is proved wrong.
        self.date: datetime | None = None
        #: When the service wrote the last answer, if that was a refusal that says so.
        self.refused_at: datetime | None = None

    def hear(self, response: Any) -> None:
        """Note the times of one answer."""
        answer = response.http_response
        date = parse(answer.headers.get("Date"))
        self.date = None if date is None or _is_wrong(date, answer) else date
        is_refused = answer.status_code >= HTTPStatus.BAD_REQUEST
        self.refused_at = find_time(answer.body().decode(errors="replace")) if is_refused else None


class ServiceClock:
    """The service's clock, told once and counted on by a clock of ours."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heard: tuple[datetime, float] | None = None

    def learn(self, account: Account, kind: Kind, deadline: Deadline) -> None:
        """Ask for the time, unless it was told before; see ``ask``.

        Raises:
            Unavailable: the service does not answer.
        """
        if self._heard is None and (moment := ask(account, kind, deadline)) is not None:
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


def ask(account: Account, kind: Kind, deadline: Deadline) -> datetime | None:
    """Return the service's time, by a read that it refuses; None if the refusal does not say it.

    Nothing is written, and it takes no permission.

    Raises:
        Unavailable: the service does not answer.
    """
    # A name that nothing has.
    name = uuid.uuid4().hex
    ask_nothing: Any
    if kind.service == "file":
        nothing = Address(Kind.SHARE, (name,))
        ask_nothing = account.share(nothing).get_share_stats
    else:
        nothing = Address(Kind.BLOB, (name, name))
        ask_nothing = account.blob(nothing).get_block_list
    answers = Answers()
    try:
        read(
            lambda timeouts: ask_nothing(raw_response_hook=answers.hear, **timeouts), Target(account, nothing), deadline
        )
    except Unavailable:
        raise
    except AzguardError:
        pass  # As was meant.
    return answers.refused_at


def find_time(text: str) -> datetime | None:
    """Return the time in the text of a refusal; None if it has none."""
    found = _TOLD.search(text)
    try:
        return None if found is None else datetime.fromisoformat(found[1])
    except ValueError:
        return None


def parse(text: str | None) -> datetime | None:
    """Return the moment that a Date header names, or None if it is missing or malformed."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _is_wrong(date: datetime, answer: Any) -> bool:
    """Return whether a Date is proved wrong: the service accepted a key, and our clock says something else."""
    headers = answer.request.headers
    sent = parse(headers.get("x-ms-date"))
    is_accepted = headers.get("Authorization", "").startswith("SharedKey") and answer.status_code not in _REFUSED_KEY
    return is_accepted and sent is not None and abs(date - sent) > CLOCK_SKEW
