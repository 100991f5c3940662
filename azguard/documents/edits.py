"""The built-in edits of safe-update: frozen values, read from options, applied to content in the order given.

Content is JSON, except for ``--append``, which takes any bytes. Whatever an edit does not touch keeps its
bytes: layout, order, the spelling of numbers and strings, the byte order mark. Not kept is the layout of
values that an edit moves, copies or replaces: they are written in the style of the document around them.
"""

import codecs
import copy
import itertools
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from azguard.documents import metadata as metadata_rules
from azguard.documents import numbers, paths
from azguard.documents import text as json_text
from azguard.documents.numbers import LiteralNumber
from azguard.documents.paths import Path, describe
from azguard.documents.text import NotJson
from azguard.errors import TransformFailed, UsageError


@dataclass(frozen=True)
class Set:
    """``--set PATH=JSON``: put the value there, making missing objects on the way."""

    path: Path
    value: object


@dataclass(frozen=True)
class Unset:
    """``--unset PATH``: remove the value there; nothing there is no error."""

    path: Path


@dataclass(frozen=True)
class Increment:
    """``--increment PATH[=N]``: add to the number there; a missing one counts as 0."""

    path: Path
    by: int | LiteralNumber


@dataclass(frozen=True)
class MergePatch:
    """``--merge-patch FILE``: a JSON Merge Patch (RFC 7396)."""

    document: object


@dataclass(frozen=True)
class JsonPatch:
    """``--json-patch FILE``: the operations of a JSON Patch (RFC 6902), all of them or none."""

    operations: tuple[dict[str, object], ...]


@dataclass(frozen=True)
class Append:
    """``--append TEXT``: add the text, as UTF-8, to the end of any bytes."""

    text: str


Edit = Set | Unset | Increment | MergePatch | JsonPatch | Append


def parse(option: str, text: str, read: Callable[[str], bytes], *, metadata: bool = False) -> Edit:
    """Return the edit that an option such as ``--set`` and its text stand for.

    ``read`` returns the bytes of a FILE. With ``metadata`` the target is a flat map of strings: paths are
    metadata names, and a value that is not JSON is taken as the text it is.

    Raises:
        UsageError: the text is malformed; the hint says how to write it.
    """
    if option == "--append":
        if metadata:
            raise UsageError("--append does not apply to metadata", hint="use --set NAME=VALUE")
        return Append(text)
    if not _is_utf8(text):
        raise UsageError(f"{option}: {text!r} is not UTF-8")
    if option == "--merge-patch":
        return MergePatch(_read_json(option, text, read))
    if option == "--json-patch":
        return JsonPatch(_operations(text, _read_json(option, text, read)))
    if option == "--unset":
        return Unset(_target(option, text, metadata))
    if option == "--increment":
        return _parse_increment(text, metadata)
    if option == "--set":
        return _parse_set(text, metadata)
    raise ValueError(f"{option} is not an edit")


def initial(text: str | None, edits: Sequence[Edit]) -> bytes:
    """Return the content that ``--create [INITIAL]`` starts from.

    Without INITIAL that is ``{}`` where the first edit needs JSON, and nothing for ``--append`` or a filter
    command, which has no edits.
    """
    if text is not None:
        return text.encode("utf-8", "surrogateescape")
    return b"{}" if edits and not isinstance(edits[0], Append) else b""


def apply(edits: Iterable[Edit], content: bytes) -> bytes:
    """Return the content with the edits applied in order; untouched bytes when nothing changes in meaning.

    Raises:
        TransformFailed: the content is not UTF-8 JSON, repeats a key in an object, or does not fit an edit.
    """
    for literal, group in itertools.groupby(edits, lambda edit: isinstance(edit, Append)):
        if literal:
            content += b"".join(_literal(edit) for edit in group)
        else:
            content = _apply_to_json(group, content)
    return content


def apply_to_metadata(edits: Iterable[Edit], metadata: dict[str, str], reserved: str) -> dict[str, str]:
    """Return the metadata with the edits applied in order; no edit may touch the key ``reserved``.

    Numbers, true and false become their JSON text, null removes, ``--increment`` reads the text as a number.
    Entries that no edit changes are returned as they are, whatever they hold.

    Raises:
        TransformFailed: an edit does not fit, or Azure would not take the result.
    """
    result = dict(metadata)
    for edit in edits:
        if isinstance(edit, Append):
            raise TransformFailed("--append does not apply to metadata", hint="use --set NAME=VALUE")
        change = edit
        if isinstance(edit, Increment):
            change = Set(edit.path, _sum(metadata_rules.as_number(paths.find(result, edit.path), edit.path), edit))
        result = metadata_rules.flattened(_edited(change, dict(result)))
    metadata_rules.check(result, [name for name, value in result.items() if metadata.get(name) != value])
    before, after = ({name.lower(): value for name, value in these.items()} for these in (metadata, result))
    if before.get(reserved) != after.get(reserved):
        raise TransformFailed(f"{reserved} is how azguard knows its own writes; it cannot be edited")
    return result


