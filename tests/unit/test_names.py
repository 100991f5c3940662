"""One name, one class: a search for a name finds one thing."""

import ast
from collections import defaultdict

from tests.support.sources import READS_SOURCES, parse
from tests.unit.test_layers import MODULES

pytestmark = READS_SOURCES


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for module, path in MODULES.items():
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}
