"""Each command of shares, directories and files as the evidence has its operation: leases and versions.

The rows come from tests/data/semantics.yaml, as those of blobs in tests/azurite/conditions. A command that is not
walked here fails a test. What is refused before any request is walked in tests/system/test_refused_conditions.py, and
what the emulator itself answers to each operation in tests/unit/emulators/test_file_semantics.py.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.command_tree import command_at, find_command
from tests.support.evidence import EXPECTED, Expected
from tests.system.test_refused_conditions import REMOTE

LEASE = "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"
OTHER = "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02"
WRONG = '"0x8D0000000000000"'
_NOUNS = ("share.", "directory.", "file.")


class Scenario(NamedTuple):
    """One command as it performs one operation; ``{s}``, ``{d}`` and ``{f}`` are a share, a directory and a file."""

    operation: str
    line: str
    stdin: bytes = b""

    @property
    def expected(self) -> Expected:
        return EXPECTED[self.operation]

    def __str__(self) -> str:
        return find_command(self.line)


SCENARIOS = (
    Scenario("share.create", "share create {s}-2"),
    Scenario("share.get_properties", "share show {s}"),
    Scenario("share.get_properties", "share exists {s}"),
    Scenario("share.delete", "share delete {s} --with-contents"),
    Scenario("share.snapshot", "share snapshot {s}"),
    Scenario("share.undelete", "share undelete {s}"),
    Scenario("share.create_permission", "file permission create {s} O:SYG:SYD:(A;;FA;;;WD)"),
    Scenario("share.get_permission", "file permission show {s}"),
    Scenario("share.get_stats", "share stats {s}"),
    Scenario("share.set_properties", "share quota {s} 7"),
    Scenario("share.get_properties", "share metadata get {s}"),
    Scenario("share.set_metadata", "share metadata set {s} --metadata a=1"),
    Scenario("share.get_acl", "share acl get {s}"),
    Scenario("share.set_acl", "share acl set {s}", b"{}"),
    Scenario("directory.create", "dir create {d}-2"),
    Scenario("directory.get_properties", "dir show {d}"),
    Scenario("directory.get_properties", "dir exists {d}"),
    Scenario("directory.delete", "dir delete {d}"),
    Scenario("directory.rename", "dir rename {d} {f}"),
    Scenario("directory.set_properties", "dir properties set {d} --attributes Hidden"),
    Scenario("directory.get_properties", "dir metadata get {d}"),
    Scenario("directory.set_metadata", "dir metadata set {d} --metadata a=1"),
    Scenario("file.get", "file get {f}"),
    Scenario("file.rename", "file put {f}", b"new"),
    Scenario("file.get_properties", "file show {f}"),
    Scenario("file.get_properties", "file exists {f}"),
    Scenario("file.delete", "file delete {f}"),
    Scenario("file.rename", "file rename {g} {f}"),
    Scenario("file.rename", "file copy {f} --source {g}"),
    Scenario("file.set_properties", "file resize {f} --size 2"),
    Scenario("file.set_properties", "file properties set {f} --content-language en"),
    Scenario("file.get_properties", "file metadata get {f}"),
    Scenario("file.set_metadata", "file metadata set {f} --metadata a=1"),
    Scenario("file.put_range", "file range put {f}", b"new"),
    Scenario("file.put_range", "file range clear {f} --length 512"),
    Scenario("file.list_ranges", "file range list {f}"),
    Scenario("file.list_handles", "file handle list {f}"),
    Scenario("file.force_close_handles", "file handle close {f} --all"),
    Scenario("file.list_handles", "file lock list {f}"),
    Scenario("file.force_close_handles", "file lock break {f} --yes"),
)


@pytest.fixture
def facts(files_cli: CliWorld) -> Mapping[str, str]:
    file = files_world.make(files_cli, b"old " * 128, "f")
    share = files_world.sdk(files_cli, file.partition("/")[0])
    share.create_directory("d")
    share.get_file_client("g").upload_file(b"g")
    name = share.share_name
    return {"s": name, "d": f"{name}/d", "f": file, "g": f"{name}/g"}


def find_subject(cli: CliWorld, scenario: Scenario, facts: Mapping[str, str]) -> Any:
    """Return the SDK's client of what the lease and the version of a scenario are of: the share, or its file."""
    share = files_world.sdk(cli, facts["s"])
    return share if scenario.operation.startswith("share.") else share.get_file_client("f")


def look(subject: Any) -> tuple[str, str]:
    """Return the version of the share or of the file, and the state of its lease."""
    is_share = not hasattr(subject, "file_name")
    found = subject.get_share_properties() if is_share else subject.get_file_properties()
    return found.etag, found.lease.state


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.expected.names_lease], ids=str)
def test_a_version_and_a_lease_decide_as_the_evidence_says(
    files_cli: CliWorld, facts: Mapping[str, str], scenario: Scenario
) -> None:
    expected, words = scenario.expected, scenario.line.format(**facts).split()
    race = ["--allow-race"] if expected.guard == "compare" else []
    anyhow = ["--last-writer-wins"] if expected.overwrites else []
    subject = find_subject(files_cli, scenario, facts)
    before = look(subject)

    def run(*options: str) -> int:
        return files_cli.call(*words, *options, stdin=scenario.stdin).code

    version = run("--etag", WRONG, *race) if expected.guard != "none" else 42
    found = [version, look(subject) == before]
    subject.acquire_lease(lease_id=LEASE)
    leased = look(subject)
    found += [run(*anyhow), run(*anyhow, "--lease-id", OTHER), look(subject) == leased]
    found += [run(*anyhow, "--lease-id", LEASE)]

    assert found == [42, True, 49 if expected.lease == "required" else 0, 49, True, 0]


def test_every_command_of_files_is_walked_as_its_operation() -> None:
    # A copy has to be pending before it can be stopped: see tests/files/test_copies.py.
    walked = {("file abort-copy", "file.abort_copy"), *((str(each), each.operation) for each in SCENARIOS)}
    there = {
        (" ".join(path), operation.name)
        for path in REMOTE
        if (operation := command_at(path).spec.operation) is not None and operation.name.startswith(_NOUNS)
    }
    assert walked == there