def apply_to_metadata_text(edits: Iterable[Edit], content: bytes, reserved: str) -> bytes:
    """Return metadata edited, both as the JSON object of strings that a filter command gets and gives."""
    return json.dumps(apply_to_metadata(edits, json.loads(content), reserved)).encode()


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _target(option: str, text: str, metadata: bool) -> Path:
    path = paths.parse(text, option)
    if metadata:
        name = path.steps[0].name
        if name is None or len(path.steps) > 1:
            raise UsageError(f"{option}: {text!r} is not one name, and metadata is flat", hint="write NAME")
        problem = metadata_rules.name_problem(name)
        if problem:
            raise UsageError(f"{option}: {problem}", hint="use letters, digits and _, not a digit first")
    elif path.steps[-1].end and path.steps[-1].name is None and option != "--set":
        raise UsageError(f"{option}: {text!r} names no element", hint="[-] is after the last; write [-1]")
    return path


def _parse_set(text: str, metadata: bool) -> Set:
    target, value = paths.split(text)
    path = _target("--set", target, metadata)
    if value is None:
        raise UsageError(f"--set: {text!r} has no =", hint=f"write --set {shlex.quote(text + '=JSON')}")
    quoted = f"--set {shlex.quote(f'{target}={json.dumps(value, ensure_ascii=False)}')}"
    if not value:
        raise UsageError(f"--set: no value for {target}", hint=f"for an empty text write {quoted}")
    try:
        parsed = json_text.parse(value)
    except NotJson as error:
        if metadata:
            return Set(path, value)
        raise UsageError(
            f"--set: the value for {target} is not JSON: {error}", hint=f"if it is text, quote it: {quoted}"
        ) from None
    if metadata and isinstance(parsed, dict | list):
        raise UsageError(f"--set: {target} cannot hold {describe(parsed)}", hint=f"for text write {quoted}")
    if isinstance(parsed, LiteralNumber) and numbers.is_infinite(parsed):
        raise UsageError(f"--set: {value} is infinity to most readers of JSON", hint="stay below 1.8e308")
    return Set(path, parsed)


def _parse_increment(text: str, metadata: bool) -> Increment:
    target, step = paths.split(text)
    path = _target("--increment", target, metadata)
    if step is None:
        return Increment(path, 1)
    by = numbers.read(step.removeprefix("+"))
    if by is None or numbers.is_infinite(by):
        raise UsageError(f"--increment: {step!r} is not a number", hint=f"write {target}=5 or {target}=-0.5")
    return Increment(path, by)


def _read_json(option: str, file: str, read: Callable[[str], bytes]) -> object:
    if not file:
        raise UsageError(f"{option}: the file name is empty", hint=f"write {option} FILE")
    try:
        return json_text.parse(read(file).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {file} is not UTF-8, at byte {error.start}") from None
    except NotJson as error:
        raise UsageError(f"{option}: {file} is not JSON: {error}") from None


def _operations(file: str, document: object) -> tuple[dict[str, object], ...]:
    from azguard.documents import patches

    problem = patches.validate_patch(document)
    if problem or not isinstance(document, list):
        example = '[{"op": "replace", "path": "/replicas", "value": 3}]'
        raise UsageError(f"--json-patch: {file}: {problem}", hint=f"a JSON Patch looks like {example}")
    return tuple(document)


def _literal(edit: Edit) -> bytes:
    # An argument that was not UTF-8 arrives with its bytes as surrogates, and leaves as it was typed.
    return edit.text.encode("utf-8", "surrogateescape") if isinstance(edit, Append) else b""


def _apply_to_json(edits: Iterable[Edit], content: bytes) -> bytes:
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        text = content[len(mark) :].decode()
        old = json_text.parse(text)
        new = json_text.parse(text)
        for edit in edits:
            new = _edited(edit, new)
        return content if json_text.same(old, new) else mark + json_text.rewrite(text, old, new).encode()
    except UnicodeDecodeError as error:
        raise TransformFailed(f"the content is not UTF-8, at byte {error.start + len(mark)}") from None
    except NotJson as error:
        hint = "to make it JSON first, begin with --append '{}'" if not content.strip() else None
        raise TransformFailed(f"the content is not JSON: {error}", hint=hint) from None
    except RecursionError:
        raise TransformFailed("the content is nested too deeply") from None


def _sum(current: object, edit: Increment) -> int | LiteralNumber:
    if isinstance(current, paths.Missing):
        current = 0
    if isinstance(current, bool) or not isinstance(current, int | LiteralNumber):
        raise TransformFailed(
            f"--increment: {edit.path} is {describe(current)}, not a number",
            hint=f"set a number first: --set {shlex.quote(f'{edit.path}=0')}",
        )
    total = numbers.add_exactly(current, edit.by)
    if total is None:
        raise TransformFailed(f"--increment: {edit.path} would be too large for a JSON number")
    return total


def _edited(edit: Edit, document: object) -> object:
    """Return the document after one edit; the one given may be changed on the way."""
    if isinstance(edit, Set):
        paths.put(document, edit.path, copy.deepcopy(edit.value))
    elif isinstance(edit, Unset):
        paths.remove(document, edit.path)
    elif isinstance(edit, Increment):
        paths.put(document, edit.path, _sum(paths.find(document, edit.path), edit))
    else:
        from azguard.documents import patches

        if isinstance(edit, MergePatch):
            return patches.apply_merge_patch(document, edit.document)
        if isinstance(edit, JsonPatch):
            return patches.apply_patch(document, edit.operations)
    return document
