"""The built-in edits on YAML: what they change, and that all else keeps its bytes."""

import difflib
from collections.abc import Callable
from typing import Any

import pytest
import yaml as plain_yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from azguard.cli.words import hints
from azguard.commands.safe_update import typed_edits
from azguard.documents import edits, paths, yaml_tree
from azguard.documents.formats import is_yaml
from azguard.documents.json_text import LiteralNumber, UnreadValue
from azguard.errors import TransformFailed
from tests.support.cases import cases

CHART = """\
# values of the shop
version: 1.0   # keep me
replicas: 3
image:
  name: "nginx"   # the image
  tag: '1.25'

# section
hosts:
  - a
  - b

  # last comment
labels: {x: 1, "y z": two}
empty:
base: &b
  cpu: 1
  mem: 2Gi
service:
  <<: *b
  mem: 4Gi
alias: *b
text: |
  hello
  world

octal: 0o17
old: 017
exp: 1e3
date: 2020-01-01
on_call: yes
list:
- name: x
  v: 1
- name: y
  v: 2
# end
"""


def change(text: str, *options: str) -> str:
    pairs = zip(options[::2], options[1::2], strict=True)
    chosen = [typed_edits.parse_edit(option, value, lambda name: b"") for option, value in pairs]
    return edits.apply(chosen, text.encode(), is_yaml=True).decode()


