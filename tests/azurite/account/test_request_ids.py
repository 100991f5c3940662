"""Every transmission has an id of its own, and every service repeats it: by that an answer belongs to its request."""

from collections.abc import Mapping

import pytest

from azguard.wire import client
from tests.support.cli_world import CliWorld

# By "C" the container, queue, table or share of the test is meant; each line is refused or not, the answers count.
LINES = (
    "blob put C/a", "blob get C/a", "blob show C/missing", "blob put C/a --etag 0x1",
    "blob list C", "blob put up C/ -r", "blob put up C/ -r --last-writer-wins", "blob get C/ down -r",
    "safe-update blob:C/a --append z", "lock run C -- true", "blob delete C/a",
    "queue create C", "message put C", "queue show C", "queue delete C --last-writer-wins",
    "table create C", "entity insert C/p/r a=1", "entity get C/p/missing", "entity transaction -", "table list",
)  # fmt: skip
# Unlike Azure, Azurite repeats none of a transaction, and none where it refuses (a lock first asks for the lease of a
# blob that is not there). https://github.com/Azure/Azurite/issues/2265
SILENT = [
    "blob show C/missing",
    "blob put C/a --etag 0x1",
    "lock run C -- true",
    "table create C",
    "entity get C/p/missing",
    "entity transaction -",
]
LINE = '{"op": "insert", "address": "C/q/%d", "entity": {"a": 1}}'
BATCH = "\n".join(LINE % number for number in (1, 2))


def test_each_answer_repeats_the_id_of_its_request_and_no_other(cli: CliWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[str | None, str | None]] = []

    def check(asked: Mapping[str, str], answered: Mapping[str, str]) -> None:
        pairs.append((asked.get(client.REQUEST_ID), answered.get(client.REQUEST_ID)))

    monkeypatch.setattr(client, "check_echo", check)
    name = cli.container().replace("-", "")
    (cli.root / "up").mkdir()
    for number in range(3):
        cli.file(f"up/f{number}", "text")
    silent = []
    for line in LINES:
        before = len(pairs)
        ran = cli.call(*line.replace("C", name).split(), stdin=BATCH.replace("C", name).encode())
        assert len(pairs) > before, (line, ran.err)
        silent += [line] if any(answered is None for _, answered in pairs[before:]) else []
    ids = [asked for asked, _ in pairs]
    assert (silent, None in ids, len(set(ids))) == (SILENT, False, len(ids))
    assert [pair for pair in pairs if pair[0] != pair[1] is not None] == []
