"""Each oracle can fail: a run that breaks it alone is told, and one that breaks none is not."""

import json
from dataclasses import replace
from typing import Any

from tests.pairs.described import Chosen, Described, Typed
from tests.pairs.lines import Line
from tests.pairs.oracles import ORACLES, Played, Typing, judge
from tests.support.cases import cases
from tests.support.cli_world import Ran

_SECRET = "c2VjcmV0"
_DESCRIBED = Described(
    {
        "name": "blob put",
        "arguments": [],
        "options": [],
        "rules": [{"kind": "excludes", "options": ["--one"], "others": ["--other"], "unless": []}],
        "conditions": {"without_one": None, "etag_kept_by": None, "only_with_source_url": []},
        "statuses": [0, 1, 2, 42],
        "result": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
)
_ERROR = {
    "kind": "changed", "message": "changed", "exit_code": 42, "address": None, "http_status": None,
    "service_code": None, "expected_etag": None, "current_etag": None, "lease_state": None, "request_id": None,
    "retriable": False, "hint": None,
}  # fmt: skip


def _type(out: str = '{"n": 1}', code: int = 0, err: str = "", shown_as: str = "json") -> Typing:
    return Typing(("blob", "put"), shown_as, Ran(code, out.encode(), err))


def _line(*names: str) -> Line:
    return Line(_DESCRIBED, (), tuple(Chosen(Typed((name,), "Options", (name,)), None) for name in names))


def _fail(code: int, **fields: Any) -> Typing:
    return _type("", code, json.dumps({"error": {**_ERROR, "exit_code": code, **fields}}))


_GOOD = Played(_line(), _type(), _type(), secrets=(_SECRET,))
_REFUSED = Played(_line("--one", "--other"), _fail(2, kind="usage"), _fail(2, kind="usage"))
_CHANGED = Played(_line(), _fail(42), _fail(42))
_ONCE = replace(_GOOD, line=_line("--op-id"), again=_type())


def _both(played: Played, typing: Typing, **others: Any) -> Played:
    return replace(played, **{"first": typing, "other": typing, **others})


_BROKEN = (
    ("end", _both(_GOOD, _fail(1, kind="internal"))),
    ("end", replace(_CHANGED, other=replace(_CHANGED.other, ran=Ran(42, b"", f"Traceback\n{_CHANGED.other.ran.err}")))),
    ("status", _both(_GOOD, _fail(44, kind="not_found"))),
    ("refused", _both(_REFUSED, _type())),
    ("allowed", replace(_REFUSED, line=_line("--one"))),
    ("requests", replace(_REFUSED, requests=1)),
    ("untouched", replace(_CHANGED, changed=("blob:pairs/a.json",))),
    ("dry run", replace(_GOOD, line=_line("--dry-run"), changed=("blob:pairs/a.json",))),
    ("result", _both(_GOOD, _type("n: 1"))),
    ("result", _both(_GOOD, _type('{"m": 1}'))),
    ("error", _both(_CHANGED, _type("", 42, "error: it changed"))),
    ("error", _both(_CHANGED, replace(_fail(44), ran=replace(_fail(44).ran, code=42)))),
    ("error", _both(_CHANGED, _fail(42, unknown=1))),
    ("none", replace(_GOOD, other=_type("1", shown_as="none"))),
    ("quiet", _both(_GOOD, _type(err="warning: slow"), line=_line("--quiet"))),
    ("secrets", _both(_GOOD, _type(err=f"with {_SECRET}"))),
    ("secrets", _both(_GOOD, _type(err="http://a/b?sv=1&sig=abc"))),
    ("order", replace(_GOOD, other=_fail(42))),
    ("formats", replace(_GOOD, other=_type('{"n": 2}'))),
    ("formats", replace(_GOOD, other=_type("n: 2\n", shown_as="yaml"))),
    ("formats", replace(_GOOD, other=_type("2\n", shown_as="tsv"))),
    ("formats", replace(_GOOD, other=_type("1\n1\n", shown_as="tsv"))),
    ("once", replace(_ONCE, changed_again=("blob:pairs/a.json",))),
    ("once", replace(_ONCE, again=_fail(42))),
)  # fmt: skip


@cases(
    "played",
    _GOOD, _REFUSED, _CHANGED, _ONCE,
    replace(_GOOD, other=_type("n: 1\n", shown_as="yaml")),
    replace(_GOOD, other=_type("1\n", shown_as="tsv")),
    replace(_GOOD, other=_type("", shown_as="none")),
    replace(_GOOD, changed=("blob:pairs/a.json",)),
    _both(_GOOD, _type('{"n": 1, "id": "0x8DC0000000000A1"}'), other=_type('{"n": 1, "id": "0x8DF0000000000B2"}')),
)  # fmt: skip
def test_a_run_that_keeps_all_is_not_told(played: Played) -> None:
    assert list(judge(played)) == []


@cases(("oracle", "played"), *_BROKEN)
def test_a_run_that_breaks_an_oracle_is_told_by_that_one(oracle: str, played: Played) -> None:
    assert {told.partition(":")[0] for told in judge(played)} == {oracle}


def test_each_oracle_has_a_case_above() -> None:
    assert {oracle for oracle, _ in _BROKEN} == set(ORACLES)
