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
    """Change a resource in your editor; the change is written exactly once, merged with those of other writers.

    The editor is $VISUAL, else $EDITOR, else the program editor or vi. It gets a private copy of the content, whose
    name ends as the blob's; an entity, metadata and tags are JSON. Nothing is locked while you edit; --timeout counts
    only for the write. Nothing is written if the editor fails (exit 65), or if azguard gets SIGTERM or SIGHUP, which it
    passes on to the editor (exit 143 or 129).

    If another writer was faster, the two changes are merged: by members in JSON, else by lines. If both changed the
    same place, the editor opens again with both changes, between the marks that git uses. Content that was JSON or YAML
    must stay so: on a terminal you are asked to correct it, elsewhere it is refused (exit 65), unless --any-content is
    given.

    Nothing that you typed is lost. If something fails, your text stays in a file, which the error names; --resume FILE
    continues with it. If azguard was killed, the file is in the folder kept of the cache folder.

    The write is that of safe-update: exactly once, also if answers get lost. With --op-id no editor opens if the edit
    is done already, or if the key is of another change (exit 45).

    Examples:
        azguard edit blob:site/config.json
        azguard edit entity:Orders/eu/1007
        azguard edit blob:site/config.json --metadata

    Topics: updates
    """
    from azguard.processes.child import Editor
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
