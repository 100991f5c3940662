"""The built-in edits of an update: frozen values, applied to content in the order given.

Content is JSON or YAML, except for an append, which takes any bytes. Whatever an edit does not touch keeps its
bytes: layout, order, the spelling of numbers and strings, the byte order mark. Not kept is the layout of
values that an edit moves, copies or replaces: they are written in the style of the document around them.
"""

import codecs
import copy
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from azguard.documents import json_text, paths
from azguard.documents.json_text import LiteralNumber, NotJson, Style, render
from azguard.documents.paths import Missing, Path, describe
from azguard.errors import TransformFailed
from azguard.frozen import frozen

_VALUE_OPERATIONS = frozenset({"add", "replace", "test"})
_FROM_OPERATIONS = frozenset({"move", "copy"})
_OPERATIONS = _VALUE_OPERATIONS | _FROM_OPERATIONS | {"remove"}
_LONGEST_SHOWN = 80


class Set(NamedTuple):
    """Put the value there, making missing objects on the way."""

    path: Path
    value: object


class Unset(NamedTuple):
    """Remove the value there; nothing there is no error."""

    path: Path


class Increment(NamedTuple):
    """Add to the number there; a missing one counts as 0."""

    path: Path
    by: int | LiteralNumber


class MergePatch(NamedTuple):
    """A JSON Merge Patch (RFC 7396)."""

    document: object


class JsonPatch(NamedTuple):
    """The operations of a JSON Patch (RFC 6902), all of them or none."""

    operations: tuple[dict[str, object], ...]


@frozen
class AppendText:
    """Add the text, as UTF-8, to the end of any bytes."""

    text: str


@frozen
class AppendLine(AppendText):
    """Add the text as a line of its own: a line without an end before it gets one, and so does the text."""


Edit = Set | Unset | Increment | MergePatch | JsonPatch | AppendText


def initial(text: str | None, edits: Sequence[Edit], *, is_yaml: bool = False) -> bytes:
    """Return the content that a new resource starts from.

    Without a text that is ``{}`` where the first edit needs JSON, and nothing for YAML, an append or a filter command,
    which has no edits.
    """
    if text is not None:
        return text.encode("utf-8", "surrogateescape")
    return b"{}" if edits and not is_yaml and not isinstance(edits[0], AppendText) else b""


def apply(edits: Iterable[Edit], content: bytes, *, is_yaml: bool = False) -> bytes:
    """Return the content with the edits applied in order; untouched bytes when nothing changes in meaning.

    YAML that is JSON stays JSON.

    Raises:
        TransformFailed: the content is not UTF-8 JSON, or YAML, repeats a key in an object, or does not fit an edit.
    """
    for literal, group in itertools.groupby(edits, lambda edit: isinstance(edit, AppendText)):
        if literal:
            for edit in group:
                content += _bytes_after(content, edit)
        else:
            apply_to_text = _apply_to_yaml if is_yaml and not _is_json_object(content) else _apply_to_json
            content = _apply_to_text(partial(apply_to_text, group), content)
    return content


def list_created(edits: Iterable[Edit], before: bytes, after: bytes, *, is_yaml: bool = False) -> tuple[str, ...]:
    """Return the paths at which an increment found nothing, so that it began with 0."""
    counted = [edit.path for edit in edits if isinstance(edit, Increment)]
    if not counted:
        return ()
    source, made = (_read(each, is_yaml=is_yaml) for each in (before, after))
    created = [path for path in counted if _is_missing(source, path) and not _is_missing(made, path)]
    return tuple(dict.fromkeys(map(str, created)))


def _is_missing(document: object, path: Path) -> bool:
    return isinstance(paths.find(document, path), Missing)


def _read(content: bytes, *, is_yaml: bool) -> object:
    """Parse content; None if that fails, because a write that is done must not fail by being described."""
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
        if is_yaml and not _is_json_object(content):
            import yaml

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError:
                return None
        return json_text.parse(text)
    except (UnicodeDecodeError, NotJson, RecursionError):
        return None


