"""The words for leases and locks: see ``hints``."""

from collections.abc import Mapping

from azguard.accounts.account import Target
from azguard.cli.parsing import command_line
from azguard.cli.words.templates import Words
from azguard.times import span

_AFTER_DOUBT = {
    "acquire": "release it in case it was granted: azguard lease release {address}",
    "release": "release it again; a finite lease ends by itself",
}


def _after_doubt(facts: Mapping[str, object]) -> str:
    look = "look before you try again: azguard lease show {address}"
    return _AFTER_DOUBT.get(str(facts["action"]), look).format_map(facts)


def _take_lock(facts: Mapping[str, object]) -> str:
    if facts["noun"] == "file":
        return "a file is held by one command: azguard lock run {address} -- COMMAND".format_map(facts)
    takes = "azguard lock hold {address} takes it; later steps need AZGUARD_LOCK, or the same AZGUARD_SCOPE"
    return takes.format_map(facts)


def _use_own_lock(facts: Mapping[str, object]) -> str:
    release = "release it: azguard lock release {address}".format_map(facts)
    if facts["file"]:
        return "use it: set -a; . {file}; then type this again\n      or ".format_map(facts) + release
    return f"{release}\n      or use it: hold it with --env-file FILE, then: set -a; . FILE"


def _how_to_write_guid(facts: Mapping[str, object]) -> str:
    return "uuidgen makes one" if facts["option"] != "--lease-id" else "write it as it was printed when acquired"


def tell_given_up(target: Target, seconds: int | None) -> str:
    """Return the warning about a lease that was given up although a request for it may still come."""
    how_long = "for ever" if seconds is None else f"for up to {span(seconds)}"
    return (
        f"{target} may yet be leased {how_long} although nothing holds it: a request for the lease got no answer, "
        f"and may come late. azguard lease list --mine shows it. The next lock run, lock hold or lease acquire of "
        f"it in this scope releases it"
    )


def tell_left(target: Target) -> str:
    """Return the warning about a lease without a term that could not be given back."""
    release = f"azguard lease release {command_line.quote(str(target.address))}"
    return (
        f"{target} may still be leased by this command, and such a lease does not end by itself: the next write "
        f"of it by azguard on this machine releases it, or now: {release}"
    )


