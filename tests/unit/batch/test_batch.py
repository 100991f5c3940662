"""Lines as they stand in a file; which line may begin, and in which order lines are told."""

import codecs
import io
import os
import pty
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from azguard import batch
from azguard.batch import Address, BatchSettings, Line, LineEnd, OrderedJobs, TextLine
from azguard.cli.errors import Facts, SharedState
from azguard.cli.parsing import parser
from azguard.commands.batch.lines import LineRunner
from azguard.errors import ConfigError, UsageError
from azguard.resources.pool import Done, PoolEnd
from tests.support.cases import cases

A, B, SITE = ("blob", "site", "a"), ("blob", "site", "b"), ("blob", "site")
_LONGEST_SECONDS = 30.0


@cases(
    "text, words",
    ("blob show site/a", ("blob", "show", "site/a")),
    ("blob put 'site/a b' --content \"it's\"", ("blob", "put", "site/a b", "--content", "it's")),
    (r"blob put site/a --etag '\"0x1\"'", ("blob", "put", "site/a", "--etag", r"\"0x1\"")),
    ("blob put site/a --etag '\"0x1\"'", ("blob", "put", "site/a", "--etag", '"0x1"')),
    ("blob  show\tsite/a\x0bb\xa0c", ("blob", "show", "site/a\x0bb\xa0c")),
    ("blob put site/a#1 --content $HOME/*", ("blob", "put", "site/a#1", "--content", "$HOME/*")),
    ("azguard blob show site/a\r\n", ("blob", "show", "site/a")),
    ("  version  ", ("version",)),
    ('["blob", "show", "a b"]', ("blob", "show", "a b")),
    ('["azguard", "version"]', ("version",)),
    ('{"args": ["version"]}', ("version",)),
    ("blob show site/ä", ("blob", "show", "site/ä")),
)
def test_a_line_is_words_as_in_a_shell_or_json(text: str, words: tuple[str, ...]) -> None:
    assert batch.parse(TextLine(1, text.encode())) == Line(1, words)


def test_an_object_has_a_name_and_stdin_too() -> None:
    text = b'{"id": "first", "args": ["blob", "put", "site/a"], "stdin": "{}\\n"}'
    assert batch.parse(TextLine(7, text)) == Line(7, ("blob", "put", "site/a"), "{}\n", "first")


@cases(
    "content, message",
    (b'blob put "site/a', "no command line: No closing quotation"),
    (b"blob \\", "no command line: No escaped character"),
    (b'["blob"', "no JSON: Expecting ',' delimiter at character 8"),
    (b"[" * 100_000, "no JSON: it is nested too deeply"),
    (b"[]", '"args" is not a list of texts'),
    (b'["blob", 1]', '"args" is not a list of texts'),
    (b'{"stdin": ""}', '"args" is not a list of texts'),
    (b'{"args": "blob show site/a"}', '"args" is not a list of texts'),
    (b'{"args": ["version"], "stdin": {}}', '"stdin" is not a text'),
    (b'{"args": ["version"], "id": 7}', '"id" is not a text'),
    (b'{"args": ["version"], "Id": "7"}', "the key 'Id' means nothing here"),
    (b'{"args": ["version"], "args": ["help"]}', "a key is given twice"),
    (b"blob show \xff", "no UTF-8: invalid start byte at byte 11"),
)
def test_another_line_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        batch.parse(TextLine(1, content))
    assert refused.value.message.startswith(message)


def test_empty_lines_and_remarks_are_left_out_and_counted() -> None:
    found = list(batch.read(io.BytesIO(b"\n# first\n  # second\nversion\n\t\nhelp")))
    assert found == [TextLine(4, b"version"), TextLine(6, b"help")]


@cases("first, found", (b"version\n", [b"version"]), (b"# remark\n", []), (b"\n", []))
def test_a_byte_order_mark_is_no_part_of_the_first_line(first: bytes, found: list[bytes]) -> None:
    assert [line.content for line in batch.read(io.BytesIO(codecs.BOM_UTF8 + first))] == found


def test_a_line_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_LONGEST_LINE", 10)
    with pytest.raises(UsageError, match="line 2: longer than 10 bytes"):
        list(batch.read(io.BytesIO(b"version\nblob show a\n")))


