"""azguard with claims of a worker that are shorter than is good, so that a test need not wait for their end.

python -m tests.races.once_worker SECONDS WORDS...
"""

import sys

from azguard.__main__ import main
from azguard.worker import handling

if __name__ == "__main__":
    handling._SHORTEST_SECONDS = float(sys.argv.pop(1))
    main()
