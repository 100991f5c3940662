"""The words of the command line for conditions, ETags, lease ids and fences: see ``hint_table``."""

import re
from collections.abc import Callable, Mapping

from azguard.cli.words import Words
from azguard.conditions.operations import Condition

# A condition in a sentence of the core, where the command line has its option.
_CONDITION = re.compile(rf"(?<![\w-])({'|'.join(sorted(Condition, key=len, reverse=True))})(?![\w-])")
_UNSET = "an unset shell variable looks like this"


def _because(template: str) -> Callable[[Mapping[str, object]], str]:
    """Return the words of a refusal, whose reason ``{why}`` names conditions: as options here."""

    def words(facts: Mapping[str, object]) -> str:
        return template.format_map({**facts, "why": _CONDITION.sub(r"--\g<0>", str(facts["why"]))})

    return words


def _how_to_see(facts: Mapping[str, object]) -> str:
    """Return what to type to read a version of a resource, or to name one."""
    kind, target = facts["noun"], facts["target"]
    if part := facts.get("part"):
        return f"read it first: azguard {kind} {part} get {target}; or name the version you mean: --etag ETAG"
    match kind:
        case "blob" | "file":
            return f"read it first: azguard {kind} get {target} -f FILE; or name the version you mean: --etag ETAG"
        case "entity":
            version = '"etag": "ETAG"' if "line" in facts else "--etag ETAG"
            return f"read it first: azguard entity get {target}; or name the version you mean: {version}"
        case "table":
            return f"read it first: azguard table acl get {target}"
        case _:
            return f"look at it first: azguard {kind} show {target}; then name what you saw: --etag ETAG"


def _how_to_leave_out(facts: Mapping[str, object]) -> str:
    # A command about a lease, without an id, takes the one that this scope holds.
    without = "" if facts["option"] == "--lease-id" else " to be guarded by what you last read"
    return f"{_UNSET}; leave the option out{without}"


def _how_to_go_on(facts: Mapping[str, object]) -> str:
    return f"{_how_to_see(facts)}; or say {_name_overwriting(facts)}"


def _how_to_overwrite(facts: Mapping[str, object]) -> str:
    return f"to do it without a guard: {_name_overwriting(facts)}"


def _name_overwriting(facts: Mapping[str, object]) -> str:
    return '"last_writer_wins": true' if "line" in facts else "--last-writer-wins"


def _contradict_overwriting(facts: Mapping[str, object]) -> str:
    return f"{_name(facts, 'last_writer_wins')} and {facts['option']} contradict each other"


def _clash_with_etag(facts: Mapping[str, object]) -> str:
    return f"{_name(facts, 'etag')} and {facts['option']} do not go together"


def _name(facts: Mapping[str, object], condition: str) -> str:
    """Return a condition as it is typed: a line of JSON has keys and no options."""
    return f'"{condition}"' if "line" in facts else f"--{condition.replace('_', '-')}"


def _how_to_go_on_leased(facts: Mapping[str, object]) -> str:
    return f"{_how_to_go_on(facts)}, so that only the lease guards it"


def _how_to_forget(facts: Mapping[str, object]) -> str:
    return f"azguard cache forget {facts['address']}; then {_how_to_see(facts)}"


