"""JSON Patch and JSON Merge Patch do what their standards say, as far as the libraries can be held to it."""

import pytest

from azguard.documents import edits, json_text
from azguard.errors import TransformFailed
from tests.support.cases import cases


def patched(original: str, patch: str) -> object:
    operations = json_text.parse(patch)
    assert isinstance(operations, list)
    assert edits.validate_patch(operations) is None
    return edits.apply_patch(json_text.parse(original), tuple(operations))


# RFC 7396, appendix A


@cases(
    ("original", "patch", "result"),
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
    # and what the appendix leaves out
    ('{"a":{"b":1}}', "{}", '{"a":{"b":1}}'),
    ('{"a":1}', '{"a":{"b":null}}', '{"a":{}}'),
    ('{"a":[1]}', '{"a":{"0":2}}', '{"a":{"0":2}}'),
    ('{"a":1}', '{"b":[null,{"c":null}]}', '{"a":1,"b":[null,{"c":null}]}'),
    ('{"a":true}', '{"a":1}', '{"a":1}'),
)
def test_merge_patch_follows_the_standard(original: str, patch: str, result: str) -> None:
    assert json_text.same(edits.apply_merge_patch(*map(json_text.parse, (original, patch))), json_text.parse(result))


# RFC 6902, appendix A


@cases(
    ("original", "patch", "result"),
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"baz":"qux","foo":"bar"}'),
    ('{"foo":["bar","baz"]}', '[{"op":"add","path":"/foo/1","value":"qux"}]', '{"foo":["bar","qux","baz"]}'),
    ('{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'),
    ('{"foo":["bar","qux","baz"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["bar","baz"]}'),
    ('{"baz":"qux","foo":"bar"}', '[{"op":"replace","path":"/baz","value":"boo"}]', '{"baz":"boo","foo":"bar"}'),
    ('{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
     '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
     '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}'),
    ('{"foo":["all","grass","cows","eat"]}', '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
     '{"foo":["all","cows","eat","grass"]}'),
    ('{"baz":"qux","foo":["a",2,"c"]}',
     '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
     '{"baz":"qux","foo":["a",2,"c"]}'),
    ('{"foo":"bar"}', '[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
     '{"foo":"bar","child":{"grandchild":{}}}'),
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux","xyz":123}]', '{"foo":"bar","baz":"qux"}'),
    ('{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'),
    ('{"foo":["bar"]}', '[{"op":"add","path":"/foo/-","value":["abc","def"]}]', '{"foo":["bar",["abc","def"]]}'),
    # and what the appendix leaves out
    ('{"a":{"b":[1]}}', '[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/0","value":null}]',
     '{"a":{"b":[1]},"c":{"b":[null,1]}}'),
    ('{"a":1}', '[{"op":"replace","path":"","value":[1]}]', "[1]"),
    ('{"a":null}', '[{"op":"test","path":"/a","value":null},{"op":"remove","path":"/a"}]', "{}"),
    ('{"a":1.0}', '[{"op":"test","path":"/a","value":1}]', '{"a":1.0}'),
)  # fmt: skip
def test_json_patch_follows_the_standard(original: str, patch: str, result: str) -> None:
    assert json_text.same(patched(original, patch), json_text.parse(result))


@cases(
    ("original", "patch", "message"),
    ('{"baz":"qux"}', '[{"op":"test","path":"/baz","value":"bar"}]',
     'operation 1 (test /baz) failed: found "qux", not "bar"'),
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz/bat","value":"qux"}]',
     "operation 1 (add /baz/bat) failed: there is no /baz"),
    ('{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":"10"}]',
     'operation 1 (test /~01) failed: found 10, not "10"'),
    ('{"a":1}', '[{"op":"test","path":"/a","value":true}]', "operation 1 (test /a) failed: found 1, not true"),
    ('{"a":1}', '[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b"}]',
     "operation 2 (remove /b) failed: there is no /b"),
    ('{"a":[1]}', '[{"op":"add","path":"/a/2","value":1}]',
     "operation 1 (add /a/2) failed: it does not fit the document"),
    ('{"a":1}', '[{"op":"move","from":"/b","path":"/c"}]', "operation 1 (move /c) failed: there is no /b"),
    ('{"a":{}}', '[{"op":"move","from":"/a","path":"/a/b"}]',
     "operation 1 (move /a/b) failed: it does not fit the document"),
    ('{"a":"x"}', '[{"op":"remove","path":"/a/0"}]', "operation 1 (remove /a/0) failed: there is no /a/0"),
    ('{"a":1}', '[{"op":"test","path":"","value":{}}]',
     'operation 1 (test of the whole document) failed: found {"a": 1}, not {}'),
    ('{"a":1}', '[{"op":"remove","path":""}]',
     "operation 1 (remove of the whole document) failed: it does not fit the document"),
    ('{"a":[1]}', '[{"op":"replace","path":"/a/-","value":1}]', "operation 1 (replace /a/-) failed: there is no /a/-"),
)  # fmt: skip
def test_an_operation_that_does_not_fit_is_named(original: str, patch: str, message: str) -> None:
    with pytest.raises(TransformFailed) as caught:
        patched(original, patch)
    assert caught.value.message == message
