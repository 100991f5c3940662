import os
import resource

import pytest

from azguard.processes.signals import wait_readable


def test_what_can_be_read_is_told_by_what_was_given() -> None:
    first, second = os.pipe(), os.pipe()
    os.write(second[1], b"x")

    assert wait_readable([first[0], second[0]], 5) == [second[0]]
    for each in (*first, *second):
        os.close(each)


def test_nothing_is_told_when_the_time_is_over_and_an_end_counts_as_readable() -> None:
    reading, writing = os.pipe()
    before = wait_readable([reading], 0.01)
    os.close(writing)

    assert (before, wait_readable([reading], 5)) == ([], [reading])
    os.close(reading)


def test_a_descriptor_from_1024_on_is_waited_for() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this machine lets no process have so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    reading, writing = os.pipe()
    high = os.dup2(reading, 2000)
    os.write(writing, b"x")

    assert wait_readable([high], 5) == [high]
    for each in (reading, writing, high):
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
