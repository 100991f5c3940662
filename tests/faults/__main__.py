"""Print the tables of faults as Markdown: ``python -m tests.faults``."""

import sys

from tests.faults import table

sys.stdout.write(table.markdown() + "\n")
