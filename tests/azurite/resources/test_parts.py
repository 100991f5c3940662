"""Metadata, tags and access policies: read, replaced and kept from others in the same way, whatever they are of."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import blob_world, queue_world, table_world
from tests.support.cli_world import CliWorld, Ran

READERS = {"start": "2026-01-01T00:00:00.0000000Z", "expiry": "2027-01-01T00:00:00.1234567Z", "permission": "r"}
OURS = {"metadata": {"owner": "me"}, "tags": {"owner": "me"}, "policies": {"readers": READERS}}


@dataclass(frozen=True)
class Part:
    """A part of a resource: the command that reads and replaces it, its name in the result, and what guards it."""

    command: str
    field: str
    guard: str
    make: Callable[[CliWorld], str]

    def get(self, cli: CliWorld, name: str) -> Ran:
        return cli.call(*self.command.split(), "get", name)

    def set(self, cli: CliWorld, name: str, value: Any, *words: str, scope: str = "test") -> Ran:
        """Replace it; where nothing keeps others out meanwhile, that is accepted."""
        race = ["--allow-race"] if self.guard == "compare" and "--last-writer-wins" not in words else []
        given = json.dumps(value).encode()
        return cli.call(*self.command.split(), "set", name, *race, *words, "-o", "json", stdin=given, scope=scope)

    def set_by_another(self, cli: CliWorld, name: str) -> Any:
        """Replace it as another does, and return the version of then."""
        return self.set(cli, name, OURS[self.field], "--last-writer-wins", scope="other").json["etag"]

    def __str__(self) -> str:
        return self.command


PARTS = [
    Part("blob metadata", "metadata", "if-match", blob_world.make),
    Part("blob tags", "tags", "lease", blob_world.make),
    Part("container metadata", "metadata", "compare", CliWorld.container),
    Part("container acl", "policies", "compare", CliWorld.container),
    Part("queue metadata", "metadata", "compare", queue_world.queue),
    Part("queue acl", "policies", "compare", queue_world.queue),
    Part("table acl", "policies", "compare", table_world.table),
]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_get_prints_is_what_set_takes(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    read = part.get(cli, name).json
    done = part.set(cli, name, {**read, part.field: OURS[part.field]})
    now = part.get(cli, name).json
    assert (read[part.field], done.json["guard"]) == ({}, part.guard)
    assert (now[part.field], now["etag"]) == (OURS[part.field], done.json["etag"])
    assert part.set(cli, name, {}).code == 0
    assert part.get(cli, name).json[part.field] == {}


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_was_never_read_is_only_replaced_if_that_is_said(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    refused, done = part.set(cli, name, {}), part.set(cli, name, {}, "--last-writer-wins")
    assert (refused.code, f"azguard {part} get {name}" in refused.error["hint"]) == (42, True)
    assert (done.code, done.json["guard"]) == (0, "none")


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_another_has_written_since_stays(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    read = part.get(cli, name).json["etag"]
    theirs = part.set_by_another(cli, name)
    for guard in ((), ("--etag", read), ("--etag", "@last")):
        ran = part.set(cli, name, {}, *guard)
        assert (ran.code, ran.error["expected_etag"], ran.error["current_etag"]) == (42, read, theirs), guard
        assert re.fullmatch(
            rf"look, then decide: azguard [a-z]+ ((metadata|tags|acl) get|show) {name}", ran.error["hint"]
        )
    assert part.get(cli, name).json[part.field] == OURS[part.field]
    assert part.set(cli, name, {}, "--etag", theirs).code == 0


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_file_guards_by_the_version_it_names(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    old = str(cli.file("old.json", part.get(cli, name).out))
    part.set_by_another(cli, name)
    part.get(cli, name)
    assert [part.set(cli, name, None, "-f", old, *words).code for words in ((), ("--etag", "@last"))] == [42, 0]
