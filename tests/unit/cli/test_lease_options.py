"""The term of a lease, as it is typed."""

import pytest

from azguard.cli.options import leases
from azguard.errors import UsageError
from tests.support.cases import cases


@cases("text", ["-1", "infinite", "Infinite"])
def test_a_lease_for_ever_that_is_asked_for_as_a_duration_is_answered_with_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=f"--lease-duration {text}: a lease for ever") as refused:
        leases.term(text, infinite=False)
    assert refused.value.hint == "--infinite"


@cases(("text", "infinite", "seconds"), [("30s", False, 30), (None, False, 60), (None, True, None)])
def test_a_term_is_in_seconds_or_none(text: str | None, infinite: bool, seconds: int | None) -> None:
    assert leases.term(text, infinite=infinite) == seconds
