"""The statements of the cache."""

import re
from pathlib import Path

from azguard.cache import records


def test_no_placeholder_has_a_number_of_which_python_3_12_warns() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in Path(records.__file__).parent.glob("*.py")}
    assert len(found) > 5
    assert [name for name, text in found.items() if re.search(r"\?\d", text)] == []
