"""The checker itself: a good history passes, and every kind of bad one is found."""

from dataclasses import replace
from datetime import UTC, datetime

from azguard.requests.lineage import ABSENT, Lineage
from tests.races import log
from tests.races.chain import Final, Kind, Violation, Write
from tests.races.history import End, Findings, History, Told, check
from tests.support.cases import cases
from tests.support.faultproxy.proxy import Fault, ProxiedAnswer, Request

A, B, C = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"


def write(etag: str, replaced: str | None, op: str | None = None, run: str = "worker1.1", **other: object) -> Write:
    """Return a write; its lineage is what a careful writer leaves, and its time that of its number."""
    stamped = Lineage(((op, replaced or ""),)) if op else Lineage()
    time = float(etag.removeprefix("E"))
    made = Write("x", etag, replaced, op, run, stamped=stamped, sent=time, answered=time + 0.5)
    return replace(made, **other)  # type: ignore[arg-type]  # the names are those of the fields


def told(op: str, end: End = End.COMMITTED, run: str = "worker1.1", **other: object) -> Told:
    """Return what a caller is told, in the usual words."""
    code, message = {
        End.COMMITTED: (0, ""),
        End.REFUSED: (75, "still contended"),
        End.UNKNOWN: (74, "cannot be known"),
    }.get(end, (None, ""))
    return replace(Told(op, "x", run, end, code, message), **other)  # type: ignore[arg-type]  # cases as rows of values


START = write("E0", ABSENT, run="foreign.start")
GOOD = History(
    writes=[START, write("E1", "E0", A), write("E2", "E1", B, "worker2.1")],
    told=[told(A, etag="E1"), told(B, run="worker2.1")],
    finals={"x": Final("E2", count=2)},
    issued=frozenset({A, B}),
)


def rules(history: History) -> list[str]:
    return [violation.rule for violation in check(history).violations]


def test_a_chain_of_commits_that_were_all_told_passes() -> None:
    assert check(GOOD) == Findings((), 2, 0, 1, 0, 0, 0)


def test_unknown_is_never_wrong_and_the_truth_is_counted() -> None:
    unknown = [told(A, End.UNKNOWN), told(B, run="worker2.1"), told(C, End.UNKNOWN)]
    found = check(replace(GOOD, told=unknown, issued=frozenset({A, B, C})))
    assert (found.violations, found.unknown, found.unknown_committed) == ((), 2, 1)


def test_a_killed_update_may_have_landed_or_not() -> None:
    killed = [told(A, End.KILLED), told(B, run="worker2.1"), told(C, End.KILLED)]
    assert rules(replace(GOOD, told=killed, issued=frozenset({A, B, C}))) == []


def test_a_fence_is_a_version_of_nobody_that_was_asked_for() -> None:
    fence = write("E3", "E2", C, kind=Kind.METADATA)
    found = check(replace(GOOD, writes=[*GOOD.writes, fence], finals={"x": Final("E3", count=2, hits=0)}))
    assert (found.violations, found.fences, found.commits) == ((), 1, 2)


def test_a_blind_write_of_another_goes_on_from_the_version_before_it() -> None:
    writes = [START, write("E1", "E0", A), write("E2", None, run="foreign.wipes"), write("E3", "E2", B, "worker2.1")]
    assert rules(replace(GOOD, writes=writes, finals={"x": Final("E3", count=2)})) == []


def test_two_children_of_one_version_are_a_fork() -> None:
    writes = [START, write("E1", "E0", A), write("E2", "E0", B, "worker2.1")]
    assert rules(replace(GOOD, writes=writes))[0] == "fork"


def test_an_etag_that_comes_twice_is_found() -> None:
    assert "etag twice" in rules(replace(GOOD, writes=[*GOOD.writes, write("E1", "E2", C)]))


def test_a_version_that_nobody_made_is_a_gap() -> None:
    writes = [START, write("E1", "E0", A), write("E2", "E9", B, "worker2.1")]
    assert rules(replace(GOOD, writes=writes))[:2] == ["gap", "broken chain"]


def test_another_last_version_than_the_chains_is_found() -> None:
    assert rules(replace(GOOD, finals={"x": Final("E7", count=2)})) == ["another end"]


def test_a_lost_count_is_found() -> None:
    found = check(replace(GOOD, finals={"x": Final("E2", count=1)})).violations
    assert [(one.rule, one.text) for one in found] == [("another value", "count is 1 in the end, and the chain has 2")]


def test_a_lost_line_and_a_lost_hit_are_found() -> None:
    assert rules(replace(GOOD, finals={"x": Final("E2", lines=(A,))})) == ["another value"]
    assert rules(replace(GOOD, finals={"x": Final("E2", lines=(B, A))})) == ["another value"]
    assert rules(replace(GOOD, finals={"x": Final("E2", hits=1)})) == ["another value"]


def test_one_op_twice_in_the_chain_is_found_with_both_writes() -> None:
    twice = write("E3", "E2", A)
    history = replace(GOOD, writes=[*GOOD.writes, twice], finals={"x": Final("E3", count=3)})
    assert check(history).violations == (
        Violation(
            "applied twice",
            f"op {A} is in the chain 2 times",
            (str(GOOD.writes[1]), str(twice), str(GOOD.told[0])),
        ),
    )


def test_a_second_run_that_still_could_see_the_first_is_no_excuse() -> None:
    seen = write("E3", "E2", A, "worker1.2", stamped=Lineage(((A, "E2"), (B, "E1"), (A, "E0"))))
    assert "applied twice" in rules(_again(seen))


