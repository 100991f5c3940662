"""From the options of an update to what makes the new content: edits, or a command."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import edit_options, inputs
from azguard.cli.context import Environment
from azguard.cli.edit_options import TypedEdit
from azguard.cli.update_options import UpdateOptions
from azguard.documents import edits
from azguard.documents.edits import Edit
from azguard.documents.formats import is_yaml
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
            content = inputs.read(name)
            told = hashlib.sha256(content).hexdigest()
            return content

        if kind is Kind.ENTITY:
            found.append(edit_options.parse_for_entity(option, text, read))
        else:
            found.append(edit_options.parse(option, text, read, metadata=given.metadata, tags=given.tags))
        parts.append([option, told])
    part = "metadata" if given.metadata else "content"
    return TypedChange(found, Change.of([part, given.create, given.command, parts], _describe(given, typed)))


def _describe(given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> str:
    """Return a change for people, without its values."""
    if given.command:
        return f"-- {given.command[0]}{' …' if len(given.command) > 1 else ''}"
    return " ".join(f"{option} {_shorten(option, text)}" for option, text in typed)


def _shorten(option: str, text: str) -> str:
    """Return the text of an edit without its value."""
    if option in ("--append", "--append-line"):
        return "…"
    path, equals, _ = text.partition("=")
    return f"{path}=…" if equals else path


def build_change(env: Environment, kind: Kind, given: UpdateOptions, chosen: list[Edit]) -> Make:
    """Return what changes the content of a resource: the command, or the edits."""
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
        from azguard.tables import entity_edits

        return lambda target, deadline, content: entity_edits.apply(chosen, content)
    if given.metadata:
        return lambda target, deadline, content: edits.apply_to_metadata_text(chosen, content, KEY)
    if given.tags:
        return lambda target, deadline, content: edits.apply_to_tags_text(chosen, content)
    return lambda target, deadline, content: edits.apply(chosen, content)


def change_by_type(
    target: Target, given: UpdateOptions, chosen: list[Edit]
) -> Callable[[bytes, str | None], bytes] | None:
    """Return what edits the content of a blob as its type requires; None for what has one format, and for a command."""
    if given.command or given.is_of_part or target.kind is Kind.ENTITY:
        return None
    name = target.address.name
    return lambda content, content_type: edits.apply(chosen, content, is_yaml=is_yaml(name, content_type))


def list_created(target: Target, chosen: list[Edit], *, is_content: bool) -> Callable[[bytes, bytes], tuple[str, ...]]:
    """Return what lists the keys that an increment created; a name that was mistyped is one."""
    reads_yaml = is_content and is_yaml(target.address.name, None)
    return lambda source, made: edits.list_created(chosen, source, made, is_yaml=reads_yaml)


def initial_content(target: Target, given: UpdateOptions, chosen: list[Edit]) -> bytes | None:
    """Return the content to start from where there is nothing; None where nothing may be created.

    Raises:
        UsageError: it is none for this kind of resource.
    """
    if given.create is None:
        return None
    if target.kind is Kind.ENTITY:
        from azguard.tables import entity_edits

        try:
            return entity_edits.build_initial(given.create or None, target.address)
        except UsageError as error:
            raise error.but(message=f"--create: {error.message}") from None
    return edits.initial(given.create or None, chosen, is_yaml=is_yaml(target.address.name, None))


def output_rule(target: Target, given: UpdateOptions) -> Callable[[bytes, bytes, str | None], None]:
    """Return what refuses what was made; edits of content and what is always JSON need no such rule."""
    if given.tags and given.fence:
        from azguard.conditions import fences

        return fences.refuse_changed_tag
    if given.metadata:
        from azguard.documents.metadata import refuse_made

        return lambda source, made, content_type: refuse_made(made, KEY)
    if not given.command or given.is_of_part or target.kind not in (Kind.BLOB, Kind.FILE):
        return lambda source, made, content_type: None
    from azguard.documents import formats
    from azguard.processes import file_command

    maker = formats.FILE_COMMAND if file_command.names_file(given.command) else formats.FILTER
    return formats.OutputRule(target.address.name, given.allow_empty, given.any_content, maker).check
