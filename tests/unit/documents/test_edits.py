"""The built-in edits of safe-update: what their options accept, and what they do to content and metadata."""

import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.cli.words import hints
from azguard.commands.safe_update import typed_edits
from azguard.documents import edits, json_text
from azguard.documents.edits import AppendText, Edit, Increment, Set, Unset
from azguard.errors import AzguardError, TransformFailed, UsageError
from tests.support.cases import cases


def reading(content: bytes) -> Callable[[str], bytes]:
    return lambda name: {"patch.json": content}[name]


def edit(option: str, text: str, patch: bytes = b"", *, metadata: bool = False) -> Edit:
    return typed_edits.parse_edit(option, text, reading(patch), metadata=metadata)


def changed(content: str, *options: str, patch: bytes = b"") -> str:
    pairs = zip(options[::2], options[1::2], strict=True)
    return edits.apply([edit(*pair, patch) for pair in pairs], content.encode()).decode()


def failure(kind: type[AzguardError], act: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(kind) as caught:
        act()
    error = hints.in_words(caught.value)
    return error.message, error.hint


# What the options accept


@cases(
    ("option", "text", "message", "hint"),
    ("--set", "name", "--set: 'name' has no =", "write --set name=JSON"),
    (
        "--set",
        "name=x",
        "--set: the value for name is not JSON: line 1, column 1: Expecting value",
        "if it is text, write --set-string name=x",
    ),
    ("--set", "name=", "--set: no value for name", """for an empty text write --set 'name=""'"""),
    ("--set", "a=1e999", "--set: 1e999 is infinity to most readers of JSON", "stay below 1.8e308"),
    ("--increment", "a=x", "--increment: 'x' is not a number", "write a=5 or a=-0.5"),
    ("--increment", "a=", "--increment: '' is not a number", "write a=5 or a=-0.5"),
    ("--increment", "a=1_0", "--increment: '1_0' is not a number", "write a=5 or a=-0.5"),
    ("--increment", "a=1e999", "--increment: '1e999' is not a number", "write a=5 or a=-0.5"),
    ("--increment", "a[-]", "--increment: 'a[-]' names no element", "[-] is after the last; write [-1]"),
    ("--unset", "/a~2", "--unset: '/a~2' is not a JSON Pointer", "write ~ as ~0, / in a name as ~1"),
    ("--set", "a\udcff=1", "--set: 'a\\udcff=1' is not UTF-8", None),
)
def test_a_malformed_option_is_refused_with_the_way_to_write_it(
    option: str, text: str, message: str, hint: str | None
) -> None:
    assert failure(UsageError, lambda: edit(option, text)) == (message, hint)


@cases("value", "NaN", "-Infinity", "[1, NaN]", "1 2", "[1,]", "'x'", '{"a":1,"a":2}', "01")
def test_set_takes_nothing_but_json(value: str) -> None:
    with pytest.raises(UsageError):
        edit("--set", f"a={value}")


@cases("path", "", ".a", "a.", "a..b", "a[", "a[x]", "a[01]", "a[-0]", "a]", "a[0]b", "a\\n")
def test_a_malformed_path_is_refused(path: str) -> None:
    for option in ("--set", "--increment"):
        with pytest.raises(UsageError):
            edit(option, f"{path}=1")
    with pytest.raises(UsageError):
        edit("--unset", path)


def test_a_backslash_must_escape_something() -> None:
    assert failure(UsageError, lambda: edit("--unset", "a\\"))[0] == "--unset: 'a\\\\' is not a path"


def test_an_equals_sign_ends_a_path_unless_it_is_escaped() -> None:
    assert [
        changed("{}", "--set", 'a="x=y"'),
        changed("{}", "--set", r"a\=b=1"),
        changed("{}", "--set", '/a\\="x=y"'),
        changed("{}", "--increment", r"a\=b=2"),
    ] == ['{"a": "x=y"}', '{"a=b": 1}', '{"a\\\\": "x=y"}', '{"a=b": 2}']
    with pytest.raises(UsageError):
        edit("--unset", "a=b")


def test_an_unknown_option_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="--frob is not an edit"):
        edit("--frob", "a")


