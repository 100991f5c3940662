"""The times and attributes of files as they are typed."""

import pytest

from azguard.cli.options.content import _read_time
from azguard.errors import UsageError
from tests.support.cases import cases


@cases("text", "soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        _read_time(text, "--written")