def apply_to_metadata(edits: Iterable[Edit], metadata: dict[str, str], reserved: str) -> dict[str, str]:
    """Return the metadata with the edits applied in order; no edit may touch the key ``reserved``.

    Numbers, true and false become their JSON text, null removes, an increment reads the text as a number.
    Entries that no edit changes are returned as they are.
    """
    from azguard.documents import metadata as metadata_rules

    result = _apply_to_texts(edits, metadata)
    metadata_rules.check(result, [name for name, value in result.items() if metadata.get(name) != value])
    before, after = ({name.lower(): value for name, value in these.items()} for these in (metadata, result))
    if before.get(reserved) != after.get(reserved):
        raise TransformFailed(f"{reserved} is how azguard knows its own writes; it cannot be edited")
    return result


def apply_to_tags_text(edits: Iterable[Edit], content: bytes) -> bytes:
    """Return index tags edited as metadata are, both as a JSON object of strings."""
    return json.dumps(_apply_to_texts(edits, json.loads(content))).encode()


def _apply_to_texts(edits: Iterable[Edit], texts: dict[str, str]) -> dict[str, str]:
    from azguard.documents import metadata as metadata_rules

    result = dict(texts)
    for edit in edits:
        if isinstance(edit, AppendText):
            raise TransformFailed("text cannot be appended to metadata", reason="append_to_metadata")
        change = edit
        if isinstance(edit, Increment):
            change = Set(edit.path, _add(metadata_rules.read_number(paths.find(result, edit.path), edit.path), edit))
        result = metadata_rules.flatten(_apply_one(change, dict(result)))
    return result


def apply_to_metadata_text(edits: Iterable[Edit], content: bytes, reserved: str) -> bytes:
    """Return metadata edited, both as the JSON object of strings that a filter command gets and gives."""
    return json.dumps(apply_to_metadata(edits, json.loads(content), reserved)).encode()


def _bytes_after(content: bytes, edit: Edit) -> bytes:
    if not isinstance(edit, AppendText):
        return b""
    # An argument that was not UTF-8 arrives with its bytes as surrogates, and leaves as it was typed.
    text = edit.text.encode("utf-8", "surrogateescape")
    if not isinstance(edit, AppendLine):
        return text
    # A file of Windows keeps its ends of lines.
    end = b"\r\n" if content.endswith(b"\r\n") else b"\n"
    return (b"" if not content or content.endswith(b"\n") else end) + text + end