@cases(
    ("document", "message"),
    ("{", "patch.json is not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
    ("{}", "patch.json: a JSON Patch is an array of operations, this is an object"),
    ("[1]", "patch.json: operation 1: is a number, not an object"),
    ("[{}]", 'patch.json: operation 1: "op" must be one of add, copy, move, remove, replace, test'),
    ('[{"op":"remove"}]', 'patch.json: operation 1: "path" must be a JSON Pointer such as /a/b'),
    ('[{"op":"remove","path":"a"}]', 'patch.json: operation 1: "path" must be a JSON Pointer such as /a/b'),
    ('[{"op":"move","path":"/a"}]', 'patch.json: operation 1: "from" must be a JSON Pointer such as /a/b'),
    ('[{"op":"add","path":"/a"}]', 'patch.json: operation 1: add needs a "value"'),
    (
        '[{"op":"remove","path":"/a"},{"op":"frob","path":"/a"}]',
        'patch.json: operation 2: "op" must be one of add, copy, move, remove, replace, test',
    ),
    # RFC 6902 A.13
    (
        '[{"op":"add","path":"/baz","value":"qux","op":"remove"}]',
        'patch.json is not JSON: the key "op" appears twice in one object',
    ),
)
def test_a_bad_json_patch_is_refused_before_anything_is_read(document: str, message: str) -> None:
    assert failure(UsageError, lambda: edit("--json-patch", "patch.json", document.encode()))[0] == (
        f"--json-patch: {message}"
    )


def test_a_bad_merge_patch_is_refused_before_anything_is_read() -> None:
    assert [
        failure(UsageError, lambda: edit("--merge-patch", "patch.json", b"{,}"))[0],
        failure(UsageError, lambda: edit("--merge-patch", "patch.json", b'"\xff"'))[0],
        failure(UsageError, lambda: edit("--merge-patch", ""))[0],
    ] == [
        "--merge-patch: patch.json is not JSON: line 1, column 2: Expecting property name enclosed in double quotes",
        "--merge-patch: patch.json is not UTF-8, at byte 1",
        "--merge-patch: the file name is empty",
    ]


def test_edits_are_plain_values() -> None:
    read = edit("--set", "a=1"), edit("--unset", "b"), edit("--increment", "c=-2"), edit("--append", "x")
    assert read == (
        Set(read[0].path, 1) if isinstance(read[0], Set) else None,
        Unset(read[1].path) if isinstance(read[1], Unset) else None,
        Increment(read[2].path, -2) if isinstance(read[2], Increment) else None,
        AppendText("x"),
    )


# What they do


@cases(
    ("content", "options", "result"),
    ('{"replicas": 1}', ["--increment", "replicas"], '{"replicas": 2}'),
    ('{"a": 1}', ["--set", "b.c.d=true"], '{"a": 1, "b": {"c": {"d": true}}}'),
    ('{"a":[1,2]}', ["--set", "a[0]=9"], '{"a":[9,2]}'),
    ('{"a":[1,2]}', ["--set", "a[-1]=9"], '{"a":[1,9]}'),
    ('{"a":[1,2]}', ["--set", "a[2]=9"], '{"a":[1,2,9]}'),
    ('{"a":[1,2]}', ["--set", "a[-]=9"], '{"a":[1,2,9]}'),
    ('{"a":[1,2]}', ["--set", "/a/-=9"], '{"a":[1,2,9]}'),
    ('{"a":[1,2]}', ["--set", "/a/0=9"], '{"a":[9,2]}'),
    ('{"0":1}', ["--set", "/0=9"], '{"0":9}'),
    ("{}", ["--set", 'items[-].name="x"'], '{"items": [{"name": "x"}]}'),
    ("[1]", ["--set", "[-]=2", "--unset", "[0]"], "[2]"),
    ('{"a.b": 1}', ["--set", r"a\.b=2"], '{"a.b": 2}'),
    ('{"a/b": 1, "c~": 1}', ["--set", "/a~1b=2", "--unset", "/c~0"], '{"a/b": 2}'),
    ('{"": {"": 1}}', ["--set", "//=2"], '{"": {"": 2}}'),
    ('{"a": {"b": 1, "c": 2}}', ["--unset", "a.b"], '{"a": {"c": 2}}'),
    ('{"a": 1}', ["--unset", "b.c[3].d"], '{"a": 1}'),
    ('{"a": [1]}', ["--unset", "a[1]", "--unset", "a[-2]", "--unset", "a.b"], '{"a": [1]}'),
    ("{}", ["--increment", "a.b=5"], '{"a": {"b": 5}}'),
    ('{"a": 5}', ["--increment", "a=-7"], '{"a": -2}'),
    ('{"a": 5}', ["--increment", "a=+7"], '{"a": 12}'),
    ('{"a": 9007199254740993}', ["--increment", "a"], '{"a": 9007199254740994}'),
    ('{"a": 0.1}', ["--increment", "a=0.2"], '{"a": 0.3}'),
    ('{"a": 1}', ["--increment", "a=0.50"], '{"a": 1.50}'),
    ('{"a": 1e3}', ["--increment", "a"], '{"a": 1001}'),
    ('{"a": [1, 2]}', ["--increment", "a[-1]"], '{"a": [1, 3]}'),
    ('{"a": 1}', ["--set", "a=2", "--increment", "a", "--unset", "a"], "{}"),
)
def test_edits_apply_in_the_order_given(content: str, options: list[str], result: str) -> None:
    assert changed(content, *options) == result


def test_whole_numbers_stay_exact_at_any_size() -> None:
    huge = "9" * 6000
    assert [
        changed('{"a": 179}', "--increment", f"a={10**400}"),
        changed(f'{{"a": {huge}, "b": 1}}', "--increment", "b"),
        changed(f'{{"a": {huge}}}', "--increment", "a"),
    ] == [f'{{"a": {10**400 + 179}}}', f'{{"a": {huge}, "b": 2}}', f'{{"a": 1{"0" * 6000}}}']


@cases(
    ("value", "found"),
    ("true", "true"),
    ('"5"', "a string"),
    ("null", "null"),
    ("[]", "an array"),
    ("{}", "an object"),
)
def test_increment_of_something_else_names_it(value: str, found: str) -> None:
    assert failure(TransformFailed, lambda: changed(f'{{"a": {value}}}', "--increment", "a")) == (
        f"--increment: a is {found}, not a number",
        "set a number first: --set a=0",
    )


@cases("content", '{"a": 1.7e308}', '{"a": 1e999999}', '{"a": 1e99999999999}')
def test_a_sum_that_readers_would_take_for_infinity_is_refused(content: str) -> None:
    with pytest.raises(TransformFailed, match="a would be too large for a JSON number"):
        changed(content, "--increment", "a=1e308")


@cases(
    ("content", "text", "message"),
    ('{"a": null}', "a.b=1", "a.b: a is null, not an object"),
    ('{"a": {"b": "x"}}', "a.b.c=1", "a.b.c: a.b is a string, not an object"),
    ('{"a": {}}', "a[0]=1", "a[0]: a is an object, not an array"),
    ('{"a": [[1]]}', "a[0].b=1", "a[0].b: a[0] is an array, not an object"),
    ('{"a": [1]}', "a[2]=1", "a[2]: a has 1 element, there is no [2]"),
    ('{"a": [1]}', "a[-2]=1", "a[-2]: a has 1 element, there is no [-2]"),
    ('{"a": {"b": 1}}', "/a/b/c=1", "/a/b/c: /a/b is a number, not an object"),
    ("7", "a=1", "a: the document is a number, not an object"),
)
def test_a_path_that_does_not_fit_is_named(content: str, text: str, message: str) -> None:
    assert failure(TransformFailed, lambda: changed(content, "--set", text))[0] == message


@cases(
    ("content", "message"),
    (b"", "the content is not JSON: line 1, column 1: Expecting value"),
    (b'{"a": 1,\n  b}', "the content is not JSON: line 2, column 3: Expecting property name enclosed in double quotes"),
    (b'{"NaN": 1,\n "b": NaN}', "the content is not JSON: line 2, column 7: NaN is not a JSON number"),
    (b'{"a": -Infinity}', "the content is not JSON: line 1, column 7: -Infinity is not a JSON number"),
    (b'{"a": "\xff"}', "the content is not UTF-8, at byte 7"),
    (b"\xff\xfe{\x00}\x00", "the content is not UTF-8, at byte 0"),
    (b'{"x": {"a": 1, "b": 2, "a": 3}}', 'the content is not JSON: the key "a" appears twice in one object'),
    (b"[" * 100_000, "the content is not JSON: it is nested too deeply"),
    (
        b'{"a": 1e9999999999999999999999}',
        "the content is not JSON: the number 1e9999999999999999999999 is out of range",
    ),
)
def test_content_that_is_not_json_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(TransformFailed) as caught:
        edits.apply([edit("--set", "z=1")], content)
    assert (caught.value.message, caught.value.exit_code) == (message, 65)


def test_append_takes_any_bytes_and_mixes_with_json_in_order() -> None:
    assert [
        edits.apply([AppendText("é\n")], b"\xff\x00"),
        edits.apply([AppendText("raw \udcff")], b""),
        edits.apply([edit("--append", "{}"), edit("--set", "a=1"), edit("--append", "\n")], b""),
        edits.apply([], b"\xff"),
    ] == [b"\xff\x00\xc3\xa9\n", b"raw \xff", b'{"a": 1}\n', b"\xff"]


@cases(
    ("content", "lines", "result"),
    (b"", ["one"], b"one\n"),
    (b"zero\n", ["one"], b"zero\none\n"),
    (b"zero", ["one", "two"], b"zero\none\ntwo\n"),
    (b"zero\r\n", ["one"], b"zero\r\none\r\n"),
    (b"\xff\n\n", ["\udcff"], b"\xff\n\n\xff\n"),
)
def test_an_appended_line_is_a_line_of_its_own(content: bytes, lines: list[str], result: bytes) -> None:
    assert edits.apply([edit("--append-line", each) for each in lines], content) == result


@cases(
    ("option", "text", "message"),
    ("--append", "", "--append is empty"),
    ("--append-line", "", "--append-line is empty"),
    ("--append-line", "a\nb", "--append-line: that is more than one line"),
    ("--append-line", "a\r", "--append-line: that is more than one line"),
    ("--set-string", "a", "--set-string: 'a' has no ="),
    ("--set-string", "a=", "--set-string: no value for a"),
    ("--set-string", "=a", "--set-string: the path is empty"),
    ("--set-string", "a..b=c", "--set-string: 'a..b' is not a path"),
)
def test_a_text_that_is_none_is_refused(option: str, text: str, message: str) -> None:
    assert failure(UsageError, lambda: edit(option, text))[0] == message


@cases(
    ("content", "text", "result"),
    ('{"a": 1}', "a=2", '{"a": "2"}'),
    ('{"a": 1}', "a=null", '{"a": "null"}'),
    ('{"a": 1}', 'b.c="x"=y', '{"a": 1, "b": {"c": "\\"x\\"=y"}}'),
    ('{"a": [1]}', "/a/-=é", '{"a": [1, "é"]}'),
    ('{"a":  "x"}', "a=x", '{"a":  "x"}'),
)
def test_a_text_needs_no_quotes_of_json(content: str, text: str, result: str) -> None:
    assert edits.apply([edit("--set-string", text)], content.encode()).decode() == result


def test_an_edit_applied_twice_does_not_remember_the_first_time() -> None:
    again = [edit("--set", 'a={"list": []}'), edit("--set", "a.list[-]=1"), edit("--increment", "a.n")]
    merge_twice = [edit("--merge-patch", "patch.json", b'{"a": {"list": []}}'), edit("--set", "a.list[-]=1")]
    patch = [edit("--json-patch", "patch.json", b'[{"op":"add","path":"/a","value":[]}]'), edit("--set", "a[-]=1")]
    for steps in (again, merge_twice, patch):
        assert edits.apply(steps, b"{}") == edits.apply(steps, b"{}")


# Style

INDENTED = """{
    "name": "caf\u00e9",
    "ports": [80, 443],
    "ratio": 1.10,

    "big": 1e3, "tiny": 0.1000000000000000055,
    "escaped": "\\u0041\\/",
    "nested": {
        "deep": {"x": -0, "y":1.0}
    },
    "list": [
        {"id": 1},
        {"id": 2}
    ]
}
"""


@cases(
    ("options", "before", "after"),
    (["--set", 'name="b\u00e4r"'], '"caf\u00e9"', '"b\u00e4r"'),
    (["--set", "ports[-]=8080"], "443]", "443, 8080]"),
    (["--unset", "ports[0]"], "[80, 443]", "[443]"),
    (["--unset", "ports"], '    "ports": [80, 443],\n', ""),
    (["--unset", "big"], '\n\n    "big": 1e3, "tiny"', ' "tiny"'),
    (["--set", "nested.deep.z=2"], '"y":1.0}', '"y":1.0, "z":2}'),
    (["--set", "nested.more.z=2"], '"y":1.0}\n', '"y":1.0},\n        "more": {\n            "z": 2\n        }\n'),
    (["--set", 'list[-]={"id": 3}'], '{"id": 2}\n', '{"id": 2},\n        {\n            "id": 3\n        }\n'),
    (["--set", "list[1].id=7"], '"id": 2', '"id": 7'),
    (["--unset", "list[0]"], '{"id": 1},\n        ', ""),
    (["--set", "ratio=2.50"], "1.10", "2.50"),
    (["--unset", "nested.deep"], '{\n        "deep": {"x": -0, "y":1.0}\n    }', "{}"),
)
def test_all_that_an_edit_does_not_touch_stays_byte_for_byte(options: list[str], before: str, after: str) -> None:
    assert INDENTED.count(before) == 1
    assert changed(INDENTED, *options) == INDENTED.replace(before, after)


@cases(
    ("content", "result"),
    ("{}", '{"a": {"b": 1}}'),
    ("{}\n", '{"a": {"b": 1}}\n'),
    ('\ufeff{"x":1}', '\ufeff{"x":1,"a":{"b":1}}'),
    ('{\n  "x": 1\n}\n', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  }\n}\n'),
    ('{\n\t"x": 1\n}', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
    ('{\r\n  "x": 1\r\n}\r\n', '{\r\n  "x": 1,\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'),
    ('{\n  "x": {},\n  "a": {}\n}', '{\n  "x": {},\n  "a": {\n    "b": 1\n  }\n}'),
    ('{ "x" : 1 }', '{ "x" : 1, "a" : {"b" : 1} }'),
)
def test_new_members_look_like_their_surroundings(content: str, result: str) -> None:
    assert changed(content, "--set", "a.b=1") == result


def test_text_beyond_ascii_is_written_as_the_document_writes_it() -> None:
    assert [
        changed('{"a": "\u00e9"}', "--set", 'b="\u00fc"'),
        changed('{"a": "\\u00e9"}', "--set", 'b="\u00fc"'),
        changed('{"a": "x"}', "--set", 'b="\u00fc"'),
        changed('{"a": "\\ud800", "b": "\u00fc"}', "--set", "c=1"),
        changed('{"a": "\u00fc"}', "--set", 'b="\\ud800"'),
    ] == [
        '{"a": "\u00e9", "b": "\u00fc"}',
        '{"a": "\\u00e9", "b": "\\u00fc"}',
        '{"a": "x", "b": "\u00fc"}',
        '{"a": "\\ud800", "b": "\u00fc", "c": 1}',
        '{"a": "\u00fc", "b": "\\ud800"}',
    ]


@cases(
    ("content", "options"),
    ('{"a" :1 , "b":1.0}', ["--set", "a=1"]),
    ('{"a" :1 , "b":1.0}', ["--set", "b=1.0"]),
    ('{"a" :1 , "b":1.0}', ["--unset", "c"]),
    ('{"a" :1 , "b":1.0}', ["--increment", "a=0"]),
    ('{"a" :1 , "b":1.0}', ["--set", "c=1", "--unset", "c"]),
    ('{"a" :1 , "b":1.0}', ["--unset", "a", "--set", "a=1"]),
    ('{"a": "\\u0041"}', ["--set", 'a="A"']),
    (" [ ]\n", ["--set", "[-]=1", "--unset", "[0]"]),
)
def test_what_changes_nothing_returns_the_very_bytes(content: str, options: list[str]) -> None:
    assert changed(content, *options) == content


def test_a_number_of_another_kind_or_spelling_is_a_change() -> None:
    assert [changed('{"a": 1}', "--set", f"a={value}") for value in ("1.0", "true", "1e0")] == [
        '{"a": 1.0}',
        '{"a": true}',
        '{"a": 1e0}',
    ]


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(documents, documents, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_a_rewritten_text_is_the_new_one(old: object, new: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps({"o": old, "list": [old, 1]}, indent=indent, ensure_ascii=ascii_only)
    before = json_text.parse(text)
    after = json_text.parse(json.dumps({"n": new, "o": new, "list": [1, new, old]}))
    assert json_text.same(json_text.parse(json_text.rewrite(text, before, after)), after)


def test_a_moved_number_keeps_its_spelling() -> None:
    patch = b'[{"op":"move","from":"/a","path":"/b"},{"op":"copy","from":"/b","path":"/c"}]'
    assert changed('{"a": {"n": 1e3}, "x": 0}', "--json-patch", "patch.json", patch=patch) == (
        '{"x": 0, "b": {"n": 1e3}, "c": {"n": 1e3}}'
    )


# Initial content


def test_create_starts_from_what_the_first_edit_needs() -> None:
    increment = edit("--increment", "a")
    assert [
        edits.initial(None, [increment, AppendText("x")]),
        edits.initial(None, [AppendText("x"), increment]),
        edits.initial(None, []),
        edits.initial("[]", [increment]),
        edits.initial("", [increment]),
    ] == [b"{}", b"", b"", b"[]", b""]


def test_a_spelled_number_is_a_number() -> None:
    assert json_text.parse("[1.0, 1e3]") == [Decimal(1), Decimal(1000)]


@cases(
    ("before", "after", "is_yaml", "created"),
    (b'{"n": 1}', b'{"n": 2}', False, ()),
    (b"{}", b'{"n": 1}', False, ("n",)),
    (b'\xef\xbb\xbf{"a": 1}', b'\xef\xbb\xbf{"a": 1, "n": 1}', False, ("n",)),
    (b"a: 1\n", b"a: 1\nn: 1\n", True, ("n",)),
    (b"n: 1\n", b"n: 2\n", True, ()),
    # What cannot be read tells nothing, and is no error: it is written.
    (b"a: !mine 1\n", b"a: !mine 1\nn: 1\n", True, ()),
    (b"a: 1\n", b"a: 1\nn: 1\n", False, ()),
    (b"\xff", b"\xff", False, ()),
)
def test_a_key_that_is_made_is_told(before: bytes, after: bytes, is_yaml: bool, created: tuple[str, ...]) -> None:
    chosen = [typed_edits.parse_edit("--increment", "n", lambda name: b"", metadata=False, tags=False)] * 2
    assert edits.list_created(chosen, before, after, is_yaml=is_yaml) == created
