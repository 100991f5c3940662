"""From the options of built-in edits, such as ``--set PATH=JSON``, to the edits of the core."""

import json
import shlex
from collections.abc import Callable

from azguard.cli import inputs
from azguard.documents import json_text, paths
from azguard.documents.edits import AppendLine, AppendText, Edit, Increment, JsonPatch, MergePatch, Set, Unset
from azguard.documents.json_text import LiteralNumber, NotJson
from azguard.documents.paths import Path, describe
from azguard.errors import UsageError

#: An edit as typed: the option, and its text.
TypedEdit = tuple[str, str]


def parse(option: str, text: str, read: Callable[[str], bytes], *, metadata: bool = False, tags: bool = False) -> Edit:
    """Return the edit that an option such as ``--set`` and its text stand for.

    ``read`` returns the bytes of a FILE. With ``metadata`` or ``tags`` the target is a flat map of strings, and a value
    that is not JSON is taken as the text it is; paths of ``metadata`` are their names.

    Raises:
        UsageError: the text is malformed; the hint says how to write it.
    """
    if option in ("--append", "--append-line"):
        if metadata or tags:
            what = "metadata" if metadata else "tags"
            raise UsageError(f"{option} does not apply to {what}", hint="use --set NAME=VALUE")
        return _parse_append(option, text)
    if not _is_utf8(text):
        raise UsageError(f"{option}: {text!r} is not UTF-8")
    if option == "--merge-patch":
        return MergePatch(_read_json(option, text, read))
    if option == "--json-patch":
        return JsonPatch(_operations(text, _read_json(option, text, read)))
    if option == "--unset":
        return Unset(_path_of(option, text, metadata))
    if option == "--increment":
        return _parse_increment(text, metadata)
    if option == "--set":
        return _parse_set(text, metadata, is_text=metadata or tags)
    if option == "--set-string":
        return _parse_set_string(text, metadata)
    raise ValueError(f"{option} is not an edit")


def parse_for_entity(option: str, text: str, read: Callable[[str], bytes]) -> Edit:
    """Return the edit of an entity that an option and its text stand for.

    Raises:
        UsageError: the text is malformed, or the edit is none for an entity.
    """
    from azguard.tables import entity_edits

    edit = parse(option, text, read)
    if isinstance(edit, AppendText):
        raise UsageError(
            f"{option} does not apply to an entity, which is no text", hint="--set-string NAME=TEXT sets a property"
        )
    if not isinstance(edit, (Set, Unset, Increment)):
        return edit
    try:
        return edit._replace(path=entity_edits.property_path(edit.path))
    except UsageError as error:
        raise error.but(message=f"{option}: {error.message}") from None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path_of(option: str, text: str, metadata: bool) -> Path:
    try:
        path = paths.parse(text)
    except UsageError as error:
        raise error.but(message=f"{option}: {error.message}") from None
    if metadata:
        name = path.steps[0].name
        if name is None or len(path.steps) > 1:
            raise UsageError(f"{option}: {text!r} is not one name, and metadata is flat", hint="write NAME")
        from azguard.documents import metadata as metadata_rules

        if not metadata_rules.is_name(name):
            raise UsageError(f"{option}: {name!r} is not a metadata name", reason="metadata_name_malformed")
    elif path.steps[-1].end and path.steps[-1].name is None and option not in ("--set", "--set-string"):
        raise UsageError(f"{option}: {text!r} names no element", hint="[-] is after the last; write [-1]")
    return path


def _parse_append(option: str, text: str) -> AppendText:
    if option == "--append":
        return AppendText(text)
    if not text:
        raise UsageError(
            "--append-line: the line is empty", hint="an unset shell variable looks like this; --append adds any text"
        )
    if "\n" in text or "\r" in text:
        raise UsageError("--append-line: that is more than one line", hint="repeat it for each, or use --append")
    return AppendLine(text)


def _parse_set_string(text: str, metadata: bool) -> Set:
    target, value = paths.split(text)
    path = _path_of("--set-string", target, metadata)
    if value is None:
        raise UsageError(f"--set-string: {text!r} has no =", hint=f"write --set-string {shlex.quote(text + '=TEXT')}")
    if not value:
        empty = f"--set {shlex.quote(target + '=' + chr(34) * 2)}"
        raise UsageError(
            f"--set-string: no value for {target}",
            hint=f"an unset shell variable looks like this; for an empty text write {empty}",
        )
    return Set(path, value)


def _parse_set(text: str, metadata: bool, *, is_text: bool) -> Set:
    target, value = paths.split(text)
    path = _path_of("--set", target, metadata)
    if value is None:
        raise UsageError(f"--set: {text!r} has no =", hint=f"write --set {shlex.quote(text + '=JSON')}")
    quoted = f"--set {shlex.quote(f'{target}={json.dumps(value, ensure_ascii=False)}')}"
    if not value:
        raise UsageError(f"--set: no value for {target}", hint=f"for an empty text write {quoted}")
    try:
        parsed = json_text.parse(value)
    except NotJson as error:
        if is_text:
            return Set(path, value)
        raise UsageError(
            f"--set: the value for {target} is not JSON: {error}",
            hint=f"if it is text, write --set-string {shlex.quote(text)}",
        ) from None
    if is_text and isinstance(parsed, dict | list):
        raise UsageError(f"--set: {target} cannot hold {describe(parsed)}", hint=f"for text write {quoted}")
    if isinstance(parsed, LiteralNumber) and json_text.is_infinite(parsed):
        raise UsageError(f"--set: {value} is infinity to most readers of JSON", hint="stay below 1.8e308")
    return Set(path, parsed)


def _parse_increment(text: str, metadata: bool) -> Increment:
    target, step = paths.split(text)
    path = _path_of("--increment", target, metadata)
    if step is None:
        return Increment(path, 1)
    by = json_text.read_spelled(step.removeprefix("+"))
    if by is None or json_text.is_infinite(by):
        raise UsageError(f"--increment: {step!r} is not a number", hint=f"write {target}=5 or {target}=-0.5")
    return Increment(path, by)


def _read_json(option: str, file: str, read: Callable[[str], bytes]) -> object:
    if not file:
        raise UsageError(f"{option}: the file name is empty", hint=f"write {option} FILE")
    try:
        return json_text.parse(read(file).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {inputs.show_name(file)} is not UTF-8, at byte {error.start}") from None
    except NotJson as error:
        raise UsageError(f"{option}: {inputs.show_name(file)} is not JSON: {error}") from None


def _operations(file: str, document: object) -> tuple[dict[str, object], ...]:
    from azguard.documents import edits

    problem = edits.validate_patch(document)
    if problem or not isinstance(document, list):
        example = '[{"op": "replace", "path": "/replicas", "value": 3}]'
        raise UsageError(f"--json-patch: {file}: {problem}", hint=f"a JSON Patch looks like {example}")
    return tuple(document)
