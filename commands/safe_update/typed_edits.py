"""From what an update is to do, edits as typed or a command, to what makes the new content."""

import hashlib
import json
import shlex
from collections.abc import Callable
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.commands.safe_update.options import TypedEdit, UpdateOptions
from azguard.documents import edits, json_text, paths
from azguard.documents.edits import AppendLine, AppendText, Edit, Increment, JsonPatch, MergePatch, Set, Unset
from azguard.documents.formats import FILE_COMMAND, FILTER, OutputRule, is_yaml
from azguard.documents.json_text import LiteralNumber, NotJson
from azguard.documents.paths import Path, describe
from azguard.errors import UsageError
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.updates.resource import Change

# ``yq .a=1 {}`` prints the new content, and leaves the file as it was.
_UNREAD_OUTPUT = (
    "the command printed something and left the file {} as it was; to take its output as the new content, leave {} out"
)
# ``helm repo index --merge {} .`` reads the file, and writes another.
_UNTOUCHED = "the command did not write to its file {}, which is what is read back"
#: Makes new content of a resource's content, within a deadline.
Make = Callable[[Target, Deadline, bytes], bytes]


def parse_edit(
    option: str, text: str, read: Callable[[str], bytes], *, metadata: bool = False, tags: bool = False
) -> Edit:
    """Return the edit that an option such as ``--set`` and its text stand for.

    ``read`` returns the bytes of a FILE. With ``metadata`` or ``tags`` the target is a flat map of strings, and a value
    that is not JSON is taken as the text it is; paths of ``metadata`` are their names.
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
    """Return the edit of an entity that an option and its text stand for."""
    from azguard.tables import updates

    edit = parse_edit(option, text, read)
    if isinstance(edit, AppendText):
        raise UsageError(
            f"{option} does not apply to an entity, which is no text", hint="--set-string NAME=TEXT sets a property"
        )
    if not isinstance(edit, (Set, Unset, Increment)):
        return edit
    try:
        return edit._replace(path=updates.property_path(edit.path))
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
    if not text:
        raise UsageError(f"{option} is empty", hint="an unset shell variable looks like this; leave the option out")
    if option == "--append":
        return AppendText(text)
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
        raise UsageError(f"{option}: {streams.show_name(file)} is not UTF-8, at byte {error.start}") from None
    except NotJson as error:
        raise UsageError(f"{option}: {streams.show_name(file)} is not JSON: {error}") from None


def _operations(file: str, document: object) -> tuple[dict[str, object], ...]:
    problem = edits.validate_patch(document)
    if problem or not isinstance(document, list):
        example = '[{"op": "replace", "path": "/replicas", "value": 3}]'
        raise UsageError(f"--json-patch: {file}: {problem}", hint=f"a JSON Patch looks like {example}")
    return tuple(document)


class TypedChange(NamedTuple):
    """What was typed to be changed: the edits, and how the change is told from others under the same key."""

    edits: list[Edit]
    change: Change


def parse_edits(kind: Kind, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> TypedChange:
    """Return the edits that were typed; the files of their patches are read here, once."""
    found: list[Edit] = []
    #: Of a patch in a file it is the content that tells it from another.
    parts: list[object] = []
    for option, text in typed:
        told = text

        def read(name: str) -> bytes:
            nonlocal told
            content = streams.read(name)
            told = hashlib.sha256(content).hexdigest()
            return content

        if kind is Kind.ENTITY:
            found.append(parse_for_entity(option, text, read))
        else:
            found.append(parse_edit(option, text, read, metadata=given.metadata, tags=given.tags))
        parts.append([option, told])
    part = "metadata" if given.metadata else "content"
    return TypedChange(found, Change.of([part, given.create, given.command, parts], _describe(given, typed)))


def _describe(given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> str:
    """Return a change for people, without its values."""
    if given.command:
        return f"-- {given.command[0]}{' …' if len(given.command) > 1 else ''}"
    return " ".join(f"{option} {_shorten(option, text)}" for option, text in typed)


def _shorten(option: str, text: str) -> str:
    if option in ("--append", "--append-line"):
        return "…"
    path, equals, _ = text.partition("=")
    return f"{path}=…" if equals else path


def build_change(env: Environment, kind: Kind, given: UpdateOptions, chosen: list[Edit]) -> Make:
    """Return the function that changes the content of a resource: the command, or the edits."""
    change = _by_command(env, given) if given.command else _by_edits(kind, chosen, given)
    if kind is not Kind.ENTITY:
        return change

    def change_entity(target: Target, deadline: Deadline, content: bytes) -> bytes:
        from azguard.tables import entity_json

        return entity_json.drop_orphan_types(content, change(target, deadline, content))

    return change_entity


def _by_command(env: Environment, given: UpdateOptions) -> Make:
    command = given.command or []

    def filter_content(target: Target, deadline: Deadline, content: bytes) -> bytes:
        from azguard.processes import file_command, filter_command

        end = deadline.started + deadline.seconds
        environ = {**env.environ, "AZGUARD_ADDRESS": str(target.address)}
        if not file_command.names_file(command):
            return filter_command.run(command, content, environ=environ, deadline=end, clock=deadline.clock)
        printed = _Printed(env)
        name = file_name(target, metadata=given.is_of_part)
        made = file_command.run(
            command, content, name, environ=environ, deadline=end, clock=deadline.clock, relay=printed.take
        )
        if made.content == content and (printed.something or not made.is_touched):
            env.out.warn_once(_UNREAD_OUTPUT if printed.something else _UNTOUCHED)
        return made.content

    return filter_content


class _Printed:
    """What a command prints that edits a file: it goes to stderr, because it is not the content."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.something = False

    def take(self, chunk: bytes) -> None:
        self.something = self.something or bool(chunk)
        self._env.out.pass_on(chunk)


