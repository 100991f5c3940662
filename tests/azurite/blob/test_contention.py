"""Writes that name no version, where another writer is faster each time: they give up, and do not say "changed"."""

import time
from functools import partial

import pytest

from azguard.cli import context
from azguard.cli.errors import SharedState
from tests.faults.rules import operation
from tests.support.blob_world import client
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

_ANYHOW = "--last-writer-wins"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("PUT metadata", ("metadata", "set", "{blob}", "--metadata", "a=1", _ANYHOW)),
        ("PUT properties", ("set-properties", "{blob}", "--content-language", "en", _ANYHOW)),
        ("PUT snapshot", ("snapshot", "{blob}")),
        ("PUT copy", ("copy", "{blob}-copy", "--source", "{blob}")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_write_that_names_no_version_gives_up(
    written: str, words: tuple[str, ...], cli: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = f"{cli.container()}/a"
    rival = client(cli, blob)
    rival.upload_blob(b"old")
    seconds = [0.0]

    def decide(request: Request) -> Fault:
        if operation(request) == written:
            rival.upload_blob(b"theirs", overwrite=True)
            seconds[0] += 20
        return Fault.NONE

    clock = partial(SharedState, clock=lambda: time.monotonic() + seconds[0])
    monkeypatch.setattr(context, "SharedState", clock)
    line = [word.format(blob=blob) for word in words]
    with proxy.running(cli.port, decide) as between:
        ran = cli.through(between.port).call("blob", *line, "--timeout", "60s", "-o", "json")
    assert (ran.code, ran.error["kind"], ran.error["retriable"]) == (75, "gave_up", True), ran.err