def difference(text: str, *options: str) -> list[str]:
    found = difflib.unified_diff(text.splitlines(), change(text, *options).splitlines(), n=0, lineterm="")
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def refusal(act: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(TransformFailed) as caught:
        act()
    error = hints.in_words(caught.value)
    return error.message, error.hint


# What is YAML


@cases(
    ("name", "content_type", "answer"),
    ("values.yaml", None, True),
    ("a/B.YML", "application/json", True),
    ("values", "application/yaml", True),
    ("values", "text/x-yaml; charset=utf-8", True),
    ("values", "application/openapi+yaml", True),
    ("values.json", "application/yaml", False),
    ("values", "application/octet-stream", False),
    ("yaml", None, False),
)
def test_the_name_says_what_is_yaml_or_the_content_type(name: str, content_type: str | None, answer: bool) -> None:
    assert is_yaml(name, content_type) == answer


def test_yaml_that_is_json_stays_json() -> None:
    assert change('{"a": 1}', "--set", "b.c=[1]") == '{"a": 1, "b": {"c": [1]}}'


# Values


@cases(
    ("options", "lines"),
    (("--set", "version=2"), ["-version: 1.0   # keep me", "+version: 2   # keep me"]),
    (("--increment", "replicas=2"), ["-replicas: 3", "+replicas: 5"]),
    (("--increment", "version=0.5"), ["-version: 1.0   # keep me", "+version: 1.5   # keep me"]),
    (("--increment", "exp"), ["-exp: 1e3", "+exp: 1001"]),
    (("--set", 'image.tag="1.26"'), ["-  tag: '1.25'", "+  tag: '1.26'"]),
    (
        ("--set-string", "image.name=it: x"),
        ['-  name: "nginx"   # the image', '+  name: "it: x"   # the image'],
    ),
    (("--set-string", "hosts[0]=-x"), ["-  - a", '+  - "-x"']),
    (("--set", "empty=5"), ["-empty:", "+empty: 5"]),
    (("--set", "empty=[1]"), ["+  - 1"]),
    (("--set", 'version={"a":1}'), ["-version: 1.0   # keep me", "+version: {a: 1}   # keep me"]),
    (("--set", 'text="a\\nb"'), ["-text: |", "-  hello", "-  world", '+text: "a\\nb"']),
    (("--set", "image=null"), ["-image:", '-  name: "nginx"   # the image', "-  tag: '1.25'", "+image: null"]),
    (("--set", 'image={"a":{"b":1}}'), ['-  name: "nginx"   # the image', "-  tag: '1.25'", "+  a:", "+    b: 1"]),
    (("--set", "labels.x=2"), ['-labels: {x: 1, "y z": two}', '+labels: {x: 2, "y z": two}']),
    (("--set", 'hosts[0]={"a":[1]}'), ["-  - a", "+  - a:", "+      - 1"]),
)
def test_a_value_is_replaced_and_nothing_else(options: tuple[str, ...], lines: list[str]) -> None:
    assert difference(CHART, *options) == lines


@cases(
    ("options", "lines"),
    (("--set-string", "image.digest=sha256:1"), ["+  digest: sha256:1"]),
    (("--set", 'hosts[-]="c"'), ["+  - c"]),
    (("--set", 'hosts[-]={"a":1,"b":[1]}'), ["+  - a: 1", "+    b:", "+      - 1"]),
    (("--set", "list[0].w=1"), ["+  w: 1"]),
    (("--set", 'list[-]={"name":"z"}'), ["+- name: z"]),
    (("--set", "new.a.b=[true,null]"), ["+new:", "+  a:", "+    b:", "+      - true", "+      - null"]),
    (("--set", "labels.n=5"), ['-labels: {x: 1, "y z": two}', '+labels: {x: 1, "y z": two, "n": 5}']),
)
def test_what_is_new_stands_beside_its_siblings(options: tuple[str, ...], lines: list[str]) -> None:
    assert difference(CHART, *options) == lines


@cases(
    ("options", "lines"),
    (("--unset", "replicas"), ["-replicas: 3"]),
    (("--unset", "version"), ["-version: 1.0   # keep me"]),
    (("--unset", "hosts[-1]"), ["-  - b"]),
    (("--unset", "image"), ["-image:", '-  name: "nginx"   # the image', "-  tag: '1.25'"]),
    (("--unset", "text"), ["-text: |", "-  hello", "-  world"]),
    (("--unset", "list[0].name"), ["-- name: x", "-  v: 1", "+- v: 1"]),
    (("--unset", "list[0]"), ["-- name: x", "-  v: 1"]),
    (("--unset", "labels.x"), ['-labels: {x: 1, "y z": two}', '+labels: {"y z": two}']),
    (("--unset", "labels.y z"), ['-labels: {x: 1, "y z": two}', "+labels: {x: 1}"]),
    (("--unset", "nothing.of.it"), []),
    (("--unset", "alias"), ["-alias: *b"]),
    (("--unset", "service.mem"), ["-  mem: 4Gi"]),
)
def test_what_goes_takes_its_lines_and_no_comment_of_others(options: tuple[str, ...], lines: list[str]) -> None:
    assert difference(CHART, *options) == lines


def test_a_collection_that_has_become_empty_stays_one() -> None:
    text = "image:\n  name: x\n  tag: y\nhosts:\n- a\n"
    assert change(text, "--unset", "image.name", "--unset", "image.tag", "--unset", "hosts[0]") == (
        "image: {}\nhosts: []\n"
    )


@cases("value", "no", "on", "1.4", "017", "0x1F", "1e3", "2020-01-01", "12:30", "~", "null", "y", "")
def test_a_text_stays_a_text_for_every_reader(value: str) -> None:
    made = change("a: x\n", "--set", f'a="{value}"')
    assert made == f'a: "{value}"\n'


@cases("value", "nginx:1.25", "a/b.c-d_e", "two words", "größe", "50%")
def test_a_text_has_no_quotes_where_none_are_needed(value: str) -> None:
    assert change("a: x\n", "--set-string", f"a={value}") == f"a: {value}\n"


def test_setting_what_is_there_changes_nothing() -> None:
    assert change(CHART, "--set", 'image.tag="1.25"', "--set", "replicas=3", "--unset", "none") == CHART


# Anchors


def test_aliases_and_merge_keys_follow_their_anchor() -> None:
    made = change(CHART, "--set", "base.cpu=9")
    found = plain_yaml.safe_load(made)
    assert (difference(CHART, "--set", "base.cpu=9"), found["alias"]["cpu"], found["service"]["cpu"]) == (
        ["-  cpu: 1", "+  cpu: 9"],
        9,
        9,
    )


def test_an_anchor_survives_the_value_behind_it() -> None:
    assert change("a: &v 1.0\nb: *v\n", "--set", "a=2") == "a: &v 2\nb: *v\n"
    assert change("a: &v {x: 1}\nb: *v\n", "--set", "a=[1]") == "a: &v [1]\nb: *v\n"


def test_a_merged_member_is_overridden_where_it_is_set() -> None:
    assert difference(CHART, "--increment", "service.cpu") == ["+  cpu: 2"]


@cases(
    ("options", "message"),
    (("--set", "alias.cpu=9"), "alias.cpu: the way leads through the alias *b, which other places share"),
    (("--unset", "service.cpu"), "service.cpu: cpu comes from a merge key (<<), which other places share"),
    (("--unset", "base"), "this YAML cannot be edited so: line 17: the alias *b names no anchor before it"),
)
def test_what_would_change_other_places_is_refused(options: tuple[str, ...], message: str) -> None:
    assert refusal(lambda: change(CHART, *options))[0] == message


def test_an_alias_can_be_replaced_as_a_whole() -> None:
    assert difference(CHART, "--set", 'alias={"cpu":9}') == ["-alias: *b", "+alias:", "+  cpu: 9"]


def test_aliases_of_aliases_take_no_time() -> None:
    rows = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)]
    assert change("a0: &a0 [x]\n" + "".join(rows), "--set", "a0[0]=1").startswith("a0: &a0 [1]\na1: &a1 [*a0,")