#: What to type next.
HINTS: Mapping[str, Words] = {
    "lease_id_empty": "an unset shell variable looks like this; leave the option out",
    "lease_id_malformed": _how_to_write_guid,
    "lease_not_held_here": (
        "name the id itself: --lease-id ID; azguard lease list --mine --all-scopes shows what is held"
    ),
    # Leases.
    "infinite_lease_required": "acquire it with --infinite: what it protects may take longer than any term",
    "lease_breaking": "release the lease, or finish under the id that it has",
    "lease_broken": "stop the work that it protects and release it; then acquire a new one",
    "lease_broken_already": "see its state: azguard lease show {address}",
    "lease_id_missing": "name the lease with --lease-id, or wait until its holder releases it",
    "lease_not_held": "it was released or lost, or the id is wrong: azguard lease show {address}",
    "lease_over": "it expired or was broken: read again before you write; if you gave --lease-id, leave it out",
    "lease_refuses": "see its state: azguard lease show {address}",
    "leased_by_another": "wait until it is free: azguard lease wait {address}",
    "leased_under_another_id": "check the id, or see who holds it: azguard lease show {address}",
    "no_lease": "take one: azguard lease acquire {address}",
    "lease_of_another_job": "to use it all the same, name it: --lease-id ID; azguard lease list --mine --all-scopes",
    "lease_is_own": "this scope holds it, or did: azguard lease renew {address}, or release",
    "lease_not_free_in_time": "wait longer, or see who holds it: azguard lease show {address}",
    "lease_of_vm_disk": "nothing was broken; delete the machine, or detach the disk, and the lease ends by itself",
    "lease_outcome_unknown": _after_doubt,
    "lease_reason_empty": "an unset shell variable looks like this; leave the option out",
    "lease_reason_malformed": "write for example --reason 'migration of the schema'",
    "break_condition_without_version": "leave the condition out, or name the version: --if-match ETAG",
    "break_at_once": "leave out --lease-break-period",
    "break_not_confirmed": (
        "confirm with --yes, or with what you saw: --if-owner NAME, --if-older-than 2h, --if-match ETAG"
    ),
    "kind_without_lease": "name a blob:CONTAINER/NAME, container:NAME, share:NAME or file:SHARE/PATH",
    "lease_lasts_until_released": "leave it out: it lasts until it is released or broken",
    "lease_not_broken": "nothing was broken; look again: azguard lease show {address}",
    "lease_without_term": "--infinite, without --lease-duration: it lasts until it is released or broken",
    "no_lease_to_break": "nothing has to be broken; to take it: azguard lease acquire {address}",
    "lock_blob_missing": "leave out --no-create to create it",
    "hold_lost_before": "see what ran since; to take the lock again: AZGUARD_LOCK= azguard lock hold …",
    "hold_not_recorded": "the lock was released; set AZGUARD_CACHE_DIR",
    "run_not_recorded": "the command was not run; set AZGUARD_CACHE_DIR",
    "held_by_another_job": (
        "give each job a scope of its own (azguard help scopes); to end that hold: azguard lock break NAME"
    ),
    "hold_none": "azguard lock hold sets AZGUARD_LOCK for later steps; or name the lock, with the --scope that took it",
    "hold_of_another_scope": "another scope holds it: --scope {scope}",
    "hold_unknown": _take_lock,
    "lock_held_by_this_scope": _use_own_lock,
    "lock_read_by_this_scope": "release it: azguard lock release {address}",
    "lock_busy": "wait longer with --wait 10m, or look: azguard lock show {address}",
    "history_unreadable": "look at it: azguard blob get {target}; another program may have written it",
    "lock_lost": (
        "its last seconds may have overlapped with the next holder's: compare the fences of what was written "
        "before you run it again"
    ),
    "lock_lost_before_release": "what was done under it may have overlapped with another holder's work",
    "lock_lost_before_start": "the command was not run",
    "lock_lost_before_write": "nothing was written: run it again",
    "lock_lost_unfenced": (
        "its last seconds may have overlapped with the next holder's: look at what it wrote before you run it again"
    ),
    "lock_not_acquired": "nothing was run under it; try again",
    "lock_not_held": "stop here: what follows would run without the lock",
    "env_file_not_written": "name a file that can be written",
    "sticky_lock_held": "release it first: azguard lock release",
    "sticky_until_is_over": "no lock was taken; name a later time, such as --until 4h",
    "lock_shared_around": "leave out --shared around it, or give --shared here too",
    "lock_shared_without_queue": "use a SAS of the container with the permissions rwcdl; or leave out --shared",
    "lock_slots_differ": "use --slots {slots}, as its other holders do, or another name",
    "lock_superseded": (
        "a newer run has had the lock, so there is nothing to do; to run all the same, leave out --sequence"
    ),
    "lock_term_too_short": "a longer term leaves more time: --lease-duration 60s",
    "outer_lock_lost": "the command was not run; if the lock was released on purpose: unset AZGUARD_LOCK",
    "run_not_askable": "nothing was broken; look at the run yourself, then: azguard lock break {address} --yes",
    "run_not_finished": "nothing was broken; cancel the run, or wait for its end",
    "run_unknown": "nothing was broken; a token may be missing: GITHUB_TOKEN, SYSTEM_ACCESSTOKEN",
    "some_containers_not_listed": "the other containers are listed; ask for the right to list all, or use --prefix",
    "table_lock_unavailable": "nothing was written: try again",
    "terraform_state_busy": "wait longer with --wait 10m, or look: azguard lease show {address}",
    "outer_lock_lost_before_write": "nothing was written",
    "record_needs_blob": "leave it out, or lease a blob that stands for it",
    "record_on_snapshot": "leave it out",
}


#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "lease_id_empty": "{option} is empty",
    "lease_id_malformed": "{option}: {message}",
    "lease_not_held_here": "--lease-id @held: this scope holds no such lease",
    # Leases.
    "lease_reason_empty": "{option} is empty",
    "lease_reason_malformed": "{option} takes one line of at most {longest} visible characters",
    "break_condition_without_version": (
        "--if-owner and --if-older-than judge one version of the blob, which the other condition does not name"
    ),
    "record_on_snapshot": "--reason is not for {target}: a snapshot never changes",
    "record_needs_blob": "--reason is not for a {kind}: its metadata have no guard that other writers must respect",
}