def test_a_pipe_is_read_twice_and_a_file_is_not_copied() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"version\n")
    os.close(writes)
    with open(reads, "rb") as pipe, batch.keep(pipe) as kept:
        assert [_read_twice(kept), kept is pipe] == [[b"version\n"] * 2, False]
    with tempfile.TemporaryFile() as file, batch.keep(file) as kept:
        assert kept is file


def test_one_end_of_file_ends_what_is_typed_on_a_terminal() -> None:
    reads, writes = pty.openpty()
    os.write(reads, b"version\n\x04help\n")
    with open(writes, "rb") as terminal, batch.keep(terminal) as kept:
        assert kept.read() == b"version\n"
    os.close(reads)


def test_a_full_disk_is_told_with_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "wb"))
    reads, writes = os.pipe()
    os.write(writes, b"version\n")
    os.close(writes)
    with open(reads, "rb") as pipe, pytest.raises(ConfigError) as refused, batch.keep(pipe):
        pass
    assert (refused.value.message, refused.value.reason) == (
        f"{tempfile.gettempdir()} cannot be written: No space left on device",
        "temporary_folder_fails",
    )


def _read_twice(stream: Any) -> list[bytes]:
    found = []
    for _ in range(2):
        stream.seek(0)
        found.append(stream.read())
    return found


@cases(
    "line, addresses",
    ("blob list site", [SITE]),
    ("blob show site/a", [A]),
    ("blob copy site/a site/b", [A, B]),
    ("blob get site/ copy -r", [SITE]),
    ("blob delete site/v -r", [SITE]),
    ("blob delete site/v1/ -r", [(*SITE, "v1")]),
    ("blob put dist site/v1/ -r", [(*SITE, "v1")]),
    ("file put team/a", [("file", "team", "A")]),
    ("file list team", [("file", "team")]),
    ("dir list team/a", [("file", "team", "A")]),
    ("entity get Orders/eu/1", [("table", "orders", "eu", "1")]),
    ("lock break deploy --yes", [("blob", "locks", "deploy")]),
    ("lock list site --held", [SITE]),
    ("container list", []),
)
def test_a_line_names_addresses(line: str, addresses: list[Address]) -> None:
    own = parser.parse(Facts(), ["batch"])
    assert own is not None
    work = LineRunner(own.env, SharedState()).prepare(TextLine(1, line.encode()))
    assert (work.refusal, list(work.addresses)) == (None, addresses)


def test_messages_follow_their_queue_and_not_each_other() -> None:
    own = parser.parse(Facts(), ["batch"])
    assert own is not None
    runner = LineRunner(own.env, SharedState())
    works = [runner.prepare(TextLine(number, b"message put jobs x")) for number in (1, 2)]
    (first,), (second,) = (each.addresses for each in works)
    assert (first[:2], second[:2], len(first), first != second) == (("queue", "jobs"), ("queue", "jobs"), 3, True)


@dataclass
class Traced:
    """Lines that note their begin and their end."""

    steps: list[str] = field(default_factory=list)
    told: list[int] = field(default_factory=list)

    def run(self, works: Any, **settings: Any) -> PoolEnd:
        def tell(done: Done) -> None:
            self.told.append(done.result.line)

        return batch.run(works, BatchSettings(**settings), tell, lambda: None)


@dataclass
class Step:
    """A line, which may wait for a moment to come, and may fail."""

    traced: Traced
    line: int
    addresses: tuple[Address, ...] = ()
    until: threading.Event | None = None
    exit_code: int = 0
    then: threading.Event | None = None

    def run(self) -> LineEnd:
        self.traced.steps.append(f"+{self.line}")
        if self.until is not None:
            assert self.until.wait(_LONGEST_SECONDS)
        self.traced.steps.append(f"-{self.line}")
        if self.then is not None:
            self.then.set()
        return LineEnd(None, self.line, self.exit_code)


