"""Work: write the clock into a file every 50 ms, as long as another file is there. Both are arguments, in this order.

A file that says when a holder worked is what tells two holders at work at once, however they ended.
"""

import sys
import time
from pathlib import Path

BEAT_SECONDS = 0.05
# Nothing is left at work for ever, should the benchmark be killed.
_MOST_BEATS = 12_000

if __name__ == "__main__":
    permission = Path(sys.argv[2])
    with open(sys.argv[1], "a", encoding="ascii", buffering=1) as beats:
        for _ in range(_MOST_BEATS):
            if not permission.exists():
                break
            beats.write(f"{time.monotonic()}\n")
            time.sleep(BEAT_SECONDS)  # the work itself: a beat, again and again
