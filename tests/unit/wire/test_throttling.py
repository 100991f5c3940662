"""How long a service wants to be left alone, as its answers say."""

import itertools
from collections.abc import Mapping

from azguard.wire import client
from tests.support.cases import cases

DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
HOSTS = (f"https://acc{number}.blob.core.windows.net" for number in itertools.count())


@cases(
    ("status", "headers", "seconds"),
    (503, {"Retry-After": "7"}, 7), (429, {"Retry-After": " 7 "}, 7), (500, {"Retry-After": "7"}, 7),
    (408, {"Retry-After": "7"}, 7), (200, {"Retry-After": "7"}, 0), (412, {"Retry-After": "7"}, 0), (503, {}, 0),
    (503, {"Retry-After": "-7"}, 0), (503, {"Retry-After": "soon"}, 0), (503, {"Retry-After": "9" * 999}, 1e9),
    (503, {"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT", "Date": DATE}, 30),
    (503, {"Retry-After": "Sat, 21 Nov 2026 11:00:30 GMT", "Date": DATE}, 0),
    (503, {"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"}, 0),
)  # fmt: skip
def test_an_answer_that_says_later_says_when(status: int, headers: Mapping[str, str], seconds: float) -> None:
    host = next(HOSTS)
    client.note_pause(f"{host}/site/a?comp=list", status, headers, lambda: 1000.0)
    assert client.find_pause_seconds(host, lambda: 1000.0) == seconds


def test_the_latest_answer_of_each_service_counts_until_its_time_is_over() -> None:
    host, other = next(HOSTS), next(HOSTS)
    for seconds in ("60", "7"):
        client.note_pause(host, 503, {"Retry-After": seconds}, lambda: 1000.0)
    now = iter((1000.0, 1006.0, 1007.0, 1100.0))
    found = [client.find_pause_seconds(host, now.__next__) for _ in range(4)]
    assert (found, client.find_pause_seconds(other, lambda: 1000.0)) == ([7.0, 1.0, 0.0, 0.0], 0.0)
