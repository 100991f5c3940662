"""The fields of a SAS that say what it is for."""

from datetime import UTC, datetime

from azguard.accounts.account import read_sas
from tests.support.cases import cases

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@cases(
    ("text", "ends"),
    ("2026-11-21", NOW.replace(hour=0)),
    ("2026-11-21T10:00Z", NOW),
    ("2026-11-21T10%3A00%3A00Z", NOW),
    ("2026-11-21T10:00:00.0000000Z", NOW),
    ("soon", None),
    ("0001-01-01T00:00:00%2B14:00", None),
)
def test_the_times_of_a_sas_have_many_forms(text: str, ends: datetime | None) -> None:
    assert read_sas(f"?sv=2025&se={text}&sig=x").ends == ends


def test_a_sas_ends_with_the_key_of_the_user_who_made_it() -> None:
    found = read_sas("se=2026-11-23&ske=2026-11-21T10:00:00Z&st=2026-11-19&skt=2026-11-20&sig=x")
    assert (found.starts, found.ends) == (NOW.replace(day=20, hour=0), NOW)


def test_the_signature_is_not_among_what_is_read() -> None:
    assert "c2VjcmV0" not in repr(read_sas("sp=r&sig=c2VjcmV0"))
