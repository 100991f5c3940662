"""Lines of progress of a long race, few enough to be read."""

import time
from collections.abc import Callable

_TELL_SECONDS = 10.0


def tell_seldom(say: Callable[[str], None], began: float, prefix: str = "") -> Callable[[str], None]:
    """Return what passes a line of progress on, with the seconds since ``began``, but seldom."""
    told = time.monotonic()

    def tell(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= _TELL_SECONDS:
            told = time.monotonic()
            say(f"{told - began:5.0f}s {prefix}{text}")

    return tell
