"""``azguard file``: set-properties."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options
from azguard.cli.file_property_options import FilePropertyOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Files: set-properties.")


@app.command(name="set-properties", spec=options.operation(operations.FILE_SET_PROPERTIES))
def set_properties(ctx: typer.Context, file: file_options.File, given: FilePropertyOptions) -> None:
    """Change content headers, attributes and times of a file, but only of the version you have seen.

    What you do not name stays. The service does not compare the ETag here. So azguard takes a lease, compares, writes.

    Examples:
        azguard file set-properties team/plan.txt --content-type text/plain
        azguard file set-properties team/plan.txt --attributes 'Hidden|Archive'

    Topics: files
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(file, Kind.FILE, writable=True)
    wanted = given.check()
    conditions = env.conditions(target)
    done = properties.change_file(target, wanted, conditions, file_options.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)
