"""Functions of tests in processes of their own, forked from one that has imported what they need.

To start Python anew for each takes ten times as long. ``FORKS`` is what ``multiprocessing`` is otherwise.
"""

import multiprocessing
import os
from typing import Any

FORKS: Any = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
if os.name == "posix":
    FORKS.set_forkserver_preload(["pytest", "azguard.cache.copies", "azguard.cache.etag_cache", "tests.support.caches"])
