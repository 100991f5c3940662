"""The command language: each idea has one form. It is typed, with what az calls it, and each old form is refused.

A line stands as it is typed after ``azguard``. Before it, the exit status, if that is not 0, and ``other:`` for another
scope. ``=>`` divides it from words that its output has. ``> FILE`` keeps its stdout, ``< TEXT`` is its stdin.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from azguard.files.handles import FileHolder
from azguard.leases.conventions import Holding
from azguard.leases.holdings import HoldingChange
from azguard.leases.own import OwnLeaseStatus
from azguard.leases.shown import LeaseFacts
from azguard.locks.log import HolderLine
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.command_tree import COMMANDS
from tests.support.smb_emulator import SmbEmulator

# C is a container with the blobs a, which is JSON, and b; S a share with the file a and the directory d; Q a queue with
# two messages, and Q2 an empty one; T a table with the entity eu/1; dist a folder with two files.
_IDEAS = {
    "from, to": """
        blob put dist C/v1/ -r
        blob get C/v1/ out -r
        blob copy C/a C/copy
        blob copy C/copy2 --source C/a
        blob copy C/copy3 --source-uri C/a
        file put dist S/v1/ -r
        file get S/v1/ out2 -r
        file copy S/a S/copy
        file copy S/copy2 --source S/a
        file copy S/copy3 --source-uri S/a
        file rename S/copy S/new
        dir rename S/d S/e
        queue move Q Q2
        2 blob copy C/a => type the source first, then the destination
        2 file copy S/a => type the source first, then the destination
        2 blob page put C/p --source-url C/a => azguard blob page put C/p --source C/a
        2 blob append C/p --source-url C/a => azguard blob append C/p --source C/a
        2 az storage blob copy start -c C -b new -u C/a => azguard blob copy C/a C/new
        2 az storage file copy start -s S -p new -u S/a => azguard file copy S/a S/new
        """,
    "content": """
        blob put C/new --content text
        blob put C/new -f note
        blob put C/new -f - < text
        blob put C/new2 --data text
        blob get C/new -f got
        blob append C/log --content text --create
        blob block stage C/big --content text
        file put S/new --content text
        file put S/new -f note
        file put S/new2 --data text
        file get S/new -f got2
        file range put S/a --content h --last-writer-wins
        message put Q text
        message put Q --content text
        message put Q -f note
        2 blob put C/new --content text -f note => --file and --content
        """,
    "version of a copy": """
        blob get C/a -f a.json
        blob delete C/a --version-of a.json
        file get S/a -f a.txt
        file delete S/a --version-of a.txt
        entity get T/eu/1 -o json > e.json
        entity delete T/eu/1 --version-of e.json
        2 entity delete T/eu/1 -f e.json => azguard entity delete T/eu/1 --version-of e.json
        2 blob delete C/b --file b => azguard blob delete C/b --version-of b
        """,
    "waiting": """
        lock run C/x --wait 1s -- true
        lock run C/x --no-wait -- true
        lock run C/x --wait -- true
        lock run --wait C/x -- true
        lease acquire blob:C/b --wait 1s
        lease break blob:C/b --yes --lease-break-period 0 --wait
        lease acquire blob:C/b --no-wait
        lock break C/b --yes --lease-break-period 0 --wait 5s
        lease wait blob:C/b --wait 1s
        lease wait blob:C/b --no-wait
        blob copy C/a C/c1 --wait 5s
        blob copy --wait C/a C/c2
        blob copy C/a C/c3 --no-wait
        file copy S/a S/c1 --wait 5s
        file copy --wait S/a S/c2
        file copy S/a S/c3 --no-wait
        safe-update blob:C/a --increment n --wait 1s
        safe-update blob:C/a --increment n --no-wait
        edit blob:C/a --wait 1s
        blob wait C/a --until exists --wait 1s
        blob wait C/a --until exists --no-wait
        75 blob get C/a --wait-changed --wait 1s
        75 blob get C/a --wait-changed --no-wait
        2 safe-update blob:C/a --increment n --wait-lease => azguard safe-update blob:C/a --increment n --wait 60s
        2 lease wait blob:C/b --timeout 1s => --wait 1s
        2 blob wait C/a --until exists --timeout 1s => --wait 1s
        2 file copy S/a S/c4 --wait --no-wait => --wait and --no-wait do not go together
        """,
    "how many results": """
        blob list C --num-results 1
        blob block list C/a --num-results 1
        cache list --num-results 1
        container list --num-results 1
        entity query T --num-results 1
        file list S --num-results 1
        file range list S/a --num-results 1
        lease list C --num-results 1
        lock list C --num-results 1
        message peek Q --num-results 1
        message peek Q --num-messages 1
        message get Q --num-messages 1
        queue list --num-results 1
        share list --num-results 1
        table list --num-results 1
        queue move Q Q2 --max-messages 1
        queue work Q2 --max-messages 1 -- true
        2 entity query T --top 1 => azguard entity query T --num-results 1
        2 lock log C/x --last 1 => azguard lock log C/x --num-results 1
        2 queue move Q Q2 --count 1 => azguard queue move Q Q2 --max-messages 1
        """,
    "which bytes": """
        blob get C/b --offset 1 --length 2 => el
        blob get C/b --start-range 1 --end-range 2 => el
        file get S/a --offset 1 --length 2 => el
        file get S/a --start-range 1 --end-range 2 => el
        file lock run S/l --range 1:2 --no-wait -- true
        """,
    "sizes": """
        blob get C/b --length 1K
        blob get C/b --length 1KiB
        blob get C/b --length 1M
        blob get C/b --length 1GB
        blob get C/b --length 512
        file resize S/a 1K --last-writer-wins
        file range clear S/a --length 1KiB --last-writer-wins
        2 blob get C/b --length 1X => is not a number of bytes
        """,
    "how old": """
        lock list C --older-than 1h
        lease list C --older-than 1h
        lease acquire blob:C/b --reason x
        42 lease break blob:C/b --if-older-than 1h
        2 lock list C --stale => azguard lock list C --older-than DURATION
        2 lease list C --stale => azguard lease list C --older-than DURATION
        """,
    "how large, tier, quota": """
        file resize S/a 1MiB --last-writer-wins
        file resize S/a --size 1MiB --last-writer-wins
        blob tier C/a Cool --last-writer-wins
        blob tier C/a --tier Hot --last-writer-wins
        share quota S 5 --last-writer-wins
        share quota S --quota 6 --last-writer-wins
        2 file resize S/a => write it behind the file
        2 blob tier C/a => Hot, Cool, Cold or Archive
        2 share quota S => write it behind the share
        """,
    "patterns, kinds": """
        blob put dist C/v1/ -r --include *.txt
        blob list C --include snapshots
        share list --include snapshots
        2 share list --include-snapshots => azguard share list --include snapshots
        """,
    "recursive": """
        file handle list S -r
        file prune S -r
        blob put dist C/v1/ --recursive
        blob delete C/v1/ -r
        """,
    "shared, exclusive": """
        lock run C/x --shared --no-wait -- true
        file lock run S/l --shared --no-wait -- true
        file lock run S/l --shared --range 0:1 --no-wait -- true
        file lock run S/l --share read --no-wait -- true
        2 file lock run S/l --share read --shared -- true => --share and --shared do not go together
        """,
    "held": """
        lease acquire blob:C/b
        lock list C --held => held
        lock list C --mine
        lease list C --held => held
        lease list --mine => blob:C/b
        2 lease list --held => azguard lease list --mine
        """,
    "bare names": """
        lock run x --lock-container C -- true
        lock show x --lock-container C => blob:C/x
        2 lease show x => container:x
        2 lease acquire x => container:x
        """,
    "second time": """
        blob get C/b -f b
        blob delete C/b
        44 blob delete C/b => you deleted it at
        file get S/a -f a
        file delete S/a
        44 file delete S/a => you deleted it at
        entity get T/eu/1
        entity delete T/eu/1
        44 entity delete T/eu/1 => you deleted it at
        lease acquire blob:C/a
        lease release blob:C/a
        lease release blob:C/a => already_released
        44 lease break blob:C/a --yes
        lease acquire blob:C/a
        lease break blob:C/a --yes --lease-break-period 0
        44 lease break blob:C/a --yes
        77 lease release blob:C/a
        lock hold C/x --sticky --reason x
        lock release C/x
        lock release C/x => already_released
        lock hold C/x --sticky --reason x
        lock break C/x --yes
        44 lock break C/x --yes
        77 lock release C/x
        44 file lock break S/d/l --yes
        file lock run S/l --no-wait -- true
        44 file lock break S/l --yes => no program has
        """,
    "nothing done": """
        20 queue work Q --max-messages 1 -- false
        44 queue work nosuch -- true
        44 blob wait nosuch/a --until absent --wait 1s
        blob wait C/nosuch --until absent --wait 1s
        """,
    "leased": """
        other: lease acquire blob:C/b --reason deploying
        49 blob put C/b --content x --last-writer-wins => deploying
        49 blob delete C/b --last-writer-wins => deploying
        49 lease acquire blob:C/b => deploying
        75 lease acquire blob:C/b --wait 1s => deploying
        75 safe-update blob:C/b --append x --wait 1s => deploying
        """,
    "outcome words": """
        blob put C/new --content x => "committed"
        blob put C/new --content y --if-exists skip => "exists"
        safe-update blob:C/a --set n=1 => "unchanged"
        safe-update blob:C/a --increment n --op-id k
        safe-update blob:C/a --increment n --op-id k => "applied_before"
        """,
    "defaults": """
        lock run --help => [default: 60s]
        blob wait --help => [default: 60s]
        """,
    "flags of parts": """
        safe-update blob:C/a --metadata --set owner="ops"
        safe-update blob:C/a --tags --set stage="live"
        blob metadata set C/b --metadata owner=ops --last-writer-wins
        2 blob metadata set C/b --metadata owner=ops stage=live => --metadata owner=ops --metadata stage=live
        """,
    "--": """
        safe-update blob:C/b -- cat
        lock run C/x -- true
        queue work Q --max-messages 1 -- true
        file lock run S/l --no-wait -- true
        2 safe-update blob:C/b cat => azguard safe-update blob:C/b -- cat
        2 emulator run true => azguard emulator run -- true
        2 lock run C/x true => -- ./deploy.sh
        2 queue work Q true => -- ./handle.sh
        2 file lock run S/l true => -- ./deploy.sh
        """,
    "global options": """
        --timeout 5s blob show C/a
        blob --timeout 5s show C/a
        --timeout 5s safe-update blob:C/a --increment n
        --timeout 5s lock run C/x -- true
        -o tsv blob show C/a
        --query etag blob show C/a
        -q blob show C/a
        -v blob show C/a
        --scope test blob show C/a
        --no-color --no-progress --debug blob show C/a
        --output none blob show C/a
        78 --profile nosuch blob show C/a => there is no profile
        78 blob show C/a --profile nosuch => there is no profile
        2 --timeout 1s lease wait blob:C/a => --wait 1s
        2 --timeout x safe-update blob:C/a --increment n => is not a duration
        2 --if-match * blob show C/a => azguard blob show C/a --if-match
        """,
    "dry run": """
        blob delete C/a --last-writer-wins --dry-run => would delete
        blob delete C/ -r --last-writer-wins --dry-run => would delete
        entity delete T/eu/1 --dry-run --last-writer-wins => would delete
        message get Q -o json > message
        message delete Q/ID --pop-receipt x --dry-run => would delete
        file delete S/a --last-writer-wins --dry-run => would delete
        file rename S/a S/new --dry-run => would rename
        44 file rename S/nosuch S/new --dry-run
        dir rename S/d S/e --dry-run => would rename
        45 dir rename S/d S/d2 --dry-run
        dir delete S/d --last-writer-wins --dry-run => would delete
        42 blob abort-copy C/copied --dry-run => had ended
        42 file abort-copy S/copied --dry-run => had ended
        file range clear S/a --length 512 --last-writer-wins --dry-run => would clear
        container delete C --last-writer-wins --with-contents --dry-run => would delete
        queue move Q Q2 --dry-run
        lease acquire blob:C/b
        lease break blob:C/b --dry-run --yes => held
        lock break C/b --dry-run --yes => held
        blob show C/a
        file show S/a
        dir show S/d
        entity get T/eu/1
        """,
    "yes": """
        lease acquire blob:C/b
        lease break blob:C/b -y
        2 lease break blob:C/b => confirm with --yes
        42 container delete C --last-writer-wins => --with-contents
        container delete C --last-writer-wins --with-contents
        """,
    "one or many": """
        blob list C => [
        lock list C => [
        lock list --account => [
        blob put dist C/v1/ -r -o json => {"address"
        """,
}
_NAME = r"\b(?:C|S|Q2|Q|T)\b"
# In this order in each list of locks and leases; a list may lack some of them.
_ORDER = ("address", "state", "outcome", "holder", "since", "reason", "fence", "alive", "ends", "ended")
# What deletes, moves or breaks.
_ENDS = re.compile(r"(.* )?(delete|rename|move|break|abort-copy|clear|close|forget|prune|restore)")
_LINE = re.compile(
    r"((?P<code>\d+) )?(?P<scope>other: )?(?P<words>.*?)( (?P<how>[<>]) (?P<name>\w\S*))?( => (?P<told>.*))?"
)


@dataclass(frozen=True)
class _World:
    """An account with all services, and names in it that no other test has."""

    cli: CliWorld
    names: dict[str, str]

    def fill_in(self, text: str) -> str:
        """Return a text with the names of this world."""
        return re.sub(_NAME, lambda found: self.names[found[0]], text)

    def type(self, line: str) -> list[str]:
        """Run a line and return what is wrong with how it ended."""
        found = _LINE.fullmatch(self.fill_in(line))
        assert found is not None
        stdin = found["name"].encode() if found["how"] == "<" else b""
        words, scope = (
            shlex.split(found["words"].replace('"', r"\"").replace("*", r"\*")),
            "other" if found["scope"] else "test",
        )
        run = self.cli.fork if "--" in words or "hold" in words else self.cli.call
        ran: Ran = run(*words, stdin=stdin, scope=scope, env={"EDITOR": "true"})
        if found["how"] == ">":
            self.cli.file(found["name"], ran.stdout)
        is_told = (found["told"] or "") in ran.out + ran.err
        right = (int(found["code"] or 0), True)
        return [] if (ran.code, is_told) == right else [f"{line}: {ran.code}, {ran.out[:200]!r}, {ran.err}"]


@pytest.fixture
def account(
    request: pytest.FixtureRequest, tmp_path: Path, connection_string: str, smb_emulator: SmbEmulator
) -> _World:
    """Return a world of its own; Azurite has all services but that of the files."""
    string = f"{connection_string.rstrip(';')};FileEndpoint={smb_emulator.endpoint}"
    cli = CliWorld(tmp_path, string, {"AZGUARD_SMB_PORT": str(smb_emulator.smb_port)}).with_cache()
    base = cli.container()
    names = {"C": base, "S": f"s{base[1:]}", "Q": f"q{base[1:]}", "Q2": f"r{base[1:]}", "T": f"T{base[1:]}"}
    made = _World(cli, names)
    used = set(re.findall(_NAME, _IDEAS[request.node.callspec.params["idea"]]))
    (tmp_path / "dist").mkdir()
    for name in ("dist/one.txt", "dist/two.txt", "note"):
        cli.file(name, "text")
    for line in filter(re.compile(rf"\b({'|'.join(sorted(used))})\b").search, _BEFORE.split("\n")):
        ran = cli.call(*shlex.split(made.fill_in(line)), "-o", "none", scope="maker")
        assert ran.code == 0, ran.err
    return made


_BEFORE = """blob put C/a --content '{"n": 1}'
blob put C/b --content hello
blob copy C/b C/copied
share create S
file put S/a --content hello
file copy S/a S/copied
dir create S/d
dir create S/d2
queue create Q
queue create Q2
message put Q one
message put Q two
table create T
entity insert T/eu/1 n:int32=5"""


@pytest.mark.parametrize("idea", _IDEAS)
def test_every_form_is_read_and_every_old_one_names_the_new_one(account: _World, idea: str) -> None:
    lines = [each.strip() for each in _IDEAS[idea].strip().split("\n")]
    assert [wrong for line in lines for wrong in account.type(line)] == []


@cases("kind", Holding, HoldingChange, LeaseFacts, OwnLeaseStatus, HolderLine, FileHolder)
def test_lists_of_locks_and_leases_have_their_columns_in_one_order(kind: type) -> None:
    titles = [each.title or each.name for each in vars(kind)["COLUMNS"]]
    assert [each for each in titles if each in _ORDER] == [each for each in _ORDER if each in titles]


def test_what_deletes_moves_or_breaks_can_be_tried_first() -> None:
    ends = {name: command.list_options() for name, command in COMMANDS if _ENDS.fullmatch(name)}
    assert (len(ends) > 20, [name for name, options in ends.items() if "--dry-run" not in options]) == (True, [])


def test_every_list_can_be_cut() -> None:
    lists = {name: command.list_options() for name, command in COMMANDS if name.split()[-1] in ("list", "log")}
    assert [name for name, options in lists.items() if "--num-results" not in options] == []
