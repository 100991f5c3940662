"""Commands that several nouns have alike: what creates, shows, lists and deletes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import TEXT, kinds
from azguard.cli.parsing.rows import CommandSpec, option
from azguard.cli.parsing.tree import Group
from azguard.errors import GaveUp, Locked, NotFound
from azguard.frozen import frozen
from azguard.requests.deadline import Deadline, poll
from azguard.requests.results import WOULD_DELETE
from azguard.times import span
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from azguard.guards.resolve import Conditions
    from azguard.resources.lifecycles import Contents, Count


T = TypeVar("T")
# A deleted resource is gone after half a minute or more.
_LONGEST_PAUSE_SECONDS = 3.0
# Whose address can name a snapshot, which is never written.
_WITH_SNAPSHOTS = (Kind.BLOB, Kind.SHARE, Kind.DIR, Kind.FILE)
#: Asks the service for a resource.
Look = Callable[[Target, "Conditions", Deadline], Any]


@frozen
class Noun:
    """A kind of resource, in the words of its commands."""

    kind: Kind
    #: The type of the argument that names one.
    argument: Any
    #: The one in the examples.
    example: str
    #: The topic of ``azguard help`` about it.
    topic: str
    #: Returns what is shown of one, by its properties, or as it is listed.
    describe: Callable[[Address, Any], Any] | None = None

    def locate(self, env: Environment, resource: str) -> Target:
        """Return the one that is to be written."""
        return env.locate(resource, self.kind, writable=self.kind in _WITH_SNAPSHOTS)

    def look(self, target: Target, conditions: "Conditions", deadline: Deadline) -> Any:
        """Return one resource as show prints it; raises what ``properties.fetch`` raises."""
        from azguard.resources import properties

        assert self.describe is not None
        return self.describe(target.address, properties.fetch(target, conditions, deadline))

    def find(
        self, account: Account, deadline: Deadline, prefix: str | None, limit: int | None, include: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield what is shown of each of the account's; see ``lifecycles.list_all``."""
        from azguard.resources import lifecycles

        assert self.describe is not None
        return starmap(self.describe, lifecycles.list_all(account, self.kind, deadline, prefix, limit, include))

    def declare(
        self, app: Group, command: str, spec: CommandSpec, text: str, callback: Callable[..., int | None]
    ) -> None:
        """Declare a command whose argument ``resource`` names one of them; ``text`` is its help."""
        callback.__annotations__["resource"] = self.argument
        app.command(command, spec=spec, text=text)(callback)


def declare_show(
    app: Group, noun: Noun, operation: Operation, look: Look, field: str = "etag", topic: str | None = None
) -> None:
    """Declare the command that shows one; ``field`` is in its examples, ``topic`` its topic, by default the noun's."""

    def show(env: Environment, resource: Any) -> None:
        target = env.locate(resource, noun.kind)
        env.out.show(look(target, env.conditions(target), env.deadline))

    line, topics = f"azguard {noun.kind} show {noun.example}", noun.topic if topic is None else topic
    text = f"""Show a {noun.kind.noun}'s properties and metadata.

    Examples:
        {line}
        {line} --query {field} -o tsv

    {f"Topics: {topics}" if topics else ""}
    """
    noun.declare(app, "show", common.operation(operation), text, show)


def declare_exists(app: Group, noun: Noun, operation: Operation, look: Look, remark: str = "") -> None:
    """Declare the command that tells by its exit status whether there is one; ``remark`` stands in its summary."""

    def exists(env: Environment, resource: Any) -> int:
        from azguard.resources import lifecycles

        target = env.locate(resource, noun.kind)
        conditions = env.conditions(target)
        found = lifecycles.ask_whether_exists(target, lambda: look(target, conditions, env.deadline))
        return env.out.answer(found, 0 if found.exists else NotFound.exit_code)

    line = f"azguard {noun.kind} exists {noun.example}"
    text = f"""Exit 0 if the {noun.kind.noun} exists, 44 if not.{remark}

    Examples:
        {line}
        {line} -o none && echo "it is there"
    """
    noun.declare(app, "exists", common.operation(operation), text, exists)


