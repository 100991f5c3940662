"""What names a snapshot or an earlier version of a blob."""

import shlex

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.errors import UsageError
from azguard.urls import same_host

_WHICH = ("snapshot=", "versionid=")
_NEWEST = ("snapshot", "version")


def locate_kept(env: Environment, target: Target, text: str | None) -> Target:
    """Return the snapshot or version of a blob that a text names: the newest, or by its id, or as an address.

    Raises:
        UsageError: it is malformed, names neither, or is of another blob.
        NotFound: the newest is meant, and there is none.
    """
    if not (text or "").strip():
        what = "--from is missing" if text is None else "--from is empty"
        raise UsageError(what, hint=f"--from snapshot restores the newest snapshot of {target}")
    assert text is not None
    if text in _NEWEST:
        from azguard.blobs import restores

        return Target(target.account, restores.find_newest(target, text, env.deadline))
    if text[0].isdigit() and "/" not in text:
        from azguard.blobs import restores

        return Target(target.account, restores.find_by_id(target, text, env.deadline))
    named = text.removeprefix("?")
    is_id = named.startswith(_WHICH)
    found = env.location(f"{target.address}?{named}" if is_id else named, Kind.BLOB) if is_id or "/" in named else None
    if found is None or (found.address.snapshot is None and found.address.version is None):
        raise UsageError(
            f"--from {named!r} names neither a snapshot nor a version",
            hint="--from snapshot is the newest; azguard blob list CONTAINER --include snapshots,versions shows all",
        )
    is_elsewhere = found.endpoint is not None and same_host(found.endpoint) != same_host(target.endpoint)
    if found.address.parts != target.address.parts or is_elsewhere or found.sas is not None:
        raise UsageError(
            f"--from is not of {target}",
            hint="azguard blob copy CONTAINER/NAME --source … copies another blob",
        )
    return Target(target.account, found.address)


def refuse_snapshot_first(blob: str, *, given: bool) -> None:
    """Refuse to keep a snapshot of what is deleted.

    Raises:
        UsageError: that was asked for.
    """
    if given:
        raise UsageError(
            "--snapshot-first is not for a delete: the service deletes a blob only together with its snapshots",
            hint=f"keep a copy first: azguard blob copy CONTAINER/COPY --source {shlex.quote(blob)}",
        )
