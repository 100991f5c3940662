"""The op of a write of a file: the same for what may be recognized as done, and for nothing else."""

from types import SimpleNamespace
from typing import Any

from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.trees.uploads import FileWrites
from tests.support.cases import cases
from tests.support.fake_resource import TARGET

CREATE = Conditions({"If-None-Match": "*"}, "if-none-match")
OVER = Conditions({"If-Match": '"1"'}, "if-match", '"1"')
ANYHOW = Conditions()


def choose(
    conditions: Conditions = OVER, *, scope: str = "s", state: str = "1", settings: str = "", skips: bool = False
) -> str:
    store: Any = None
    reads: Any = None
    writing = FileWrites(
        store=store,
        reads=reads,
        asked=RequestedConditions(),
        scope=scope,
        skips_existing=skips,
    )
    source: Any = SimpleNamespace(state=state)
    return writing.choose_op(TARGET, conditions, source, settings)


@cases(("conditions", "skips", "is_same"),
    (CREATE, False, True), (OVER, False, True), (ANYHOW, False, False), (CREATE, True, False)
)  # fmt: skip
def test_only_a_write_that_depends_on_a_version_is_known_again(
    conditions: Conditions, skips: bool, is_same: bool
) -> None:
    # What an earlier run wrote over any version proves nothing of this one.
    assert (choose(conditions, skips=skips) == choose(conditions, skips=skips)) is is_same


def test_another_file_scope_version_or_property_is_another_write() -> None:
    ops = [choose(), choose(CREATE), choose(scope="t"), choose(state="2"), choose(settings="text/plain")]
    assert len(set(ops)) == len(ops)
