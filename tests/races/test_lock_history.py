"""What the check of lock histories finds, and what it lets pass."""

from dataclasses import replace

from tests.races.lock_history import Event, Findings, History, Lease, Ran, Violation, check

LOG = """\
1.0 enter a blob:locks/x 1
2.0 leave a
3.0 gone a b
3.1 enter b blob:locks/x 2
4.0 leave b"""
A, B, C = Ran("a", 0), Ran("b", 0), Ran("c", 0)
KILLED = replace(A, status=-9, killed=1.5)


def events(log: str) -> list[Event]:
    return [Event.parse(line) for line in log.splitlines()]


def found(log: str, *ran: Ran, slots: int = 1) -> Findings:
    return check(History(events(log), ran or (A, B)), slots, free_within=10)


def rules(log: str, *ran: Ran, slots: int = 1) -> list[str]:
    return [violation.rule for violation in found(log, *ran, slots=slots).violations]


def test_one_after_the_other_with_rising_fences_passes() -> None:
    assert found(LOG) == Findings((), entries=2, most=1, locks=1, waits=())


def test_an_overlap_that_a_section_saw_is_found() -> None:
    assert found(f"{LOG}\n4.1 overlap b a").violations == (
        Violation("overlap", "b saw a inside", ("4.100 overlap b a",)),
    )


def test_an_entry_before_the_other_left_is_found() -> None:
    lines = LOG.splitlines()
    assert found("\n".join((lines[0], lines[3], lines[1], lines[4]))).violations == (
        Violation("overlap", "a, b were inside at once", ("3.100 enter b blob:locks/x 2",)),
    )


def test_who_was_killed_is_inside_until_its_processes_have_gone() -> None:
    lines = LOG.splitlines()
    gone = "\n".join((lines[0], *lines[2:]))
    alive = "\n".join((lines[0], *lines[3:]))
    assert (rules(gone, KILLED, B), rules(alive, KILLED, B)) == ([], ["overlap"])


def test_a_fence_that_does_not_rise_is_found() -> None:
    evidence = ("1.000 enter a blob:locks/x 1", "3.100 enter b blob:locks/x 1")
    same = LOG.replace("locks/x 2", "locks/x 1")
    assert found(same).violations == (Violation("fence", "blob:locks/x has fence 1 after 1", evidence),)


def test_each_slot_has_fences_of_its_own() -> None:
    other = LOG.replace("locks/x 2", "locks/x.slot2 1")
    assert found(other, slots=2) == Findings((), entries=2, most=1, locks=2, waits=())


def test_more_than_the_slots_at_once_are_found() -> None:
    log = "1.0 enter a l 1\n1.1 enter b m 1\n1.2 enter c n 1\n2.0 leave a\n2.0 leave b\n2.0 leave c"
    assert (rules(log, A, B, C, slots=3), rules(log, A, B, C, slots=2)) == ([], ["overlap"])


def test_a_section_that_ran_twice_or_never_or_not_to_its_end_is_found() -> None:
    again = f"{LOG}\n5.0 enter a blob:locks/x 3\n6.0 leave a"
    assert rules(again) == ["ran twice", "not run"]
    assert rules(LOG, A, B, C) == ["not run"]
    assert rules(LOG.replace("2.0 leave a\n", "")) == ["not run"]


def test_an_exit_status_is_an_answer_for_the_killed_alone() -> None:
    assert rules(LOG, A, replace(B, status=77)) == ["status"]
    assert rules(LOG, A, B, replace(C, status=-9, killed=9.0)) == []


def test_processes_that_are_left_when_all_is_over_are_found() -> None:
    assert check(History(events(LOG), (A, B), left=["a"]), slots=1, free_within=10).violations == (
        Violation("left running", "processes of a run for ever"),
    )


def held_up(*leases: Lease) -> Findings:
    gone = LOG.replace("2.0 leave a\n", "")
    return check(History(events(gone), (KILLED, B), leases), slots=1, free_within=10)


def test_who_was_killed_holds_up_others_for_so_long_and_no_longer() -> None:
    granted = Lease(0.9, "a", "x")
    soon = held_up(granted, Lease(11.0, "b", "x"))
    assert (soon.waits, soon.violations) == ((9.5,), ())
    late = held_up(granted, Lease(5.0, "c", "another"), Lease(12.0, "b", "x"))
    assert late.violations == (Violation("held up", "10.5 s after it was killed, its lock was free again", ("a",)),)


def test_who_was_killed_and_held_nothing_any_more_holds_up_nobody() -> None:
    released = Lease(1.4, "a", "x", granted=False)
    assert held_up(Lease(0.9, "a", "x"), released, Lease(12.0, "b", "x")).waits == ()


READ = """\
1.0 enter a blob:locks/x 1
2.0 leave a
2.1 enter reader1 blob:locks/x!reader-1 1
2.2 enter reader2 blob:locks/x!reader-2 1
3.0 leave reader1
3.1 leave reader2
3.2 enter b blob:locks/x 2
4.0 leave b"""
ONE, TWO = Ran("reader1", 0), Ran("reader2", 0)


def test_readers_are_beside_each_other_with_the_fence_of_the_writer_before_them() -> None:
    assert found(READ, A, B, ONE, TWO) == Findings((), entries=4, most=2, locks=1, waits=())


def test_a_reader_beside_a_writer_is_found() -> None:
    early = READ.replace("2.1 enter reader1", "1.5 enter reader1")
    assert found("\n".join(sorted(early.splitlines())), A, B, ONE, TWO).violations[0].text == (
        "a, reader1 were inside at once"
    )


def test_a_reader_with_an_older_fence_and_a_writer_with_that_of_a_reader_are_found() -> None:
    assert rules(READ.replace("!reader-2 1", "!reader-2 0"), A, B, ONE, TWO) == ["fence"]
    assert rules(READ.replace("!reader-2 1", "!reader-2 2"), A, B, ONE, TWO) == ["fence"]


def test_a_reader_that_was_killed_inside_holds_up_the_next_writer_for_so_long() -> None:
    log = READ.replace("3.1 leave reader2", "3.1 gone reader2 b").replace("3.2 enter", "23.2 enter")
    ran = (A, replace(B, ended=24.0), ONE, replace(TWO, status=-9, killed=2.5))
    history = check(History(events(log.replace("4.0 leave", "24.0 leave")), ran), slots=1, free_within=10)
    assert [violation.rule for violation in history.violations] == ["held up"]
