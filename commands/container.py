"""``azguard container``: create, show, exists, list, delete, undelete, metadata, acl."""

from typing import Annotated

from azguard.address import Kind
from azguard.blobs import containers, listing
from azguard.cli import nouns, parts
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun, declare_exists, declare_list, declare_show
from azguard.cli.options import common
from azguard.cli.options.types import choice
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.leases.owners import OF_LOCK
from azguard.resources.parts import get_metadata, replace_metadata
from azguard.wire.operations.containers import (
    CONTAINER_CREATE,
    CONTAINER_DELETE,
    CONTAINER_GET_ACL,
    CONTAINER_GET_PROPERTIES,
    CONTAINER_SET_ACL,
    CONTAINER_SET_METADATA,
    CONTAINER_UNDELETE,
)
from azguard.wire.rows import Part

app = Group()
_CONTAINER = Noun(Kind.CONTAINER, common.Container, "site", "conditions", describe=containers.describe)
metadata = parts.declare_part(app, _CONTAINER, Part.METADATA, CONTAINER_GET_PROPERTIES, get_metadata)
parts.declare_set(
    metadata,
    _CONTAINER,
    Part.METADATA,
    CONTAINER_SET_METADATA,
    lambda env, target, wanted, conditions: replace_metadata(target, wanted, conditions, env.deadline, OF_LOCK),
    """Replace all metadata of a container. azguard keeps its own entry.

    The service cannot guard this write, and a lease on a container does not keep other writers out. With --allow-race
    azguard compares the version with the one that you read last, or with --etag. Another writer can still come in
    between.

    A change of the access policies changes the version too.

    Examples:
        azguard container metadata set site --metadata owner=ops --allow-race

    Topics: conditions
    """,
)
acl_app = parts.declare_part(app, _CONTAINER, Part.ACL, CONTAINER_GET_ACL, containers.read_acl)


@app.command(spec=common.operation(CONTAINER_CREATE))
def create(
    env: Environment,
    container: common.Container,
    metadata: common.Metadata = None,
    public_access: Annotated[
        str, option("--public-access", "off|blob|container", "Let others read it.", choice)
    ] = "off",
    if_exists: common.IfExists = None,
    *,
    waiting: common.OptionalWaitOptions,
) -> None:
    """Create a container; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    The name of a container that was just deleted is refused for a while (exit 49). --wait waits for that.

    Examples:
        azguard container create site
        azguard container create site --if-exists skip
        azguard container create backups --metadata owner=ops
    """
    target = env.locate(container, Kind.CONTAINER)
    access = None if public_access == "off" else public_access
    nouns.create(env, target, if_exists, metadata, waiting, public_access=access)


declare_show(app, _CONTAINER, CONTAINER_GET_PROPERTIES, _CONTAINER.look, topic="")
declare_exists(app, _CONTAINER, CONTAINER_GET_PROPERTIES, _CONTAINER.look)


declare_list(app, _CONTAINER, common.remote("List Containers honours no conditions"), _CONTAINER.find, "deleted")
nouns.declare_undelete(app, _CONTAINER, CONTAINER_UNDELETE)


nouns.declare_delete(
    app,
    _CONTAINER,
    CONTAINER_DELETE,
    """Delete a container, if it is empty and unchanged.

    A container with blobs in it is not deleted (exit 42) unless you give --with-contents. On a terminal azguard asks.
    Uncommitted uploads count as blobs. Snapshots, old versions and soft-deleted blobs do not. Not guaranteed: a blob
    that is written between the count and the delete is deleted too. If that matters, stop the writers first.

    The service does not compare the ETag here. So --etag takes a lease, compares, deletes. Two changes of the
    metadata within one second can look like one.

    Examples:
        azguard container delete site
        azguard container delete site --with-contents
        azguard container delete site --last-writer-wins

    Topics: conditions
    """,
    send=lambda env, target, conditions, deadline: containers.delete(target, conditions, env.lease_records, deadline),
    look=_CONTAINER.look,
    count=listing.count_blobs,
)


@acl_app.command(name="set", spec=common.operation(CONTAINER_SET_ACL))
def set_policies(
    env: Environment,
    container: common.Container,
    file: common.JsonFile = None,
    public_access: Annotated[
        str | None,
        option("--public-access", "off|blob|container", "Choose who may read it without a SAS.", choice),
    ] = None,
) -> None:
    """Replace all access policies of a container by those of a JSON file, as acl get prints them.

    Who may read without a SAS stays, unless you give --public-access. With --public-access and no --file the policies
    stay.

    The service cannot guard this write, and a lease on a container does not keep other writers out. With --allow-race
    azguard compares the version with the one that you read last, or with --etag. Another writer can still come in
    between. New policies take effect after up to 30 seconds.

    Examples:
        azguard container acl set site --public-access off --allow-race
        azguard container acl get site > policies.json
        azguard container acl set site -f policies.json --allow-race

    Topics: conditions
    """
    target = env.locate(container, Kind.CONTAINER)
    stays = file is None and public_access is not None
    policies, seen = (None, None) if stays else parts.read_policies(file, Kind.CONTAINER)
    done = containers.replace_acl(target, policies, public_access, env.conditions(target, seen), env.deadline)
    parts.record_replaced(env, target, Part.ACL, done)
