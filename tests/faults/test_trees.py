"""Trees of files while answers get lost and writers are killed: nothing doubled, nothing lost."""

import json
import signal
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from azguard import atomic_files
from azguard.accounts import account
from azguard.accounts.account import Account
from azguard.address import Address, Kind
from azguard.emulators.azurite_process import Azurite
from azguard.requests.lineage import KEY, Lineage
from azguard.resources import sources
from tests.faults.rules import Rule, at_random, by_rules
from tests.support import sdk_clients
from tests.support.answering_client import ask
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

FILES = 24
PATIENT = {"AZGUARD_WRITE_TIMEOUT": "1"}


@dataclass(frozen=True)
class Tree:
    """A folder of files, and the container they go to, behind a proxy and beside it."""

    cli: CliWorld
    account: Account
    container: ContainerClient

    def write(self, text: str) -> None:
        """Write every file anew."""
        for number in range(FILES):
            self.cli.file(f"tree/{number:02d}", f"{text} {number}")

    def read(self) -> dict[str, tuple[str, int]]:
        """Return the content of each blob, and how many writes its lineage has."""
        found = {}
        for name in self.container.list_blob_names():
            address = Address(Kind.BLOB, (self.container.container_name, name))
            answer = ask(self.account, "GET", address, {})
            lineage = Lineage.parse(answer.headers.get(f"x-ms-meta-{KEY}"))
            found[name] = (answer.content.decode(), len(lineage.entries))
        return found

    def put(self, port: int, *options: str) -> Ran:
        """Write the folder through a proxy."""
        there = self.cli.through(port)
        return there.call("blob", "put", "tree", self.container.container_name, "--recursive", *options, env=PATIENT)


def outcomes(text: bytes) -> dict[str, str]:
    found: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.endswith(b"}")]
    return {each["address"].rpartition("/")[2]: each["outcome"] for each in found}


@cache
def _account(port: int) -> Account:
    """Return the account past every proxy, whose connections stay open from one test to the next."""
    return account.emulator({"blob": port})


@pytest.fixture
def tree(tmp_path: Path, azurite: Azurite) -> Tree:
    """Return a folder of files that are nowhere yet."""
    (tmp_path / "tree").mkdir()
    cli = CliWorld(tmp_path, azurite.connection_string).with_cache()
    beside = _account(azurite.ports["blob"])
    made = Tree(cli, beside, sdk_clients.blob_service(beside).get_container_client(cli.container()))
    made.write("first")
    return made


@pytest.mark.parametrize("seed", [1, 2])
def test_every_file_is_written_once_whatever_answers_get_lost(tree: Tree, azurite: Azurite, seed: int) -> None:
    with proxy.running(azurite.ports["blob"], at_random(seed, 0.3)) as running:
        for writes, (text, done) in enumerate((("first", "created"), ("second", "replaced")), 1):
            tree.write(text)
            ran = tree.put(running.port)
            # Without another writer each doubt can be settled.
            assert (ran.code, Counter(outcomes(ran.stdout).values())) == (0, {done: FILES}), ran.err
            assert tree.read() == {f"{number:02d}": (f"{text} {number}", writes) for number in range(FILES)}
        assert any(each.fault is not Fault.NONE for each in running.log)


@pytest.mark.parametrize("at", [1, 7, 20])
def test_a_run_that_was_killed_is_ended_by_another_which_takes_nothing_for_anothers(
    tree: Tree, azurite: Azurite, at: int
) -> None:
    killed: list[Any] = []

    def kill(request: Request) -> Fault | Chosen:
        """Kill the writer when its nth write arrives: the answers to all under way are lost, and what they record."""
        if not request.writes:
            return Fault.NONE
        killed.append(request)
        if len(killed) == at:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        return Fault.NONE

    words = ("blob", "put", "tree", tree.container.container_name, "--recursive")
    with proxy.running(azurite.ports["blob"], kill) as running:
        cli = tree.cli.through(running.port)
        writer = cli.begin_fork(*words)
        told = outcomes(writer.communicate()[0])
        there = tree.read()
        # What was told as done is done.
        assert {name for name, outcome in told.items() if outcome == "created"} <= set(there)
        ran = cli.call(*words)
    assert (ran.code, set(outcomes(ran.stdout).values()) <= {"created", "replaced", "unchanged"}) == (0, True), ran.err
    assert {name: text for name, (text, _) in tree.read().items()} == {
        f"{number:02d}": f"first {number}" for number in range(FILES)
    }


