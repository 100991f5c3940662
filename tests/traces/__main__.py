"""``python -m tests.traces``."""

import sys

from tests.traces.scenario import main

if __name__ == "__main__":
    sys.exit(main())