def test_a_second_run_over_a_version_that_remembered_the_key_is_no_excuse() -> None:
    history = _again(write("E3", "E2", A, "worker1.2"))
    stamped = GOOD.writes[2].stamped.with_key(A, b"abc", datetime.now(UTC), 128)
    remembered = replace(GOOD.writes[2], stamped=stamped)
    writes = [remembered if each.etag == "E2" else each for each in history.writes]
    assert "applied twice" in rules(replace(history, writes=writes))


def test_a_second_run_over_a_version_that_forgot_the_key_is_counted() -> None:
    found = check(_again(write("E3", "E2", A, "worker1.2")))
    assert (found.violations, found.forgotten) == ((), 1)


def test_on_one_host_no_key_is_forgotten() -> None:
    assert rules(replace(_again(write("E3", "E2", A, "worker1.2")), one_host=True)) == ["applied twice"]


@cases(("at", "found"), (4.0, []), (1e9, ["applied twice"]))
def test_a_run_that_was_killed_after_it_had_found_its_write_has_kept_nothing(at: float, found: list[str]) -> None:
    again = _again(replace(write("E3", "E2", A, "worker1.2"), sent=100.0, answered=101.0))
    assert rules(replace(again, one_host=True, settled=[(A, at)])) == found


def _again(second: Write) -> History:
    """Return a history in which A was killed after its write, and run again."""
    tells = [told(A, End.KILLED), *GOOD.told[1:], told(A, run="worker1.2")]
    return replace(GOOD, writes=[*GOOD.writes, second], told=tells, finals={"x": Final("E3", count=3)})


def test_a_commit_that_never_was_is_found() -> None:
    assert rules(replace(GOOD, told=[*GOOD.told, told(C)])) == ["false commit"]


def test_an_etag_that_is_another_writes_is_found() -> None:
    assert rules(replace(GOOD, told=[told(A, etag="E2"), GOOD.told[1]])) == ["false ETag"]


@cases("code", 42, 44, 49, 53, 65, 75)
def test_said_to_be_not_applied_and_applied_is_found_however_late_it_landed(code: int) -> None:
    zombie = replace(GOOD.writes[1], sent=100.0, answered=101.0, fault="zombie")
    late = [START, write("E2", "E0", B, "worker2.1"), replace(zombie, replaced="E2")]
    tells = [told(A, End.REFUSED, code=code, ended=50.0), GOOD.told[1]]
    assert rules(History(late, tells, {"x": Final("E1", count=2)}, GOOD.issued)) == ["false refusal"]


def test_the_etag_of_a_version_that_another_left_as_it_was_is_as_good() -> None:
    kept = write("E3", "E2", run="foreign.keeps")
    tells = [GOOD.told[0], told(B, run="worker2.1", etag="E3")]
    assert rules(replace(GOOD, writes=[*GOOD.writes, kept], told=tells, finals={"x": Final("E3", count=2)})) == []


def test_said_to_be_not_applied_after_a_killed_run_speaks_of_its_own_writes() -> None:
    tells = [told(A, End.KILLED), told(A, End.REFUSED, run="worker3.1"), GOOD.told[1]]
    assert rules(replace(GOOD, told=tells)) == []


def test_an_exit_status_that_promises_nothing_is_found() -> None:
    assert rules(replace(GOOD, told=[*GOOD.told, told(C, End.REFUSED, code=1)])) == ["strange answer"]


def test_an_update_that_claims_to_change_nothing_is_found() -> None:
    assert rules(replace(GOOD, told=[*GOOD.told, told(C, End.UNCHANGED)])) == ["strange answer"]


def test_work_lost_without_a_word_is_found() -> None:
    silent = replace(GOOD, issued=GOOD.issued | {C})
    wordless = replace(GOOD, told=[*GOOD.told, told(C, End.REFUSED, message="")])
    crashed = replace(GOOD, told=[*GOOD.told, told(C, End.CRASHED)])
    assert [rules(silent), rules(wordless), rules(crashed)] == [["no word"]] * 3


def test_a_write_that_nobody_asked_for_is_found() -> None:
    writes = [*GOOD.writes, write("E3", "E2", C)]
    assert rules(replace(GOOD, writes=writes, finals={"x": Final("E3", count=2)})) == ["stray op"]


def test_a_chain_against_the_clock_is_found() -> None:
    backwards = [START, write("E1", "E0", A, sent=8.0, answered=9.0), write("E2", "E1", B, "worker2.1")]
    assert rules(replace(GOOD, writes=backwards)) == ["order"]


def test_the_log_says_who_wrote_what_over_what() -> None:
    headers = {"user-agent": "azguard/1 race/worker1.1", "if-match": '"0x1"', "x-ms-meta-azguardlineage": f"{A}.0x1"}
    ours = Request("PUT", "/account/race/x%20y?timeout=3", headers)
    lease = Request("PUT", "/account/race/x?comp=lease", headers)
    theirs = Request("PUT", "/account/race/x?comp=metadata", {**headers, "user-agent": "race/foreign.keeps a"})
    made = [ProxiedAnswer(request, Fault.DROP, 201, '"0x2"', 1.0, 2.0) for request in (ours, lease, theirs)]
    lineage = Lineage(((A, "0x1"),))
    assert log.writes([*made, ProxiedAnswer(ours, Fault.NONE, 412)]) == [
        Write("x y", "0x2", "0x1", A, "worker1.1", Kind.CONTENT, lineage, 1.0, 2.0, "drop"),
        Write("x", "0x2", "0x1", None, "foreign.keeps", Kind.METADATA, lineage, 1.0, 2.0, "drop"),
    ]
