"""From the options of ``azguard lease`` to the core, and what this scope remembers of the leases it holds."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from azguard.accounts.target import Target
from azguard.cache.records import HeldLease, Key
from azguard.cli import lease_reasons, values
from azguard.cli.context import Environment
from azguard.conditions import lease_ids
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.leases import actions, facts, listing, waiting
from azguard.leases.actions import DEFAULT_SECONDS, LONGEST, SHORTEST, LeaseDone
from azguard.leases.kinds import Action, kind_of, operation_of
from azguard.leases.owners import Owner
from azguard.leases.state import LeaseState
from azguard.requests.deadline import Deadline

# How long a wait lasts unless --timeout says otherwise.
WAIT_SECONDS = 60.0
# Another holder is in the way, so that waiting is the answer.
_WAIT_FOR = ("LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired")


def locate(env: Environment, address: str) -> Target:
    """Return the resource of an address, if it is of a kind that can be leased.

    Raises:
        UsageError: it cannot.
    """
    target = env.locate(address)
    kind_of(target)
    if target.address.snapshot or target.address.version:
        raise UsageError(
            f"{target} is a snapshot or version, which cannot be leased", hint="leave ?snapshot=… or ?versionid=… out"
        )
    return target


def term(text: str | None, *, infinite: bool) -> int | None:
    """Return the seconds of --lease-duration, or None for --infinite."""
    if infinite and text is not None:
        raise UsageError("--lease-duration and --infinite contradict each other", hint="leave one of them out")
    if infinite:
        return None
    if text is not None and text.strip() == "-1":
        raise UsageError("--lease-duration -1: a lease for ever is asked for by name", hint="--infinite")
    return DEFAULT_SECONDS if text is None else values.seconds(text, "--lease-duration", SHORTEST, LONGEST)


def states(text: str | None) -> frozenset[str]:
    """Return the states of --state; those in which it is held by default."""
    if text is None:
        return listing.LOCKED
    chosen = [each.strip() for each in text.split(",")]
    return frozenset(values.choice(each, "--state", listing.STATES) or "" for each in chosen)


def new_id(proposed: str | None) -> str:
    """Return the id to ask for: the one proposed, or a fresh one."""
    return (
        str(uuid.uuid4())
        if proposed is None
        else lease_ids.parse_guid(proposed, "--proposed-lease-id", "uuidgen makes one")
    )


def conditions(env: Environment, target: Target, action: Action | None, lease_id: str | None = None) -> Conditions:
    """Return what an operation on a lease of this kind of resource sends."""
    return env.conditions(target, operation=operation_of(target, action), lease_id=lease_id)


def acquire(
    env: Environment,
    target: Target,
    lease_id: str,
    seconds: int | None,
    patience: Deadline | None,
    record: Owner | None = None,
) -> LeaseDone:
    """Acquire a lease; with ``patience``, wait that long for another's to end. ``record`` is left on the blob.

    Raises:
        Locked: another holds it, and there is no patience.
        GaveUp: another still holds it at the end.
    """
    asked, chance = conditions(env, target, Action.ACQUIRE), random.Random()
    while True:
        try:
            return _acquired(env, target, lease_id, seconds, asked, record)
        except Locked as error:
            if patience is None or error.service_code not in _WAIT_FOR:
                raise
            if patience.passed:
                raise waiting.given_up(target, patience, error.lease_state, error.detail) from error
        waiting.until_free(target, patience, lambda state: _say_waiting(env, state), chance)


def _acquired(
    env: Environment,
    target: Target,
    lease_id: str,
    seconds: int | None,
    asked: Conditions,
    record: Owner | None,
) -> LeaseDone:
    """Acquire a lease whose id is recorded before it is asked for, so that a crash in between can be made good."""
    key, cache = Key.of(target), env.cache
    before = cache.held(key)
    ours = before is not None and before.lease_id == lease_id
    cache.hold(key, lease_id, duration=seconds, action=_action(env, recorded=record is not None))
    try:
        done = actions.acquire(target, lease_id, seconds, asked, env.deadline.fresh())
        cache.confirm(key, lease_id)
    except OutcomeUnknown:
        raise
    except KeyboardInterrupt:
        if not ours and actions.give_back(target, lease_id, env.deadline):
            cache.drop(key, lease_id)
        raise
    except AzguardError as error:
        if not ours:
            cache.drop(key, lease_id)
        if before is not None and error.service_code == "LeaseAlreadyPresent":
            error.hint = f"this scope holds it, or did: azguard lease renew {target.address}, or release"
        raise
    if done.attempts > 1:
        env.out.warn("an answer was lost, and its request may come late: after a release, look whether it is leased")
    return done if record is None else lease_reasons.leave(env, target, record, done, ours=ours)


def _action(env: Environment, *, recorded: bool) -> str:
    """Return how a lease is remembered: by the command, and whether it has left a record."""
    return env.command + (lease_reasons.RECORDED if recorded else "")


def renew(env: Environment, target: Target, lease_id: str) -> LeaseDone:
    """Renew a lease, and remember since when its term counts."""
    asked = conditions(env, target, Action.RENEW, lease_id)
    known = _known(env, target, asked)
    before = datetime.now(UTC)
    with _losing(env, target, asked):
        done = actions.renew(target, asked, env.deadline)
    env.cache.confirm(Key.of(target), str(asked.lease_id), since=before)
    return done if known is None else replace(done, duration=known.duration or "infinite")


def change(env: Environment, target: Target, lease_id: str, proposed: str) -> LeaseDone:
    """Change a lease's id; both are remembered until it is known which one holds."""
    asked = conditions(env, target, Action.CHANGE, lease_id)
    key, known = Key.of(target), _known(env, target, asked)
    # The term runs on; where it is not known, the record stays until it is released.
    duration, since = (None, None) if known is None else (known.duration, datetime.fromisoformat(known.time))
    recorded = known is not None and known.action.endswith(lease_reasons.RECORDED)
    env.cache.hold(key, proposed, duration=duration, action=_action(env, recorded=recorded))
    try:
        with _losing(env, target, asked):
            done = actions.change(target, proposed, asked, env.deadline)
    except OutcomeUnknown:
        raise
    except AzguardError:
        env.cache.drop(key, proposed)
        raise
    env.cache.confirm(key, proposed, since=since)
    env.cache.drop(key, str(asked.lease_id))
    return done if known is None else replace(done, duration=known.duration or "infinite")