def test_after_a_kill_only_the_rest_moves(tree: Tree, azurite: Azurite) -> None:
    killed: list[Any] = []

    def kill(request: Request) -> Fault | Chosen:
        killed.extend([request] if request.writes else [])
        if request.writes and len(killed) == FILES // 2:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        return Fault.NONE

    words = ("blob", "put", "tree", tree.container.container_name, "--recursive", "--unchanged", "skip", "--jobs", "2")
    with proxy.running(azurite.ports["blob"], kill) as running:
        cli = tree.cli.through(running.port)
        writer = cli.begin_fork(*words)
        writer.communicate()
        there = set(tree.read())
        told = outcomes(cli.call(*words).stdout)
    # What the killed one sent can arrive after this look, and before that of the next run.
    assert there <= {name for name, outcome in told.items() if outcome == "unchanged"}
    assert set(told.values()) == {"created", "unchanged"}
    assert {name: count for name, (_, count) in tree.read().items()} == dict.fromkeys(told, 1)


@pytest.mark.parametrize("at", [1, 9])
def test_ctrl_c_settles_what_is_under_way_and_tells_it(tree: Tree, azurite: Azurite, at: int) -> None:
    writes: list[Request] = []

    def interrupt(request: Request) -> Fault | Chosen:
        writes.extend([request] if request.writes else [])
        if request.writes and len(writes) == at:
            writer.send_signal(signal.SIGINT)
        return Fault.NONE

    with proxy.running(azurite.ports["blob"], interrupt) as running:
        words = ("blob", "put", "tree", tree.container.container_name, "--recursive", "--jobs", "2")
        writer = tree.cli.through(running.port).begin_fork(*words)
        out, err = writer.communicate()
    told = outcomes(out)
    assert (writer.returncode, b" created" in err) == (130, True), err
    # What is there is told as created, and nothing else is.
    assert {name for name, outcome in told.items() if outcome == "created"} == set(tree.read())
    assert len(tree.read()) < FILES


def test_a_write_that_the_service_never_takes_is_no_success(tree: Tree, azurite: Azurite) -> None:
    def fail(request: Request) -> Fault | Chosen:
        return Fault.FAIL_BEFORE if request.writes else Fault.NONE

    with proxy.running(azurite.ports["blob"], fail) as running:
        ran = tree.put(running.port, "--timeout", "2")
    assert (ran.code, set(outcomes(ran.stdout).values()) <= {"failed", "unknown"}, tree.read()) == (20, True, {})


def test_a_service_that_does_not_answer_is_one_error_before_any_file(tree: Tree, azurite: Azurite) -> None:
    with proxy.running(azurite.ports["blob"], lambda request: Fault.FAIL_BEFORE) as running:
        ran = tree.put(running.port, "--timeout", "2")
    assert (ran.code, ran.stdout, tree.read()) == (53, b"", {})