@cases(
    "first, second, follow",
    ([A], [A], True),
    ([SITE], [A], True),
    ([A], [SITE], True),
    ([A, B], [B], True),
    ([B], [A, B], True),
    ([A, SITE], [SITE, A], True),
    ([A], [B], False),
    ([A], [("file", "site", "a")], False),
    ([], [A], False),
    ([A], [], False),
    ([("blob", "site", "ab")], [A], False),
)
def test_lines_of_one_address_follow_each_other(first: list[Address], second: list[Address], follow: bool) -> None:
    traced, gate = Traced(), threading.Event()
    # The second opens the gate for the first if it need not wait; else the third does, once the first has begun.
    works = [
        Step(traced, 1, tuple(first), until=gate),
        Step(traced, 2, tuple(second), then=None if follow else gate),
        Step(traced, 3, then=gate if follow else None),
    ]
    traced.run(works, jobs=3)
    ends = [step for step in traced.steps if step in ("-1", "+2")]
    assert ends == (["-1", "+2"] if follow else ["+2", "-1"])


def test_many_lines_of_one_address_keep_their_order_and_the_places_are_left() -> None:
    traced = Traced()
    works = [Step(traced, number, ((A, SITE, B)[number % 3],)) for number in range(300)]
    with patch.object(batch, "MOST_AHEAD", 20):
        ended = traced.run(works, jobs=8)
    of_site = [step for step in traced.steps if int(step[1:]) % 3 == 1]
    assert of_site == [f"{sign}{number}" for number in range(1, 300, 3) for sign in "+-"]
    assert ended.counts == {"done": 300}


def test_a_job_that_has_ended_keeps_none_of_those_that_followed_it() -> None:
    traced = Traced()
    jobs = OrderedJobs([Step(traced, 0, (A,)), Step(traced, 1, (A,)), Step(traced, 2, (B,))], lambda ended: False)
    first, _other = next(jobs), next(jobs)
    followers = [each.position for each in first.followers]
    first.run()
    assert (followers, first.followers, next(jobs).position) == ([1], [], 1)


def test_one_job_at_a_time_is_enough() -> None:
    traced = Traced()
    traced.run([Step(traced, number, (A,)) for number in range(10)], jobs=1)
    assert traced.told == list(range(10))


def test_ordered_ends_are_told_in_the_order_of_their_lines() -> None:
    traced, gate = Traced(), threading.Event()
    works = [Step(traced, 1, until=gate), *(Step(traced, number) for number in range(2, 9)), Step(traced, 9, then=gate)]
    traced.run(works, jobs=2, is_ordered=True)
    assert (traced.told, traced.steps[-1]) == (list(range(1, 10)), "-1")


def test_no_line_begins_after_one_that_failed() -> None:
    traced = Traced()
    works = [Step(traced, number, exit_code=42 * (number == 3)) for number in range(10)]
    ended = traced.run(works, jobs=1, stops_on_error=True)
    assert (traced.told, ended.counts) == ([0, 1, 2, 3], {"done": 3, "failed": 1})


def test_no_line_is_read_far_ahead_of_one_that_has_not_ended() -> None:
    traced, gate, too_early = Traced(), threading.Event(), []

    def supply() -> Iterator[Step]:
        yield Step(traced, 0, until=gate)
        for number in range(1, 100):
            if number > 5 and "-0" not in traced.steps:
                too_early.append(number)
            yield Step(traced, number, then=gate if number == 5 else None)

    with patch.object(batch, "MOST_AHEAD", 5):
        waiting = threading.Thread(target=lambda: traced.run(supply(), jobs=2))
        waiting.start()
        waiting.join(_LONGEST_SECONDS)
    assert (len(traced.told), too_early) == (100, [])


def test_an_error_of_the_supply_ends_all_and_is_told() -> None:
    traced = Traced()

    def supply() -> Iterator[Step]:
        yield Step(traced, 1, (A,))
        yield Step(traced, 2, (A,))
        raise OSError("gone")

    ended = traced.run(supply(), jobs=4, is_ordered=True)
    assert isinstance(ended.interruption, OSError)


@cases("code, outcome", (0, "done"), (42, "failed"), (74, "unknown"))
def test_an_end_counts_by_its_status(code: int, outcome: str) -> None:
    assert LineEnd(None, 1, code).outcome == outcome