def declare_list(
    app: Group,
    noun: Noun,
    spec: CommandSpec,
    find: Callable[..., Iterable[Any]],
    included: str = "",
) -> None:
    """Declare the command that lists those of the account; ``included`` is what --include shows besides."""

    def list_(env: Environment, prefix: common.Prefix = None, num_results: common.Limit = None) -> None:
        env.out.show_each(find(env.account, env.deadline, prefix, num_results))

    def list_including(
        env: Environment, prefix: common.Prefix = None, num_results: common.Limit = None, include: Any = ()
    ) -> None:
        env.out.show_each(find(env.account, env.deadline, prefix, num_results, include))

    row = option("--include", "KINDS", f"Show also {included.replace('|', ', ')}.", kinds(included))
    list_including.__annotations__["include"] = Annotated[Sequence[str], row]
    line = f"azguard {noun.kind} list"
    examples = [line, f"{line} --prefix {noun.example[: 3 if noun.kind is Kind.TABLE else 2]}"]
    examples += [f"{line} --include snapshots"] if "snapshots" in included else []
    lines = "\n        ".join([*examples, f"{line} --query '[].name' -o tsv"])
    text = f"""List the account's {noun.kind.noun}s.

    Examples:
        {lines}
    """
    callback: Callable[..., None] = list_including if included else list_
    app.command("list", spec=spec, text=text)(callback)


def declare_undelete(app: Group, noun: Noun, operation: Operation) -> None:
    """Declare the command that brings one back that was deleted."""

    def run(
        env: Environment,
        resource: Any,
        deleted_version: Annotated[
            str | None, option("--deleted-version", "VERSION", "Bring back this one of several.", TEXT)
        ] = None,
    ) -> None:
        from azguard.resources import lifecycles

        target = noun.locate(env, resource)
        env.conditions(target)
        env.out.show(lifecycles.undelete(target, deleted_version, env.deadline))

    line = f"azguard {noun.kind}"
    text = f"""Bring back a {noun.kind.noun} that was deleted and is still kept, with all that was in it.

    An account keeps deleted {noun.kind.noun}s for as many days as it was told. If several of one name are
    kept, the list names their versions. If a {noun.kind.noun} has the name now, nothing is done (exit 45).

    Examples:
        {line} undelete {noun.example}
        {line} list --include deleted
    """
    noun.declare(app, "undelete", common.operation(operation), text, run)


def declare_create(app: Group, noun: Noun, operation: Operation, text: str) -> None:
    """Declare the command that creates one with nothing but metadata; ``text`` is its help."""

    def callback(
        env: Environment,
        resource: Any,
        waiting: common.OptionalWaitOptions,
        metadata: common.Metadata = None,
        if_exists: common.IfExists = None,
    ) -> None:
        create(env, noun.locate(env, resource), if_exists, metadata, waiting)

    noun.declare(app, "create", common.operation(operation), text, callback)


def declare_delete(
    app: Group,
    noun: Noun,
    operation: Operation,
    text: str,
    *,
    send: Callable[[Environment, Target, "Conditions", Deadline], Any],
    look: Look,
    count: "Count | None" = None,
) -> None:
    """Declare the command that deletes one by ``send``; ``text`` is its help.

    ``count`` counts the contents of one, which only --with-contents deletes too.
    """

    def run(env: Environment, resource: Any, count: "Count | None", *, dry_run: bool) -> None:
        from azguard.guards.resolve import Conditions

        target = noun.locate(env, resource)
        conditions = env.conditions(target)
        seen = Conditions(lease_id=conditions.lease_id)
        delete(
            env,
            target,
            conditions,
            lambda deadline: send(env, target, conditions, deadline),
            lambda: look(target, seen, env.deadline),
            count,
            dry_run=dry_run,
        )

    def delete_with_contents(
        env: Environment, resource: Any, *, with_contents: common.WithContents = False, dry_run: common.DryRun = False
    ) -> None:
        run(env, resource, None if with_contents else count, dry_run=dry_run)

    def delete_empty(env: Environment, resource: Any, *, dry_run: common.DryRun = False) -> None:
        run(env, resource, None, dry_run=dry_run)

    callback: Callable[..., None] = delete_empty if count is None else delete_with_contents
    noun.declare(app, "delete", common.operation(operation), text, callback)