def release(env: Environment, target: Target, lease_id: str) -> LeaseDone:
    """Release a lease and forget it; the record that we left with it goes first."""
    asked = conditions(env, target, Action.RELEASE, lease_id)
    lease_reasons.remove(env, target, _known(env, target, asked), asked)
    with _losing(env, target, asked):
        done = actions.release(target, asked, env.deadline)
    env.cache.drop(Key.of(target), str(asked.lease_id))
    return done


def wait_free(env: Environment, target: Target, patience: Deadline) -> LeaseState:
    """Wait until a lease is free, saying who holds it."""
    return waiting.until_free(target, patience, lambda state: _say_waiting(env, state), random.Random())


def _say_waiting(env: Environment, state: LeaseState) -> None:
    env.out.info(f"waiting: {state.address} is {facts.describe(state)}")


def _known(env: Environment, target: Target, asked: Conditions) -> HeldLease | None:
    """Return what this scope remembers of the lease that the conditions name."""
    found = env.cache.held(Key.of(target))
    return found if found is not None and found.lease_id == asked.lease_id else None


@contextmanager
def _losing(env: Environment, target: Target, asked: Conditions) -> Iterator[None]:
    """Forget a lease that turns out not to be held; one that is being broken is, until it ends."""
    try:
        yield
    except (Locked, NotFound) as error:
        if isinstance(error, NotFound) or (error.service_code or "").startswith("LeaseIdMismatch"):
            env.cache.drop(Key.of(target), str(asked.lease_id))
        raise