def test_a_put_ends_early_when_the_service_goes_away_and_names_what_it_did_not_try(
    tree: Tree, azurite: Azurite
) -> None:
    writes: list[Request] = []

    def go_away(request: Request) -> Fault | Chosen:
        writes.extend([request] if request.writes else [])
        return Fault.FAIL_BEFORE if len(writes) > FILES // 4 else Fault.NONE

    with proxy.running(azurite.ports["blob"], go_away) as running:
        ran = tree.put(running.port, "--timeout", "3", "--jobs", "2")
        told = Counter(outcomes(ran.stdout).values())
        assert (ran.code, set(told), told.total()) == (20, {"created", "unknown", "not tried"}, FILES), ran.err
    # Two rounds of two files; two more may have begun before those had ended.
    assert told["unknown"] <= 6
    assert "did not answer any more" in ran.err
    assert (tree.put(azurite.ports["blob"], "--unchanged", "skip").code, len(tree.read())) == (0, FILES)


def test_a_get_ends_early_when_the_service_goes_away(tree: Tree, azurite: Azurite) -> None:
    assert tree.put(azurite.ports["blob"]).code == 0
    read: list[Request] = []

    def go_away(request: Request) -> Fault | Chosen:
        read.append(request)
        return Fault.FAIL_BEFORE if len(read) > FILES // 4 else Fault.NONE

    with proxy.running(azurite.ports["blob"], go_away) as running:
        cli = tree.cli.through(running.port)
        words = ("blob", "get", tree.container.container_name, "copy", "--recursive")
        ran = cli.call(*words, "--timeout", "3", "--jobs", "2", env=PATIENT)
    told = Counter(outcomes(ran.stdout).values())
    assert (ran.code, set(told), told.total()) == (20, {"read", "failed", "not tried"}, FILES), ran.err
    assert len(list((tree.cli.root / "copy").iterdir())) == told["read"]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_file_is_read_whole_whatever_answers_get_lost(tree: Tree, azurite: Azurite, seed: int) -> None:
    assert tree.put(azurite.ports["blob"]).code == 0
    with proxy.running(azurite.ports["blob"], at_random(seed, 0.3, reads=True)) as running:
        cli = tree.cli.through(running.port)
        ran = cli.call("blob", "get", tree.container.container_name, "copy", "--recursive", env=PATIENT)
        assert any(each.fault is not Fault.NONE for each in running.log)
    assert (ran.code, Counter(outcomes(ran.stdout).values())) == (0, {"read": FILES}), ran.err
    # Nothing else is left, no part of a file and no hidden one.
    found = {each.name: each.read_text() for each in (tree.cli.root / "copy").iterdir()}
    assert found == {f"{number:02d}": f"first {number}" for number in range(FILES)}


def test_a_get_that_was_killed_leaves_no_part_of_a_file_under_its_name(tree: Tree, azurite: Azurite) -> None:
    assert tree.put(azurite.ports["blob"]).code == 0
    asked: list[Request] = []

    def kill(request: Request) -> Fault | Chosen:
        asked.append(request)
        if len(asked) == FILES // 2:
            reader.send_signal(signal.SIGKILL)
            reader.wait()
        return Fault.NONE

    words = ("blob", "get", tree.container.container_name, "copy", "--recursive", "--unchanged", "skip")
    with proxy.running(azurite.ports["blob"], kill) as running:
        cli = tree.cli.through(running.port)
        reader = cli.begin_fork(*words)
        told = outcomes(reader.communicate()[0])
        copy = tree.cli.root / "copy"
        there = {each.name: each.read_text() for each in copy.iterdir() if not each.name.startswith(".")}
        assert set(told) <= set(there)
        assert there.items() <= {f"{number:02d}": f"first {number}" for number in range(FILES)}.items()
        ran = cli.call(*words)
    again = outcomes(ran.stdout)
    assert (ran.code, {name for name, outcome in again.items() if outcome == "unchanged"}) == (0, set(there))