def declare_entries(app: Group, text: str, kind: Kind | None = None) -> None:
    """Declare the command that lists the entries of a share or directory, or only those of this kind."""
    from azguard.cli.input import addresses

    def list_(env: Environment, folder: Any, prefix: common.Prefix = None, num_results: common.Limit = None) -> None:
        from azguard.files import entries

        target = addresses.locate_folder(env, folder)
        env.out.show_each(entries.list_entries(target, env.deadline, prefix=prefix, limit=num_results, kind=kind))

    list_.__annotations__["folder"] = addresses.Folder
    app.command("list", spec=common.remote("List Directories and Files honours no conditions"), text=text)(list_)


def create(
    env: Environment,
    target: Target,
    if_exists: str | None,
    metadata: dict[str, str] | None,
    waiting: common.OptionalWaitOptions,
    **given: Any,
) -> None:
    """Create a resource and show the result; with ``--if-exists skip``, show the resource that exists.

    ``given`` is what else it is created with.
    """
    from azguard.requests.lineage import fresh_op
    from azguard.resources import lifecycles

    env.conditions(target)
    op = fresh_op()

    def make() -> Any:
        return lifecycles.create_unless_exists(
            lambda: lifecycles.create(target, metadata or {}, env.deadline.fresh(), op, **given),
            lambda: lifecycles.find_existing(target, op, env.deadline),
            skip=if_exists is not None,
        )

    done = wait_for_name(env, make, waiting)
    if target.kind is not Kind.QUEUE:  # which has no version
        env.reads.record(target, done)
    env.out.show(done)


def wait_for_name(env: Environment, make: Callable[[], T], waiting: common.OptionalWaitOptions) -> T:
    """Return the result of ``make``, tried again as --wait says while one of that name is still being deleted.

    Raises:
        GaveUp: it was, until the time was up.
    """
    if waiting.wait is None:
        return make()
    import random

    from azguard.requests.service_codes import is_being_deleted

    last: list[Locked] = []

    def attempt(_: Deadline) -> T | None:
        try:
            return make()
        except Locked as error:
            if not is_being_deleted(error):
                raise
            if not last:
                env.out.info(f"{error.message}: waiting up to {span(waiting.wait or 0)}")
            last[:] = [error]
            return None

    made = poll(attempt, env.patience(None, waiting.wait), random.uniform, longest_pause_seconds=_LONGEST_PAUSE_SECONDS)
    if made is None:
        raise last[0].as_kind(GaveUp) from last[0]
    return made


def delete(
    env: Environment,
    target: Target,
    conditions: "Conditions",
    send: Callable[[Deadline], Any],
    look: Callable[[], Any],
    count: "Count | None" = None,
    *,
    dry_run: bool,
) -> None:
    """Delete a resource by ``send`` and show the result; in a dry run, show the resource that ``look`` finds.

    ``count`` counts its contents, where they are not meant to be deleted too.
    """
    from azguard.resources.lifecycles import require_empty

    if dry_run:
        show_doomed(env, target, conditions, look, count)
        return

    def delete_empty() -> Any:
        if count is not None:
            require_empty(count, target, env.deadline.fresh(), confirm_contents(target))
        return send(env.deadline.fresh())

    env.out.show(env.reads.delete(target, conditions, delete_empty))


def confirm_contents(target: Target, *, stays: bool = False) -> "Callable[[Contents], None] | None":
    """Return the function that asks whether to delete a resource with its contents; None without a person to ask.

    ``stays`` says that its contents alone are deleted.
    """
    if not streams.on_terminal():
        return None

    def ask(found: "Contents") -> None:
        doomed = f"the {found} in {target}" if stays else f"{target} and the {found} in it"
        streams.confirm(f"delete {doomed}?", "nothing was deleted")

    return ask


def show_doomed(
    env: Environment,
    target: Target,
    conditions: "Conditions",
    look: Callable[[], Any],
    count: "Count | None" = None,
    outcome: str = WOULD_DELETE,
) -> None:
    """Show the effect of a delete; ``count`` counts the contents, where they are not meant to be deleted too.

    ``outcome`` is what another write would do.

    Raises:
        Changed: it is not the version that is meant, or not empty.
        NotFound: there is none.
    """
    from azguard.resources import lifecycles

    with env.reads.explain_deleted(target, conditions):
        found = look()
    env.out.show(lifecycles.preview(target, conditions, found, count, env.deadline.fresh(), outcome))
