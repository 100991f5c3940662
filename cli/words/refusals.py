"""What this scope and the account know about a refusal, added to it before it is told.

It costs requests only on the way to an error, and little time: an explanation is a courtesy.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from itertools import islice

from azguard.accounts.account import Target
from azguard.address import Kind, parse
from azguard.blobs.listing import list_blobs
from azguard.cache.records import Key
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.parsing import command_line
from azguard.cli.words import hints
from azguard.errors import AzguardError, E, GaveUp, Locked, NotFound
from azguard.leases import state as lease_state
from azguard.locks import environment
from azguard.requests.deadline import Deadline

# How long a look may take that only adds a name to an error.
_LOOK_SECONDS = 2.0
# One page of a listing; among more names a near one is found less likely than it is worth.
_MOST_NAMES = 1000
_NAMES_OFFERED = 3
# The states in which a lease can be acquired.
_FREE = ("available", "expired", "broken")
_ACQUIRING = ("lease acquire", "lock run", "lock hold")
# What takes a lease that stays when the command has ended. Any other lease is released by the command that holds it.
_LEAVES_LEASES = ("lease acquire", "lease renew", "lease change", "lock hold")


def explain(env: Environment, error: AzguardError) -> AzguardError:
    """Return an error that also names this scope's own lease if that is in the way, or names near a missing one."""
    target = env.located.get(error.address or "")
    if target is None:
        return error
    if isinstance(error, Locked) and target.kind is Kind.FILE:
        error = _name_holders(env, error, target)
    # Its words are chosen first: what is known here is added to them, or takes their place.
    told = hints.in_words(error, env.argv).but(reason=None)
    if isinstance(told, Locked):
        return _name_own_lease(env, told, target)
    # What a lease keeps from happening is said for a lease that was waited for, and not for a blob.
    if isinstance(told, GaveUp) and error.reason != "blob_wait_over":
        named = _name_own_lease_waited_for(env, told, target)
        return _look_for_holder(env, named, target) if named is told and error.reason == "update_leased" else named
    if isinstance(told, NotFound) and told.http_status == HTTPStatus.NOT_FOUND:
        return _offer_near_names(env, told, target)
    return error


def _name_holders(env: Environment, error: Locked, target: Target) -> Locked:
    from azguard.files import handles

    return handles.add_holders(error, target, env.deadline)


def _name_own_lease(env: Environment, error: Locked, target: Target) -> Locked:
    code = error.service_code or ""
    if code not in lease_state.IN_THE_WAY:
        return error
    held = environment.find_lease_id(target, env.environ) or _find_own_lease(env, target)
    option = _find_lease_option(env, target)
    asked = command_line.find_value(env.argv, option)
    # Under @held, a mismatch says that it is not held any more.
    if held is None or asked in ("@held", held):
        return _name_other_holder(env, error, target, asked)
    # A write of a share or a file is refused by this code, too, since it takes a lease itself.
    if code == "LeaseAlreadyPresent" and env.command in _ACQUIRING:
        if not _stays(env, target):
            return error
        address = command_line.quote(hints.name_as_typed(error, env.argv))
        release = f"release it first: azguard lease release {address}"
        renew = f"renew it: azguard lease renew {address}\n      or release it first"
        return error.but(
            message=f"{target} is leased already, by this scope itself",
            hint=release if target.kind is Kind.FILE else renew,
        )
    given = "no lease id was given" if asked is None else "another lease id was given"
    return error.but(
        message=f"{target} is leased by this scope itself, and {given}",
        hint=hints.under_own_lease(env.argv, option),
    )


def _name_other_holder(env: Environment, error: Locked, target: Target, asked: str | None) -> Locked:
    """Return the refusal with who holds the lease, by one look unless that is said already, and the ways to go on."""
    if env.command in _ACQUIRING:
        return error
    told = error if any(line.startswith("held by") for line in error.detail) else _look_for_holder(env, error, target)
    if told.lease_state in _FREE:
        return told.but(hint="it is free by now: run the command again")
    address = command_line.quote(hints.name_as_typed(error, env.argv))
    wait = f"{'' if asked is None else 'check the id, or '}wait until it is free: azguard lease wait {address}"
    return told.but(hint=f"{wait}\n      or, if its holder is gone, break it: azguard lease break {address}")


def _look_for_holder(env: Environment, error: E, target: Target) -> E:
    return lease_state.add_holder(error, target, env.deadline.restart(seconds=_LOOK_SECONDS))


def _find_lease_option(env: Environment, target: Target) -> str:
    """Return the option that takes the lease of a target: the file that is renamed, named first, has one of its own."""
    is_renamed = env.command == "file rename" and target is next(iter(env.located.values()))
    return "--source-lease-id" if is_renamed else "--lease-id"


