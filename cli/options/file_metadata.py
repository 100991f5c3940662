"""The commands of the metadata of a share, a directory or a file."""

from typing import Any

from azguard.accounts.account import Target
from azguard.cli.context import Environment
from azguard.cli.input import addresses, parts
from azguard.cli.options import common, resources
from azguard.cli.options.resources import Noun
from azguard.cli.parsing.tree import Group
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.wire.rows import Operation, Part


def declare_metadata(
    app: Group, noun: Noun, reads: Operation, writes: Operation, note: str, *, first: str = "", last: str = ""
) -> None:
    """Declare get and set; ``note`` says in the help of set what guards it, ``first`` and ``last`` end its examples."""

    def set_metadata(
        env: Environment, resource: Any, metadata: common.Metadata = None, file: resources.MetadataFile = None
    ) -> None:
        from azguard.files import properties

        target = env.locate(resource, noun.kind, writable=True)
        wanted, seen = parts.read_metadata(metadata, file)
        conditions, guarding = env.conditions(target, seen), addresses.guarding(env)
        done = properties.replace_metadata(target, wanted, conditions, guarding, env.deadline)
        resources.record_replaced(env, target, Part.METADATA, done)

    line, called = f"azguard {noun.word} metadata", noun.called
    text = f"""Replace all metadata of a {called}, if they are still those that you read. azguard keeps its own entry.

    {note}

    Examples:
        {line} set {noun.example} --metadata owner=ops{first}
        {line} get {noun.example} > metadata.json
        {line} set {noun.example} -f metadata.json{last}

    Topics: {noun.topic}
    """
    commands = resources.declare_part(app, noun, Part.METADATA, reads, _read)
    set_metadata.__annotations__["resource"] = noun.argument
    commands.command("set", spec=common.operation(writes), text=text)(set_metadata)


def _read(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    from azguard.files import properties

    return properties.get_metadata(target, conditions, deadline)