# Layouts


@cases(
    ("text", "options", "made"),
    ("", ("--set", "a=1"), "a: 1\n"),
    ("# only\n", ("--set", 'a.b=["x"]'), "# only\na:\n  b:\n    - x\n"),
    ("b: 1", ("--set", "a=1"), "b: 1\na: 1"),
    ("b: 1\nc: 2", ("--unset", "c"), "b: 1"),
    ("x:\n  b:\n  - 1\n  - 2\n  - 3", ("--set", 'x={"b":[1],"a":4}'), "x:\n  b:\n  - 1\n  a: 4"),
    ("b: 1\r\n", ("--set", "a.c=1"), "b: 1\r\na:\r\n  c: 1\r\n"),
    ("---\na: 1\n...\n", ("--set", "x=1"), "---\na: 1\nx: 1\n...\n"),
    ("a:\n    b: 1\n", ("--set", 'c={"d":{"e":1}}'), "a:\n    b: 1\nc:\n    d:\n        e: 1\n"),
    ("a:\n- 1\n", ("--set", "b=[2]"), "a:\n- 1\nb:\n- 2\n"),
    ("a:\n- - 1\n  - 2\n", ("--set", "a[0][-]=3"), "a:\n- - 1\n  - 2\n  - 3\n"),
    ("a:\n- - 1\n  - 2\n", ("--unset", "a[0][0]"), "a:\n- - 2\n"),
    ("a:\n- # x-y\n- b\n", ("--set", "a[0]=5"), "a:\n- 5 # x-y\n- b\n"),
    ("a:   # c\nb: 1\n", ("--set", 'a={"x":1}'), "a: {x: 1}   # c\nb: 1\n"),
    ("? a\n: 1\n", ("--set", "a=5"), "? a\n: 5\n"),
    ("? a\n: 1\n", ("--set", "b.c=5"), "? a\n: 1\nb:\n  c: 5\n"),
    ("? a\n: 1\nb: 2\n", ("--unset", "a"), "b: 2\n"),
    ("x:\n  ? a\n  : 1\n", ("--set", 'x.a={"b":1}'), "x:\n  ? a\n  :\n    b: 1\n"),
    ("{a, b}\n", ("--set", "a=5"), "{a: 5, b}\n"),
    ('"a" : 1\n', ("--set", "a=5"), '"a" : 5\n'),
    ("a: x\n  y\nb: 1\n", ("--set", "a=2"), "a: 2\nb: 1\n"),
    ("a:\n    b: |+\n      x\n\nd: 1\n", ("--set", "a.c=2"), "a:\n    b: |+\n      x\n\n    c: 2\nd: 1\n"),
    ("8080:\n  y: 2\n", ("--set", "8080.x=1"), "8080:\n  y: 2\n  x: 1\n"),
    ("a: !!str 1\n", ("--set", "a=2"), "a: 2\n"),
    ("\ufeffa: 1\n", ("--set", "a=2"), "\ufeffa: 2\n"),
    ("- a\n", ("--set", '[-]="b"'), "- a\n- b\n"),
    ("%YAML 1.1\n---\nb: 1\n", ("--set", "b=2"), "%YAML 1.1\n---\nb: 2\n"),
    ("x:\n  b:\n  - 1\n  - 2\nc: 3\n", ("--set", 'x={"b":[1],"a":4}'), "x:\n  b:\n  - 1\n  a: 4\nc: 3\n"),
    (
        "x:\r\n- - 1\r\n  # mine\r\n  - 2\r\n  - 3\r\n",
        ("--set", "x=[[1],4]"),
        "x:\r\n- - 1\r\n  # mine\r\n- 4\r\n",
    ),
)
def test_every_common_layout_is_kept(text: str, options: tuple[str, ...], made: str) -> None:
    assert change(text, *options) == made