def _name_own_lease_waited_for(env: Environment, error: GaveUp, target: Target) -> GaveUp:
    outer = environment.find_lease_id(target, env.environ)
    updates = env.command == "safe-update"
    if updates and (outer or command_line.find_value(env.argv, "--lease-id")):
        return error  # It worked inside that lease; other writers were in its way.
    if not _stays(env, target):
        return error
    known = env.cache.find_held(Key.of(target))
    noun = "lock" if known is not None and known.action == "lock hold" else "lease"
    address = command_line.quote(hints.name_as_typed(error, env.argv))
    release = f"release it first: azguard {noun} release {address}"
    return error.but(
        message=f"{target} is leased by this scope itself, and would not become free by waiting; nothing was done",
        hint=hints.under_own_lease(env.argv) if updates else release,
    )


def _stays(env: Environment, target: Target) -> bool:
    """Return whether to wait for this scope's lease on a target is in vain: no other command is going to release it."""
    if environment.find_lease_id(target, env.environ):
        return True
    held = env.cache.find_held(Key.of(target))
    return held is not None and held.action in _LEAVES_LEASES and _find_own_lease(env, target) is not None


def _find_own_lease(env: Environment, target: Target) -> str | None:
    """Return the lease that this scope took and did not release, if the service says that it is held."""
    held = env.cache.find_held(Key.of(target))
    if held is None or not held.confirmed:
        return None
    try:
        lease_state.look(target, env.deadline.restart(seconds=_LOOK_SECONDS), held.lease_id)
    except AzguardError:
        return None
    return held.lease_id


def _offer_near_names(env: Environment, error: NotFound, target: Target) -> NotFound:
    near = [] if env.out.quiet else _near_names(env, error.service_code or "", target)
    if not near:
        return error
    deletes = env.command.endswith("delete")  # what is to be deleted is not made first
    way_out = "" if error.hint is None or deletes else f"\n      or {_as_clause(error.hint)}"
    return error.but(hint=f"did you mean {' or '.join(map(command_line.quote, near))}?{way_out}")


def _near_names(env: Environment, code: str, target: Target) -> list[str]:
    address = target.address
    if code in ("ContainerNotFound", "TableNotFound"):
        kind = "container" if code == "ContainerNotFound" else "table"
        near = _near(address.container, _list_remembered(env, target))
        return near or _near(address.container, _list_names(env, target, partial(_list_below_account, kind)))
    if target.kind is not Kind.BLOB or env.reads.find_last(target) is not None:
        return []  # What was read here was there: its name is right.
    folder, _, last = address.short.rpartition("/")
    return [f"{folder}/{each}" for each in _near(last, _list_names(env, target, _blobs))]


def _as_clause(hint: str) -> str:
    command = hint.rpartition("to create it: ")[2]
    return f"create it: {command}" if command.startswith("azguard ") else hint


def _list_remembered(env: Environment, target: Target) -> Iterable[str]:
    """Return the containers, or tables, of which this machine has read something, without asking the service."""
    addresses = (
        parse(each.address).address
        for each in islice(env.cache.list_entries(), _MOST_NAMES)
        if each.account == target.endpoint
    )
    return {each.container for each in addresses if each.kind.service == target.kind.service}


def _list_names(env: Environment, target: Target, listing: Callable[[Target, Deadline], Iterable[str]]) -> list[str]:
    try:
        return list(islice(listing(target, env.deadline.restart(seconds=_LOOK_SECONDS)), _MOST_NAMES))
    # Not allowed to list, say: then no name is offered, and what is missing is told all the same.
    except Exception:  # noqa: BLE001  # names to offer are a courtesy
        return []


def _list_below_account(kind: str, target: Target, deadline: Deadline) -> Iterable[str]:
    return completers.list_names(kind, target.account, deadline, None, _MOST_NAMES)


def _blobs(target: Target, deadline: Deadline) -> Iterable[str]:
    """Return the names, without their folder, of the blobs that are in the same folder."""
    container = Target(target.account, parse(f"container:{target.address.container}").address)
    folder = "".join(target.address.name.rpartition("/")[:2])
    found = list_blobs(container, deadline, prefix=folder or None, limit=_MOST_NAMES)
    return (each.name.removeprefix(folder) for each in found)


def _near(missing: str, names: Iterable[str]) -> list[str]:
    """Return the names that a typing error could have made into the missing one, the nearest first.

    One that differs in its digits alone is a neighbour and not a misspelling: job-17 and job-18.
    """
    import difflib

    others = {name for name in names if re.sub(r"[0-9]", "", name) != re.sub(r"[0-9]", "", missing)}
    return difflib.get_close_matches(missing, sorted(others), _NAMES_OFFERED, 0.75)
