"""The words of the command line for leases and locks: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

_AFTER_DOUBT = {
    "acquire": "release it in case it was granted: azguard lease release {address}",
    "release": "release it again; a finite lease ends by itself",
}


def _after_doubt(facts: Mapping[str, object]) -> str:
    """Return what to type where it is not known whether an operation on a lease was done."""
    look = "look before you try again: azguard lease show {address}"
    return _AFTER_DOUBT.get(str(facts["action"]), look).format_map(facts)


#: What to type next.
HINTS: Mapping[str, Words] = {
    "lease-is-own": "this scope holds it, or did: azguard lease renew {address}, or release",
    "lease-not-free-in-time": "give it longer, or see who holds it: azguard lease show {address}",
    "lease-outcome-unknown": _after_doubt,
    "lease-reason-empty": "an unset shell variable looks like this; leave the option out",
    "lease-reason-malformed": "--reason 'migration of the schema'",
    "break-condition-without-version": "leave the condition out, or name the version: --if-match ETAG",
    "break-not-confirmed": (
        "--yes; or only if it is what you think: --if-owner NAME, --if-older-than 2h, --if-match ETAG"
    ),
    "kind-without-lease": "blob:CONTAINER/NAME or container:NAME",
    "lease-id-missing": "--lease-id ID, or @held",
    "lease-lasts-until-released": "leave it out: it lasts until it is released or broken",
    "lease-not-broken": "nothing was broken; look again: azguard lease show {address}",
    "lease-without-term": "say --infinite",
    "lock-blob-missing": "leave out --no-create, and it is made",
    "lock-busy": "wait longer with --wait 10m, or look: azguard lock show {address}",
    "lock-lost": "what it did last may have run beside another holder: check with the fence before you run it again",
    "lock-lost-before-start": "the command was not run",
    "lock-lost-before-write": "nothing was written: run it again",
    "lock-not-acquired": "the command was not run; try again",
    "lock-slots-differ": "all its holders must agree: --slots {slots}, or another name",
    "lock-term-too-short": "a longer term leaves more time: --lease-duration 60s",
    "outer-lock-lost": "the command was not run",
    "table-lock-unavailable": "nothing was written: try again",
    "outer-lock-lost-before-write": "nothing was written",
    "record-needs-blob": "leave it out, or lease a blob that stands for it",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "lease-reason-empty": "{option} is empty",
    "lease-reason-malformed": "{option} takes one line of at most {longest} characters",
    "break-condition-without-version": (
        "--if-owner and --if-older-than are of one version, and another condition does not name it"
    ),
    "record-needs-blob": "--reason is not for a {kind}: its metadata have no guard that other writers must respect",
}
