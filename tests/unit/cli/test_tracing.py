"""What ``-v`` tells holds no credential."""

import pytest

from azguard.cli.output import results
from azguard.cli.output.results import Output
from azguard.wire import listeners

SIGNATURE = "c2lnbmF0dXJlLW9mLWEtc2FzLWluLWEtdGVzdA%3D%3D"


def test_a_request_is_told_without_its_signature(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output("json", is_verbose=True)
    with results.trace_to(out, {"sas_token": f"sv=1&sig={SIGNATURE}"}, {}):
        listeners.tell_listeners(
            f"GET https://a.blob.core.windows.net/site/a?sv=1&sig={SIGNATURE}: 200 in 3 ms {SIGNATURE}"
        )
    told = capsys.readouterr().err
    assert (SIGNATURE in told, "GET https://a.blob.core.windows.net/site/a?***: 200 in 3 ms ***" in told) == (
        False,
        True,
    )
