"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396), through their libraries; failures in our words."""

import copy

from azguard.documents import paths
from azguard.documents.text import Style, render
from azguard.errors import TransformFailed

_VALUE_OPERATIONS = frozenset({"add", "replace", "test"})
_FROM_OPERATIONS = frozenset({"move", "copy"})
_OPERATIONS = _VALUE_OPERATIONS | _FROM_OPERATIONS | {"remove"}
_LONGEST_SHOWN = 80


def validate_patch(operations: object) -> str | None:
    """Return what keeps a document from being a JSON Patch, or None."""
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
    """Return the document with the operations applied; the one given may be changed on the way.

    Raises:
        TransformFailed: an operation does not fit, a ``test`` among them; names the operation.
    """
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
