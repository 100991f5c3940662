"""From the options of an edit to what the core runs: the editor, the questions, and the rules for what was made."""

from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import asking, update_changes
from azguard.cli.context import Environment
from azguard.cli.update_options import UpdateOptions
from azguard.documents import formats
from azguard.processes.child import Editor
from azguard.updates.editing import EditTools
from azguard.updates.recording import UpdateRequest

# What was made of a source of a content type is refused by TransformFailed.
_Check = Callable[[bytes, bytes, str | None], None]


def tools(env: Environment, target: Target, given: UpdateOptions, request: UpdateRequest, editor: Editor) -> EditTools:
    """Return what a session of editing one resource uses."""
    return EditTools(
        run_editor=editor.run,
        ask=asking.asks_to_go_on if asking.on_terminal() else None,
        tell=env.out.say,
        folder=env.folders.kept,
        name=update_changes.file_name(target, metadata=given.is_of_part),
        check=_rule(target, given, request),
        complete=_complete(target),
    )


def _rule(target: Target, given: UpdateOptions, request: UpdateRequest) -> _Check:
    complete = _complete(target)
    name = target.address.name if target.kind is Kind.BLOB else ""
    is_content = target.kind is Kind.BLOB and not given.is_of_part
    rule = formats.OutputRule(name, given.allow_empty, given.any_content, formats.EDITOR)

    def check(source: bytes, made: bytes, content_type: str | None) -> None:
        if is_content:
            rule.check(source, made, content_type)
            if made and not given.any_content and formats.is_yaml(name, content_type):
                formats.check_yaml(source, made)
        request.resource.canonicalize(complete(source, made))

    return check


def _complete(target: Target) -> Callable[[bytes, bytes], bytes]:
    if target.kind is not Kind.ENTITY:
        return lambda source, made: made
    from azguard.tables import entity_json

    return entity_json.drop_orphan_types
