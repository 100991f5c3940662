"""The service's own time: told by it alone, asked for once and counted on.

What takes something from another because of its age counts from such a time: the Last-Modified of a write of its own,
or the time that the service writes into the text of a refusal. The Date of an answer can be that of a gateway.
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Unavailable
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers


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
