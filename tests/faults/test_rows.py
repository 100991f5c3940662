"""No write without a row in ``tests.faults.matrix``: neither a command, nor an operation of a command.

What the requests of an operation look like is said by the evidence.
"""

from typing import Any

from tests.faults import table
from tests.faults.matrix import ROWS, Column
from tests.faults.rules import operation
from tests.support.cases import cases
from tests.support.command_tree import COMMANDS, find_command
from tests.support.evidence import EXPECTED, find_form
from tests.support.faultproxy.faults import Request
from tests.support.scenarios import SCENARIOS

# Commands whose specification does not say that they read, or whose faults are tried elsewhere.
_ELSEWHERE = {
    "lock run": "tests/azurite/lock/test_faults.py and test_queue.py, since it runs a command meanwhile",
    **dict.fromkeys(("lock hold", "lock release"), "tests/azurite/lock/test_hold.py, since a process stays"),
    **dict.fromkeys(("lock check", "lock log"), "it reads"),
    "doctor": "tests/azurite/test_doctor.py: it writes to what it makes alone",
    "queue work": "tests/azurite/worker/test_faults.py, since it runs a command meanwhile",
    **dict.fromkeys(
        ("blob abort-copy", "blob undelete", "container undelete"),
        "tests/azurite/blob/test_copy_status.py, by a scripted service",
    ),
    **dict.fromkeys(
        ("blob legal-hold set", "blob legal-hold clear", "blob immutability set", "blob immutability clear"),
        "tests/azurite/blob/test_retention.py, by a scripted service",
    ),
    **dict.fromkeys(
        ("blob wait", "container list", "table list", "queue list", "status", "lock list", "lock show", "lease wait"),
        "it reads",
    ),
    **dict.fromkeys(
        ("file resize", "file range put", "file range clear"),
        "tests/files/test_ranges.py, since the Files emulator is another server",
    ),
    "file rename": "tests/files/test_file_renames.py, since the Files emulator is another server",
    **dict.fromkeys(
        ("share undelete", "file permission create"),
        "tests/files/test_undelete.py, since the Files emulator is another server",
    ),
    "file handle close": "tests/files/test_handles.py, since the Files emulator is another server",
    **dict.fromkeys(
        (
            "share snapshot",
            "share quota",
            "share metadata set",
            "share acl set",
            "dir metadata set",
            "dir rename",
            "dir properties set",
            "file metadata set",
            "file properties set",
        ),
        "tests/files/test_parts.py, since the Files emulator is another server",
    ),
    "file lock run": "tests/azurite/smb/test_file_lock_run.py: it writes through SMB alone",
    "file lock break": "tests/azurite/smb/test_file_lock_break.py: it closes what others have open, as often as asked",
    **dict.fromkeys(
        ("file copy", "file abort-copy"), "tests/files/test_copies.py, since the Files emulator is another server"
    ),
    "file put": "tests/files/test_content.py, since the Files emulator is another server",
    "file prune": "it deletes as file delete does",
    **dict.fromkeys(("share list", "dir list", "file list"), "it reads"),
    "profile set": "it writes a file of this machine",
    "batch": "tests/azurite/batch, since it runs other commands, each with its rows",
}
# Leases of containers are those of blobs at another address: one code, one set of rows.
_SAME = {f"container.lease_{verb}": f"blob.lease_{verb}" for verb in ("acquire", "renew", "change", "release", "break")}
_WRITING = sorted(
    {
        (str(scenario), _SAME.get(scenario.operation, scenario.operation), scenario.line)
        for scenario in SCENARIOS
        if EXPECTED[scenario.operation].writes and not scenario.elsewhere
    }
)


def spoilt(name: str) -> str:
    """Return how a row names the requests of an operation, such as ``PUT metadata``."""
    form = find_form(name)
    return operation(Request(form.methods[0], form.path, {**form.headers}))


@cases(("who", "name", "line"), *_WRITING)
def test_an_operation_of_a_command_that_writes_has_its_rows(who: str, name: str, line: str) -> None:
    rows = [row for row in ROWS if find_command(row.command) == find_command(line)]
    assert spoilt(name) in {each for row in rows for each in (row.spoilt, row.commit)}


@cases(("words", "command"), *COMMANDS)
def test_a_command_that_may_write_has_a_row(words: str, command: Any) -> None:
    spec = command.spec
    reads = not spec.is_remote or (spec.operation is not None and not spec.operation.writes)
    assert reads or words in _ELSEWHERE or words in {find_command(row.command) for row in ROWS}


def test_what_is_tried_elsewhere_is_there() -> None:
    assert set(_ELSEWHERE) <= {words for words, _ in COMMANDS}


def test_the_printed_table_has_every_column_and_every_row() -> None:
    printed = table.markdown()
    assert set(table._TITLES) == set(Column)
    assert [row.name for row in ROWS if f"({row.name}) |" not in printed] == []