def _apply_to_text(apply: Callable[[str], str], content: bytes) -> bytes:
    """Change the text of content, which keeps its byte order mark."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark + apply(content[len(mark) :].decode()).encode()
    except UnicodeDecodeError as error:
        raise TransformFailed(f"the content is not UTF-8, at byte {error.start + len(mark)}") from None
    except UnicodeEncodeError:
        raise TransformFailed("a value holds half a character, which YAML cannot hold") from None
    except RecursionError:
        raise TransformFailed("the content is nested too deeply") from None


def _apply_to_json(edits: Iterable[Edit], text: str) -> str:
    try:
        old = json_text.parse(text)
        new = json_text.parse(text)
    except NotJson as error:
        message = f"the content is not JSON: {error}"
        raise TransformFailed(message, reason=None if text.strip() else "content_is_empty") from None
    for edit in edits:
        new = _apply_one(edit, new)
    return text if json_text.same(old, new) else json_text.rewrite(text, old, new)


def _is_json_object(content: bytes) -> bool:
    """Return whether content is a JSON object or array as a whole."""
    text = content.removeprefix(codecs.BOM_UTF8)
    if text.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json_text.check(text.decode())
    except (UnicodeDecodeError, NotJson):
        return False
    return True


def _apply_to_yaml(edits: Iterable[Edit], text: str) -> str:
    from azguard.documents import yaml_rewrite
    from azguard.documents.yaml_tree import NotYaml

    try:
        # One by one: each may change what another's path leads through.
        for edit in edits:
            path = edit.path if isinstance(edit, Set | Unset | Increment) else None
            text = yaml_rewrite.apply(text, path, partial(_apply_one, edit), removes=isinstance(edit, Unset))
    except NotYaml as error:
        raise TransformFailed(
            f"the content is not YAML that can be edited: {error}", reason="yaml_not_editable"
        ) from None
    return text


def _add(current: object, edit: Increment) -> int | LiteralNumber:
    if isinstance(current, paths.Missing):
        current = 0
    if isinstance(current, bool) or not isinstance(current, int | LiteralNumber):
        raise TransformFailed(
            f"{edit.path} is {describe(current)}, not a number",
            reason="increment_of_no_number",
            values={"path": str(edit.path)},
        )
    total = json_text.add_exactly(current, edit.by)
    if total is None:
        raise TransformFailed(f"{edit.path} would be too large for a JSON number", reason="sum_too_large")
    return total


def _apply_one(edit: Edit, document: object) -> object:
    """Return the document after one edit; the one that is passed in may be changed on the way."""
    if isinstance(edit, Set):
        paths.put(document, edit.path, copy.deepcopy(edit.value))
    elif isinstance(edit, Unset):
        paths.remove(document, edit.path)
    elif isinstance(edit, Increment):
        paths.put(document, edit.path, _add(paths.find(document, edit.path), edit))
    else:
        if isinstance(edit, MergePatch):
            return apply_merge_patch(document, edit.document)
        if isinstance(edit, JsonPatch):
            return apply_patch(document, edit.operations)
    return document


def validate_patch(operations: object) -> str | None:
    """Return the reason why a document is no JSON Patch, or None if the document is one."""
    if not isinstance(operations, list):
        return f"a JSON Patch is an array of operations, this is {paths.describe(operations)}"
    wrongs = ((place, _wrong(operation)) for place, operation in enumerate(operations, 1))
    return next((f"operation {place}: {wrong}" for place, wrong in wrongs if wrong), None)


def _wrong(operation: object) -> str | None:
    if not isinstance(operation, dict):
        return f"is {paths.describe(operation)}, not an object"
    kind = operation.get("op")
    if not isinstance(kind, str) or kind not in _OPERATIONS:
        return f'"op" must be one of {", ".join(sorted(_OPERATIONS))}'
    pointers = ["path", "from"] if kind in _FROM_OPERATIONS else ["path"]
    for member in pointers:
        if not _is_pointer(operation.get(member)):
            return f'"{member}" must be a JSON Pointer such as /a/b'
    if kind in _VALUE_OPERATIONS and "value" not in operation:
        return f'{kind} needs a "value"'
    return None


def _is_pointer(text: object) -> bool:
    from jsonpointer import JsonPointer, JsonPointerException

    if not isinstance(text, str):
        return False
    try:
        JsonPointer(text)
    except JsonPointerException:
        return False
    return True


def apply_patch(document: object, operations: tuple[dict[str, object], ...]) -> object:
    """Return the document with the operations applied; the one given may be changed on the way."""
    import jsonpatch
    from jsonpointer import JsonPointerException

    for place, operation in enumerate(operations, 1):
        try:
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
        except (jsonpatch.JsonPatchException, JsonPointerException):
            raise _failure(document, operation, place) from None
    return document


def _failure(document: object, operation: dict[str, object], place: int) -> TransformFailed:
    """Return the failure in our words: the library's own would quote the whole document."""
    kind, path = operation["op"], operation["path"]
    shown = f"operation {place} ({kind} {path or 'of the whole document'}) failed"
    missing = next((at for at in _pointers(operation) if _find(document, at) is paths.MISSING), None)
    if kind == "test" and missing is None:
        found, wanted = _brief(_find(document, str(path))), _brief(operation["value"])
        return TransformFailed(f"{shown}: found {found}, not {wanted}", reason="patch_failed")
    if missing is None:
        return TransformFailed(f"{shown}: it does not fit the document", reason="patch_failed")
    return TransformFailed(f"{shown}: there is no {missing}", reason="patch_failed")


def _pointers(operation: dict[str, object]) -> list[str]:
    """Return the pointers that must exist; only the parent of the place where something is added must."""
    path = str(operation["path"])
    if operation["op"] not in _FROM_OPERATIONS and operation["op"] != "add":
        return [path]
    parent = path.rpartition("/")[0]
    return [str(operation["from"]), parent] if "from" in operation else [parent]


def _find(document: object, pointer: str) -> object:
    return paths.find(document, paths.parse(pointer)) if pointer else document


def _brief(value: object) -> str:
    text = render(value, Style())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def apply_merge_patch(document: object, patch: object) -> object:
    """Return the document with the merge patch applied; the one given may be changed on the way."""
    import json_merge_patch  # type: ignore[import-untyped]  # the package ships no types

    # The library puts the patch's own arrays into the result, where a later edit would change them.
    result: object = json_merge_patch.merge(document, copy.deepcopy(patch))
    return result
