"""The clock that lease terms are counted on."""

import time


def now() -> float:
    """Return seconds on a clock that cannot be set and that also runs while the machine is suspended."""
    # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep, unlike that of Linux.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
