"""What is the same in the commands of all kinds of resources: exists, list, and the options of create and delete."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import typer

from azguard.accounts.account import Account
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import asking, context, options, values
from azguard.cli.command_spec import CommandSpec
from azguard.cli.context import Environment
from azguard.cli.groups import Commands
from azguard.conditions.operations import Operation
from azguard.conditions.requested import CREATE_ONLY, RequestedConditions
from azguard.errors import NotFound, UsageError
from azguard.requests.deadline import Deadline

if TYPE_CHECKING:
    from azguard.conditions.resolve import Conditions
    from azguard.resources.contents import Contents

#: Asks the service for a resource.
Look = Callable[[Target, "Conditions", Deadline], Any]


@dataclass(frozen=True)
class Noun:
    """A kind of resource, in the words of its commands."""

    kind: Kind
    #: The word after ``azguard``.
    word: str
    #: The type of the argument that names one.
    argument: Any
    #: The one in the examples.
    example: str
    #: The topic of ``azguard help`` about it.
    topic: str
    #: What one is called in a sentence, where that is not its word.
    name: str = ""

    @property
    def called(self) -> str:
        """Return what one is called in a sentence, without an article."""
        return self.name or self.word

    def declare(
        self, app: Commands, command: str, spec: CommandSpec, text: str, run: Callable[[Environment, Target], None]
    ) -> None:
        """Declare a command whose argument names one of them; ``text`` is its help."""

        def callback(ctx: typer.Context, resource: Any) -> None:
            run(*context.locate(ctx, resource, self.kind))

        callback.__annotations__["resource"] = self.argument
        app.command(command, spec=spec, help=text)(callback)


def declare_exists(app: Commands, noun: Noun, operation: Operation, look: Look, remark: str = "") -> None:
    """Declare the command that tells by its exit status whether there is one; ``remark`` stands in its summary."""

    def run(env: Environment, target: Target) -> None:
        from azguard.resources import existence

        conditions = env.conditions(target)
        found = existence.ask_whether_exists(target, lambda: look(target, conditions, env.deadline))
        env.out.answer(found, 0 if found.exists else NotFound.exit_code)

    line = f"azguard {noun.word} exists {noun.example}"
    text = f"""Exit 0 if the {noun.called} exists, 44 if not.{remark}

    Examples:
        {line}
        {line} -o none && echo "it is there"
    """
    noun.declare(app, "exists", options.operation(operation), text, run)


def declare_list(
    app: Commands,
    noun: Noun,
    spec: CommandSpec,
    find: Callable[[Account, Deadline, str | None, int | None], Iterable[Any]],
) -> None:
    """Declare the command that lists those of the account."""

    def list_(ctx: typer.Context, prefix: options.Prefix = None, num_results: options.Limit = None) -> None:
        env = context.of(ctx)
        limit = values.count(num_results, "--num-results")
        env.out.show_each(find(env.account, env.deadline, prefix, limit))

    line = f"azguard {noun.word} list"
    text = f"""List the account's {noun.called}s.

    Examples:
        {line}
        {line} --prefix {noun.example[: 3 if noun.kind is Kind.TABLE else 2]}
        {line} --query '[].name' -o tsv
    """
    app.command("list", spec=spec, help=text)(list_)


def create(env: Environment, if_exists: str | None, send: Callable[[str], Any], find: Callable[[str], Any]) -> Any:
    """Create a resource, and return what was created, or with ``--if-exists skip`` what is there.

    ``send`` creates it and ``find`` looks for what is there; both get the id of this write.
    """
    from azguard.requests.lineage import fresh_op
    from azguard.resources import existence

    op = fresh_op()
    return existence.create(lambda: send(op), lambda: find(op), skip=skips(env, if_exists))


def skips(env: Environment, if_exists: str | None) -> bool:
    """Return whether what exists is to be left alone.

    Raises:
        UsageError: a condition on what exists is given too.
    """
    if values.choice(values.not_empty(if_exists, "--if-exists"), "--if-exists", ("skip",)) is None:
        return False
    asked = RequestedConditions.of(env.shared)
    for name in (each.name for each in fields(RequestedConditions)):
        if getattr(asked, name) not in (None, False, getattr(CREATE_ONLY, name)):
            raise UsageError(
                f"--if-exists skip and --{name.replace('_', '-')} contradict each other: what exists is left alone, "
                "whatever it is",
                hint="leave one of them out",
            )
    return True


def confirm_delete(target: Target) -> "Callable[[Contents], None] | None":
    """Return what asks whether a resource is to be deleted with its contents; None where no person can be asked."""
    if not asking.on_terminal():
        return None
    return lambda found: asking.confirm(f"delete {target} and the {found} in it?", "nothing was deleted")


def confirm_clear(target: Target) -> "Callable[[Contents], None] | None":
    """Return what asks whether the contents of a resource, which stays, are to be deleted; None without a person."""
    if not asking.on_terminal():
        return None
    return lambda found: asking.confirm(f"delete the {found} in {target}?", "nothing was deleted")
