"""Where the tests find the repository and their data."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DATA = REPOSITORY / "tests" / "data"
#: What results and errors look like.
SCHEMAS = REPOSITORY / "cli" / "help" / "schemas"
