"""The term of a lease, as it is typed."""

import pytest

from azguard.cli.options.leases import TERM
from azguard.errors import UsageError
from tests.support.cases import cases


@cases("text", "-1", "infinite", "Infinite")
def test_a_lease_for_ever_that_is_asked_for_as_a_duration_is_answered_with_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=f"--lease-duration {text}: a lease for ever") as refused:
        TERM.read(text, "--lease-duration")
    assert refused.value.hint == "--infinite"


@cases(("text", "seconds"), ("30s", 30), ("1m", 60), ("15", 15))
def test_a_term_is_in_seconds(text: str, seconds: int) -> None:
    assert TERM.read(text, "--lease-duration") == seconds