def _how_to_write_guid(facts: Mapping[str, object]) -> str:
    return "uuidgen makes one" if facts["option"] != "--lease-id" else "write it as it was printed when acquired"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "allow_race_without_effect": "leave it out",
    "cannot_be_guarded": _how_to_overwrite,
    "condition_empty": _how_to_leave_out,
    "condition_not_enforced": "leave it out",
    "conditions_rejected_together": "leave one of them out",
    "entity_etag_malformed": (
        """an entity's ETag looks like W/"datetime'2026-11-21T10%3A00%3A00.0000000Z'", quotes included"""
    ),
    "policies_etag_malformed": "copy it, with its quotes, as azguard table acl get prints it",
    "etag_malformed": 'an ETag looks like 0x8DC1234567890AB or "0x8DC1234567890AB"',
    "etag_needs_race": "add --allow-race to accept that",
    "read_version_needs_race": "add --allow-race to accept that, or --last-writer-wins to write whatever is there",
    "etag_not_kept": "leave it out",
    "etag_not_kept_on_change": ("nothing can guard this by a version; to do it without a guard: --last-writer-wins"),
    "etag_on_conditional_read": "on a read, use --if-match",
    "etag_on_read": "leave it out",
    "etag_weak": "copy it from azguard … show",
    "etag_with_condition": "each of the two is a guard of its own; leave one of them out",
    "fence_empty": f"{_UNSET}; azguard lock run sets AZGUARD_FENCE",
    "fence_malformed": (
        "azguard lock run sets AZGUARD_FENCE; under several locks it has a line for each: give one of them"
    ),
    "fence_not_enforced": "leave it out",
    "fence_on_snapshot": "leave it out",
    "fence_overtaken": "the lock has had another holder since: stop, acquire it again, and read before you write",
    "fence_tag_malformed": "remove that tag, or write it with {digits} digits",
    "fence_with_condition": "leave one of them out; --lease-id may go along with --fence",
    "fence_with_last_writer_wins": "leave one of them out",
    "deleted_here": "if it is to stay deleted, there is nothing to do",
    "if_match_not_enforced": "use --etag: azguard compares the version itself, where it can",
    "last_of_source": "name the ETag itself",
    "last_writer_wins_with_condition": "leave one of them out",
    "last_writer_wins_without_effect": "leave it out",
    "lease_id_empty": f"{_UNSET}; leave the option out",
    "lease_id_malformed": _how_to_write_guid,
    "lease_not_held_here": (
        "name the id itself: --lease-id ID; azguard lease list --mine --all-scopes shows what is held"
    ),
    "never_read": _how_to_see,
    "never_read_before_write": _how_to_go_on,
    "never_read_but_leased": _how_to_go_on_leased,
    "read_in_part": "read it whole: azguard entity get {target}; or use merge; or name the version: --etag ETAG",
    "remembered_version_damaged": _how_to_forget,
    "tag_of_fence_changed": "leave that tag as it is; or leave --fence out",
    "tag_of_fence_given": "leave it out",
    "tags_condition_malformed": "index tags are of visible ASCII, in one line: \"stage\" = 'live'",
    "tags_leave_no_place_for_fence": "leave a tag out",
    "two_versions_of_file": (
        "name the version that its content was made of: --etag ETAG; "
        "or read it again, and merge: azguard blob get {target} -f THEIRS"
    ),
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "allow_race_without_effect": _because("--allow-race changes nothing here: {why}"),
    "condition_empty": "{option} is empty",
    "condition_not_enforced": _because("{option} is not enforced here: {why}"),
    "conditions_rejected_together": (
        "{option} and --{other} do not go together here: the service rejects the pair, or evaluates only one of them"
    ),
    "entity_etag_malformed": "{option}: {message}",
    "etag_malformed": "{option}: {message}",
    "etag_needs_race": (
        "--etag cannot be kept atomically here: another writer may come between the comparison and the write"
    ),
    "etag_not_kept": _because("--etag cannot be kept here: {why}"),
    "etag_not_kept_on_change": _because("--etag cannot be kept here: {why}"),
    "etag_on_conditional_read": "--etag guards writes, and {operation} writes nothing",
    "etag_on_read": "--etag guards writes, and {operation} writes nothing",
    "etag_weak": "{option}: {message}",
    "etag_with_condition": _clash_with_etag,
    "fence_empty": "--fence is empty",
    "fence_malformed": "--fence: {message}",
    "fence_not_enforced": _because("--fence is not enforced here: {why}"),
    "fence_on_snapshot": "--fence is not for {target}: a snapshot or version keeps the fence it was made with",
    "fence_with_condition": (
        "--fence and {option} do not go together: beside another condition the fence could be ignored"
    ),
    "fence_with_last_writer_wins": "--fence and --last-writer-wins contradict each other",
    "if_match_not_enforced": _because("{option} is not enforced here: {why}"),
    "last_of_source": "{option}: {message}",
    "last_writer_wins_with_condition": _contradict_overwriting,
    "last_writer_wins_without_effect": _because("--last-writer-wins changes nothing here: {why}"),
    "lease_id_empty": "{option} is empty",
    "lease_id_malformed": "{option}: {message}",
    "lease_not_held_here": "--lease-id @held: this scope holds no such lease",
    "number_malformed": "{option}: {message}",
    "policies_etag_malformed": "{option}: {message}",
    "size_malformed": "{option}: {message}",
    "tags_condition_malformed": "{option}: {message}",
    "tag_of_fence_given": "--fence and --tags fence=… do not go together: the tag is the fence's",
    "tags_leave_no_place_for_fence": (
        "--fence and {tags} --tags do not go together: the service takes {most}, and the fence is one"
    ),
    "wildcard_without_effect": ("{option} '*' means nothing here: only a write that creates can require absence"),
}
