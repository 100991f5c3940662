"""One name, one class: a search for a name finds one thing."""

import ast
from collections import defaultdict

from tests.unit.test_layers import MODULES


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}