def test_a_tag_is_text_and_makes_nothing() -> None:
    text = 'a: !!python/object/apply:os.system ["id"]\nb: !Ref x\n'
    assert change(text, "--set", "c=1") == f"{text}c: 1\n"


@cases(
    ("text", "message"),
    ("a: 1\n---\nb: 1\n", "it has 2 documents"),
    ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4: the key 'c' appears twice in one mapping"),
    ("a: &a [*a]\n", "line 1: the alias *a stands inside what it names"),
    ("[a]: 1\n", "line 1: a key that is no scalar"),
    ("a: b\n c: d\n", "line 2, column 3: mapping values are not allowed here"),
    ("- " * 1000 + "x\n", "it is nested too deeply"),
)
def test_what_cannot_be_edited_is_refused_with_the_reason(text: str, message: str) -> None:
    assert refusal(lambda: change(text, "--set", "x=1")) == (
        f"the content is not YAML that can be edited: {message}",
        "a command can edit it: -- yq -i '.a = 1' {}",
    )


@cases(("name", "value"), ("octal", "0o17"), ("old", "017"), ("date", "2020-01-01"))
def test_what_json_has_no_value_for_is_not_counted(name: str, value: str) -> None:
    assert refusal(lambda: change(CHART, "--increment", name))[0] == (
        f"--increment: {name} is {value} (no value of JSON), not a number"
    )


@cases(
    ("text", "value"),
    ("12", 12),
    ("-1.50", LiteralNumber("-1.50")),
    ("true", True),
    ("Null", None),
    ("", None),
    ("+1", UnreadValue("+1")),
    ("1_000", UnreadValue("1_000")),
    (".5", UnreadValue(".5")),
    (".inf", UnreadValue(".inf")),
    ("Off", UnreadValue("Off")),
    ("2001-12-14t21:59:43.10-05:00", UnreadValue("2001-12-14t21:59:43.10-05:00")),
    ("1.2.3", "1.2.3"),
    ("yesterday", "yesterday"),
)
def test_a_plain_scalar_is_what_all_readers_agree_on(text: str, value: object) -> None:
    found = yaml_tree.resolve(text)
    assert (type(found), found) == (type(value), value)


# Everything


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
NAMES = st.sampled_from(["a", "b", "on", "1", "x y", "k:v", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), VALUES, st.booleans() | st.none(), st.data())
def test_an_edit_means_what_it_says_whatever_is_there(
    before: dict[str, Any], value: Any, flow: bool | None, data: st.DataObject
) -> None:
    text = plain_yaml.safe_dump(before, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    try:
        root = yaml_tree.parse(text)
    except yaml_tree.NotYaml:
        assume(False)
    assert root is not None
    # PyYAML writes a text such as a lone U+0085 in a way that it reads as another.
    before = plain_yaml.safe_load(text)
    name = data.draw(st.sampled_from(sorted(before)))
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    edit = edits.Set(paths.parse(path), value)
    made = edits.apply([edit, edits.Set(paths.parse("/new"), value)], text.encode(), is_yaml=True)
    assert plain_yaml.safe_load(made) == {**before, name: value, "new": value}


@given(TEXTS)
def test_a_text_is_written_so_that_both_readers_get_it_back(text: str) -> None:
    made = f"a: {yaml_tree.write(text)}\n"
    found = yaml_tree.parse(made)
    assert found is not None
    assert (plain_yaml.safe_load(made), found.value) == ({"a": text}, {"a": text})