def test_a_get_that_is_interrupted_twice_leaves_no_part_of_a_file(tree: Tree, azurite: Azurite) -> None:
    container, copy = tree.container.container_name, tree.cli.root / "copy"
    tree.container.upload_blob("large", bytes(20_000_000))
    is_over, is_held = threading.Event(), threading.Event()

    def hold(request: Request) -> Fault | Chosen:
        """Answer the first range of the blob, and no other one before the reader has ended."""
        if request.headers.get("x-ms-range", "bytes=0-").startswith("bytes=0-"):
            return Chosen()
        is_held.set()
        return Chosen(until=is_over.is_set)

    with proxy.running(azurite.ports["blob"], hold) as running:
        reader = tree.cli.through(running.port).begin_fork("blob", "get", container, "copy", "--recursive")
        until(is_held.is_set)
        assert any(atomic_files.is_unfinished(each.name) for each in copy.iterdir())

        def interrupt() -> bool:
            """Press Ctrl-C as a person does: a burst of them could end it before it says anything."""
            reader.send_signal(signal.SIGINT)
            try:
                reader.wait(1)
            except subprocess.TimeoutExpired:
                return False
            return True

        until(interrupt)
        _, err = reader.communicate()
        is_over.set()
    assert (reader.returncode, list(copy.iterdir())) == (130, []), err


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.FAIL_BEFORE, Fault.REPLAYED])
def test_a_delete_whose_answer_is_lost_is_unknown_and_one_that_was_not_sent_is_sent_again(
    tree: Tree, azurite: Azurite, fault: Fault
) -> None:
    spoilt: list[Request] = []

    def spoil(request: Request) -> Fault | Chosen:
        if request.method != "DELETE" or spoilt:
            return Fault.NONE
        spoilt.append(request)
        return fault

    with proxy.running(azurite.ports["blob"], spoil) as running:
        # What the scope has read is known by its endpoint, which is the proxy's.
        assert tree.put(running.port).code == 0
        cli = tree.cli.through(running.port)
        # A delete that is answered late would be unknown, too.
        wait = {"AZGUARD_WRITE_TIMEOUT": "5"}
        ran = cli.call("blob", "delete", tree.container.container_name, "--recursive", env=wait)
    # What is gone may have been deleted by another, which deletes nothing that this scope did not see.
    told = {"unknown": 1, "deleted": FILES - 1} if fault.reaches else {"deleted": FILES}
    assert (ran.code, Counter(outcomes(ran.stdout).values())) == (20 if fault.reaches else 0, told), ran.err
    assert tree.read() == {}


def test_a_mirror_whose_deletes_lose_their_answers_is_ended_by_another_run(tree: Tree, azurite: Azurite) -> None:
    kept = {f"{number:02d}" for number in range(FILES // 2, FILES)}
    spoil = by_rules([Rule.parse("DELETE blob * drop")])
    with proxy.running(azurite.ports["blob"], spoil) as running:
        assert tree.put(running.port).code == 0
        for number in range(FILES // 2):
            (tree.cli.root / f"tree/{number:02d}").unlink()
        ran = tree.put(running.port, "--mirror")
        assert (ran.code, Counter(outcomes(ran.stdout).values())) == (
            20, {"unknown": FILES // 2, "unchanged": FILES // 2},
        ), ran.err  # fmt: skip
        assert set(tree.read()) == kept
        # Nothing is left to delete, and so nothing to doubt.
        again = tree.put(running.port, "--mirror")
    assert (again.code, set(tree.read()), tree.read()[min(kept)][1]) == (0, kept, 1)


def test_a_file_that_changes_while_it_is_read_is_written_whole_in_its_newer_state(
    tree: Tree, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree.cli.root / "tree/07"
    changes: list[Path] = []
    read = sources.UnchangedFile.read

    def change_once(self: sources.UnchangedFile, size: int = -1) -> bytes:
        if self._path.name == "07" and not changes:
            changes.append(self._path)
            path.write_text("newer, and longer")
        return read(self, size)

    monkeypatch.setattr(sources.UnchangedFile, "read", change_once)
    ran = tree.put(azurite.ports["blob"])
    assert (ran.code, set(outcomes(ran.stdout).values())) == (0, {"created"}), ran.err
    assert tree.read()["07"] == ("newer, and longer", 1)
    assert len(changes) == 1
