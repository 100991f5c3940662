"""``azguard edit``: change a resource in an editor, and write it back exactly once."""

from typing import Annotated

import typer

from azguard.cli import completers, context, editing, signals, update_plans
from azguard.cli.command_spec import CommandSpec
from azguard.cli.editor_options import EditorOptions
from azguard.cli.groups import alone


def edit(
    ctx: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="blob:CONTAINER/NAME, container:NAME, queue:NAME, entity:TABLE/PARTITION/ROW, share:NAME, "
            "dir:SHARE/PATH or file:SHARE/PATH.",
            autocompletion=completers.addresses,
        ),
    ],
    given: EditorOptions,
) -> None:
    """Change it in your editor; written back exactly once, merged with what others wrote.

    The editor is $VISUAL, else $EDITOR, else the program editor or vi. It gets a private copy of the content, whose
    name ends as the blob's; an entity, metadata and tags are JSON. Nothing is locked while you edit, and no time runs:
    --timeout is for the write. If the editor fails, nothing is written (exit 65). Nor is it if azguard gets SIGTERM or
    SIGHUP meanwhile, which it passes on to the editor (exit 143 or 129).

    If another writer was faster, the two changes are merged: by members in JSON, else by lines. Where both changed the
    same place, the editor opens again on both, between marks as git writes them. Content that was JSON or YAML must
    still be: on a terminal you are asked to mend it, elsewhere it is refused (exit 65), unless --any-content is given.

    Nothing that you typed is lost. Whatever goes wrong, it stays in a file, which the error names, and --resume FILE
    goes on with it. If azguard was killed, the file is in the folder kept of the cache folder.

    The write is that of safe-update: exactly once, also if answers get lost. With --op-id an edit that is done already
    opens no editor; nor does a key of another change (exit 45).

    Examples:
        azguard edit blob:site/config.json
        azguard edit entity:Orders/eu/1007
        azguard edit blob:site/config.json --metadata

    Topics: updates
    """
    from azguard.processes.editor import Editor
    from azguard.updates import editing as sessions

    env = context.of(ctx)
    given.check(env.location(address).address)
    resumed, editor = given.read_resumed(), Editor.choose(env.environ)
    update = given.as_update()
    target = env.locate(address, writable=True)
    request = update_plans.request(env, target, update, ())
    with signals.until_committed():
        report = sessions.edit_and_record(
            request,
            editing.tools(env, target, update, request, editor),
            update_plans.records(env),
            start_deadline=lambda: update_plans.deadline(env, update),
            resumed=resumed,
        )
    env.out.show(report)


_SPEC = CommandSpec(
    why_no_conditions="edit guards each write by the version it has just read", optional_value="--create"
)
app = alone(edit, "edit", _SPEC)