def file_name(target: Target, *, metadata: bool) -> str:
    """Return the name for a file with the content: its end tells programs the format."""
    name = target.address.short
    if metadata:
        return f"{name}.metadata.json"
    return f"{name}.json" if target.kind is Kind.ENTITY else name


def _by_edits(kind: Kind, chosen: list[Edit], given: UpdateOptions) -> Make:
    if kind is Kind.ENTITY:
        from azguard.tables import updates

        return lambda target, deadline, content: updates.apply_edits(chosen, content)
    if given.metadata:
        return lambda target, deadline, content: edits.apply_to_metadata_text(chosen, content, KEY)
    if given.tags:
        return lambda target, deadline, content: edits.apply_to_tags_text(chosen, content)
    return lambda target, deadline, content: edits.apply(chosen, content)


def change_by_type(
    target: Target, given: UpdateOptions, chosen: list[Edit]
) -> Callable[[bytes, str | None], bytes] | None:
    """Return the function that edits a blob's content as its type requires; None for one fixed format or a command."""
    if given.command or given.is_of_part or target.kind is Kind.ENTITY:
        return None
    name = target.address.name
    return lambda content, content_type: edits.apply(chosen, content, is_yaml=is_yaml(name, content_type))


def list_created(target: Target, chosen: list[Edit], *, is_content: bool) -> Callable[[bytes, bytes], tuple[str, ...]]:
    """Return the function that lists the keys that an increment created; a mistyped name creates such a key."""
    reads_yaml = is_content and is_yaml(target.address.name, None)
    return lambda source, made: edits.list_created(chosen, source, made, is_yaml=reads_yaml)


def initial_content(target: Target, given: UpdateOptions, chosen: list[Edit]) -> bytes | None:
    """Return the content to start from where there is nothing; None where nothing may be created."""
    if given.create is None:
        return None
    if target.kind is Kind.ENTITY:
        from azguard.tables import entity_json

        try:
            return entity_json.build_initial(given.create or None, target.address)
        except UsageError as error:
            raise error.but(message=f"--create: {error.message}") from None
    return edits.initial(given.create or None, chosen, is_yaml=is_yaml(target.address.name, None))


def choose_output_rule(target: Target, given: UpdateOptions) -> Callable[[bytes, bytes, str | None], None]:
    """Return the check of the new content; edits of content, and content that is always JSON, need no such check."""
    if given.tags and given.fence is not None:
        from azguard.guards import fences

        return fences.refuse_changed_tag
    if given.metadata:
        from azguard.documents.metadata import refuse_made

        return lambda source, made, content_type: refuse_made(made, KEY)
    if not given.command or given.is_of_part or target.kind not in (Kind.BLOB, Kind.FILE):
        return lambda source, made, content_type: None
    from azguard.processes import file_command

    maker = FILE_COMMAND if file_command.names_file(given.command) else FILTER
    return OutputRule(target.address.name, given.allow_empty, given.any_content, maker).check
