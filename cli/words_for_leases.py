"""The words of the command line for leases and locks: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: What to type next.
HINTS: Mapping[str, Words] = {
    "lease-is-own": "this scope holds it, or did: azguard lease renew {address}, or release",
    "lease-not-free-in-time": "give it longer, or see who holds it: azguard lease show {address}",
    "lease-reason-empty": "an unset shell variable looks like this; leave the option out",
    "lease-reason-malformed": "--reason 'migration of the schema'",
    "record-needs-blob": "leave it out, or lease a blob that stands for it",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "lease-reason-empty": "{option} is empty",
    "lease-reason-malformed": "{option} takes one line of at most {longest} characters",
    "record-needs-blob": "--reason is not for a {kind}: its metadata have no guard that other writers must respect",
}
