"""``azguard safe-update`` and ``edit``: read, change and write back, exactly once."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Annotated

from azguard.cli import completers, signals
from azguard.cli.context import Environment
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import CommandSpec, argument
from azguard.cli.parsing.tree import Group
from azguard.commands.safe_update import plans
from azguard.commands.safe_update.options import TypedEdit, UpdateOptions
from azguard.commands.safe_update.plans import EditorOptions
from azguard.errors import AzguardError, NotFound, OutcomeUnknown
from azguard.times import iso, span
from azguard.updates import update as updates

if TYPE_CHECKING:
    from azguard.accounts.account import Target
    from azguard.resources.pool import Done

# The exit status that stands for the outcome of an op.
_EXIT_STATUSES = {"committed": 0, "not_committed": NotFound.exit_code, "unknown": OutcomeUnknown.exit_code}
_ALREADY = ": this --op-id was applied before"
_UPDATE_SPEC = CommandSpec(
    why_no_conditions="safe-update guards each write by the version it has just read", takes_key=True
)
_EDIT_SPEC = CommandSpec(why_no_conditions="edit guards each write by the version it has just read", takes_key=True)

app = Group()


@app.command("safe-update", spec=_UPDATE_SPEC)
def safe_update(
    env: Environment,
    address: Annotated[
        str,
        argument(
            "ADDRESS",
            "blob:CONTAINER/NAME, container:NAME, queue:NAME, entity:TABLE/PARTITION/ROW, table:NAME, share:NAME, "
            "dir:SHARE/PATH or file:SHARE/PATH.",
            completer=completers.addresses,
        ),
    ],
    given: UpdateOptions,
) -> int:
    """Read, change, write back: again on conflict, and applied exactly once.

    The change is a command after --, or built-in edits, applied in the order they are written. The command may run
    more than once and must depend on its input alone. If it fails, nothing is written (exit 65).

    The command reads the content from stdin and prints the new content. For a tool that edits a file write {} where
    its file stands, as an argument of its own or as --OPTION={}: it gets the path of a private copy, which is read back
    when it has ended with 0. Its stdin is empty then, and what it prints goes to stderr. {} inside any other argument
    is left alone; for such a case: -- sh -c 'sed -i s/1/2/ "$1"' sh {}

    Two results of the command are refused (exit 65): empty output where there was content (--allow-empty permits it),
    and output that is not JSON where there was JSON (--any-content permits it). Content counts as JSON if the whole
    is an object or an array; if the name ends in .json or the content type is JSON, any JSON value counts. Content
    whose name or type says JSON lines or YAML never counts.

    Edits are made in JSON; in YAML if the name ends in .yaml or .yml or the content type is YAML. Comments, order and
    layout stay as they are, except where an edit changes them.

    Exactly once holds even when responses get lost, because every write records its id and the version it replaced
    in the metadata key azguardlineage. If a writer that is not azguard wipes that key at the wrong moment, the answer
    is "unknown" (exit 74), never a guess; --guard lease is sound beside any writer. A response counts as lost after
    20s of silence; AZGUARD_WRITE_TIMEOUT sets another duration. Creating is weaker: a create that was delivered late
    can bring back a blob that was deleted meanwhile; where blobs are deleted, keep an empty blob as a tombstone
    instead.

    --op-id names the change by a key. A second run with the key and the same change does nothing and ends with 0; its
    outcome is applied_before. With another change it is refused (exit 45, key_of_another_change), unless
    --op-id-any-change is given. A key whose change was there already is recorded too. The last 128 keys are remembered,
    of an entity the last 512; fewer where the other metadata leave no room. --status asks for the outcome of a key:
    exit 0, 44 if it was not applied, 74 if it may have been forgotten.

    --fence is kept in an index tag, which needs t in a SAS or the role Storage Blob Data Owner, and an account without
    hierarchical namespace. The fence is recorded even if the content stays as it is. A write of metadata cannot carry
    tags: with --metadata the fence is only compared, and does not stop a holder with a lower one afterwards.

    --tags updates the index tags of a blob, under a lease that azguard takes for each write, since the service
    compares no version of tags. --metadata of a container, a queue or a directory is only compared with what was read,
    which --allow-race accepts: another writer can come in between.

    A share or a file is written under a lease: azguard takes it, compares, writes. A reader sees the old content of the
    file or the new. If azguard is killed, the next one on this machine ends its lease. The new content takes the place
    of the file: a program that has the file open over SMB keeps the write out (exit 49).

    An entity is JSON with the types of its properties, which edits keep. --guard ledger writes a row ~op~ID beside it
    in the same transaction, which is sound beside any writer, for creating too. These rows stay: azguard entity query
    TABLE --filter "RowKey ge '~op~' and RowKey lt '~op~~'" finds them.

    --where updates all entities of a table that match, each by itself, with --timeout for each; the rows of a ledger
    are left out. An entity that does not match any more when it is read again is skipped. If any fails, the exit status
    is 20, and a line of JSON for each failed one has its own status.

    Examples:
        azguard safe-update blob:site/config.json --increment replicas
        azguard safe-update blob:site/config.json -- sed s/1/2/
        azguard safe-update entity:Orders/eu/1007 --set 'status="packed"'

    Topics: paths, updates, tables, fences
    """
    given.check_key()
    if given.command:
        command_line.require_divider(given.command, env.argv)
    typed = given.edits_in(env.order)
    if given.status:
        return _show_status(env, address, given, typed)
    if given.where is not None:
        _update_many(env, address, given, typed)
    elif given.dry_run:
        _show_preview(env, address, given, typed)
    else:
        request = plans.request(env, env.locate(address, writable=True), given, typed)
        with signals.until_committed():
            report = plans.run(env, request, given, typed)
        env.out.show(report)
    return 0


def _show_status(env: Environment, address: str, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> int:
    """Show the outcome of an op, and end with the exit status that says so."""
    found = plans.find_status(env, env.locate(address), given, typed)
    if found.outcome == "unknown":
        env.out.info(_describe_memory(found.oldest_key))
    return env.out.answer(found, _EXIT_STATUSES[found.outcome])


def _describe_memory(oldest: datetime | None) -> str:
    if oldest is None:
        return "no key is remembered there"
    age = span((datetime.now(UTC) - oldest).total_seconds())
    return f"the oldest key that is remembered there is {age} old, of {iso(oldest)}; those before it are forgotten"


def _show_preview(env: Environment, address: str, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> None:
    """Print the diff of what an update would do: as text, or inside the result if a format was asked for."""
    request = plans.request(env, env.locate(address, writable=True), given, typed)
    found = updates.preview(request.resource, request.plan, env.deadline)
    told = _describe_preview(request.target, found)
    already = "" if found.applied is None else _ALREADY
    env.out.show_preview(told, str(told["diff"]), f"{request.target} would not change{already}")
    _tell_created(env, found.created_keys)


def _describe_preview(target: "Target", found: updates.Preview) -> dict[str, object]:
    from azguard.documents import diffs

    return {
        "address": str(target.address),
        "etag": found.etag,
        "outcome": _name_outcome(found),
        "created_keys": found.created_keys,
        "diff": diffs.compare(found.before or b"", found.after, target.address.short),
    }


def _name_outcome(found: updates.Preview) -> str:
    if found.applied is not None:
        return "applied_before"
    return "unchanged" if found.before == found.after else "dry_run"


def _update_many(env: Environment, address: str, given: UpdateOptions, typed: tuple[TypedEdit, ...]) -> None:
    """Update all entities of a table that match, or print the difference that each update would make."""
    from azguard.tables import update_many

    many = plans.many(env, env.locate(address, writable=True), given, typed)
    if not given.dry_run:
        counts = replace(env.out, in_stream=True)
        with signals.until_committed(), env.out.progress_bar(f"update {address}", unit="entities") as progress:
            numbers = count(1)

            def tell(done: "Done") -> None:
                if done.error is not None:
                    progress.hide()
                    _show_failure(env, done, done.error)
                progress.at(next(numbers))

            def tell_counts(found: object) -> None:
                progress.hide()
                counts.show(found)
                env.once_told.append(many.forget)

            update_many.update_all(many, given.jobs, tell, tell_counts)
        return
    previews = update_many.preview_all(many)
    if env.out.is_chosen:
        env.out.show_each(_describe_preview(*each) for each in previews)
        return
    created: dict[str, None] = {}
    for target, found in previews:
        env.out.show_diff(str(_describe_preview(target, found)["diff"]))
        created.update(dict.fromkeys(found.created_keys))
    _tell_created(env, created)


def _tell_created(env: Environment, keys: Iterable[str]) -> None:
    """Tell a person which keys an increment would create: one whose name is mistyped is among them."""
    if keys and not env.out.is_chosen:
        env.out.info(f"--increment would create {', '.join(keys)}: there is no such key")


def _show_failure(env: Environment, done: "Done", error: AzguardError) -> None:
    from azguard.cli.words import hints

    told = {"address": done.address, "outcome": done.outcome, "error": hints.in_words(error).as_json()}
    env.out.show_picked([told], told)


@app.command("edit", spec=_EDIT_SPEC)
def edit(
    env: Environment,
    address: Annotated[
        str,
        argument(
            "ADDRESS",
            "blob:CONTAINER/NAME, container:NAME, queue:NAME, entity:TABLE/PARTITION/ROW, share:NAME, "
            "dir:SHARE/PATH or file:SHARE/PATH.",
            completer=completers.addresses,
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
    from azguard.processes.file_command import Editor
    from azguard.updates import editing as sessions

    resumed, editor = given.read_resumed(), Editor.choose(env.environ)
    update = given.as_update()
    target = env.locate(address, writable=True)
    request = plans.request(env, target, update, ())
    with signals.until_committed():
        report = sessions.edit_and_record(
            request,
            plans.tools(env, target, update, request, editor),
            plans.records(env),
            start_deadline=lambda: plans.deadline(env, update),
            resumed=resumed,
        )
    env.out.show(report)
