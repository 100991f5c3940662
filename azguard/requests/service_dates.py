"""What the answers of the service say about its clock, the only one that all users of a lease share.

The Date of an answer can be that of a gateway with a wrong clock. So it is good enough to be shown, and is not believed
where it is proved wrong. See ``service_clock`` for what takes something from another because of its age.
"""

import re
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from azguard import times

#: The service accepts a request that is signed with a key if its date is at most so far from the service's clock.
CLOCK_SKEW = timedelta(minutes=15)
# Source: https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
_TOLD = re.compile(r"Time:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
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
        date = times.find_http_date(answer.headers.get("Date"))
        self.date = None if date is None or _is_wrong(date, answer) else date
        is_refused = answer.status_code >= HTTPStatus.BAD_REQUEST
        self.refused_at = find_time(answer.body().decode(errors="replace")) if is_refused else None


def find_time(text: str) -> datetime | None:
    """Return the time in the text of a refusal; None if it has none."""
    found = _TOLD.search(text)
    try:
        return None if found is None else datetime.fromisoformat(found[1])
    except ValueError:
        return None


def _is_wrong(date: datetime, answer: Any) -> bool:
    """Return whether a Date is proved wrong: the service accepted a key, and our clock says something else."""
    headers = answer.request.headers
    sent = times.find_http_date(headers.get("x-ms-date"))
    is_accepted = headers.get("Authorization", "").startswith("SharedKey") and answer.status_code not in _REFUSED_KEY
    return is_accepted and sent is not None and abs(date - sent) > CLOCK_SKEW
