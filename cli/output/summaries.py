"""One line for what a command did, as a terminal shows it; all fields are behind ``-v`` and ``-o table``."""

from collections.abc import Callable, Mapping
from typing import Any, TextIO
from urllib.parse import urlsplit

from azguard import address as addresses
from azguard.address import Kind
from azguard.cli.output import terminal
from azguard.errors import AzguardError
from azguard.times import say_count, span

_MARK = "✓ "
# Of the lines behind the first.
_INDENT = 2
_ARROW = "→"
_ASCII_ARROW = "->"
#: What every result of a write has, and nothing else.
_OF_A_WRITE = frozenset({"address", "guard", "attempts", "outcome"})
#: What the result of many updates has, and nothing else.
_OF_MANY = frozenset({"address", "matched", "updated", "failed", "unknown"})
#: What a command did, by its last words, where the result does not say whether it created.
_VERBS = {
    "put": "wrote",
    "safe-update": "updated",
    "create": "created",
    "insert": "inserted",
    "replace": "replaced",
    "merge": "merged",
    "upsert": "wrote",
    "delete": "deleted",
    "message put": "put",
    "message update": "changed",
    "message clear": "cleared",
    "acl set": "set the access policies of",
    "metadata set": "set the metadata of",
    "tags set": "set the tags of",
    "set-properties": "set the headers of",
    "properties set": "set the properties of",
    "dir properties set": "set the properties of",
    "quota": "set the quota of",
    "rename": "renamed it to",
    "tier": "set the tier of",
    "append seal": "sealed",
    "block commit": "committed the blocks of",
    "abort-copy": "stopped the copy to",
    "undelete": "brought back",
    "resize": "set the length of",
    "set-sequence-number": "set the sequence number of",
    "legal-hold set": "put a legal hold on",
    "legal-hold clear": "took the legal hold from",
    "immutability set": "set the policy of",
    "immutability clear": "took the policy from",
    "range put": "wrote a range of",
    "range clear": "cleared a range of",
}
#: What lock hold did.
_HOLDING = {"held": "took", "already_held": "this job holds already:", "prolonged": "prolonged the hold of"}
#: What was done to a lease.
_LEASE_VERBS = {
    "acquire": "acquired",
    "renew": "renewed",
    "change": "changed",
    "release": "released",
    "break": "broke",
}


def summarize(result: Mapping[str, Any], command: str, before: int | None = None) -> str | None:
    """Return the line that tells what a command did to which resource; None if one line cannot tell it.

    ``before`` is the size in bytes of the replaced content, if that is known.
    """
    if command in ("blob get", "file get"):
        return _MARK + _join(f"read {_name(result)} into {result.get('file')}", _size(result, None))
    if (describe := _OF_NO_VERSION.get(command)) is not None:
        return describe(result)
    if result.keys() >= _OF_MANY:
        return _describe_many(result)
    if not result.keys() >= _OF_A_WRITE:
        return None
    if (line := _describe_untouched(result, command)) is not None:
        return line
    if "lease_id" in result:
        return _describe_lease(result)
    if "source" in result:
        return _describe_copy(result, command)
    if "snapshot_address" in result:
        return _MARK + _join(f"kept {_name(result)} as {result['snapshot_address'].partition(':')[2]}", _tries(result))
    what = f"{_verb(result, command)} {_name(result)}"
    is_number = command.endswith("set-sequence-number")
    return _MARK + _join(
        what,
        f"now {result['sequence_number']}" if is_number else _size(result, before),
        _visibility(result),
        _created_keys(result),
        _tries(result),
        _merged(result),
        _kept(result),
    )


def _describe_untouched(result: Mapping[str, Any], command: str) -> str | None:
    """Return why nothing was written; None if something was."""
    if result["outcome"] == "exists":
        return f"{_name(result)} exists, and was left alone"
    if result["outcome"] == "unchanged":
        return f"{_name(result)} is unchanged"
    if result["outcome"] == "would refuse":
        return f"{_name(result)} is leased: the {command.rsplit(maxsplit=1)[-1]} would be refused"
    if result["outcome"].startswith("would "):
        return f"{result['outcome']} {_name(result)}"
    if result["outcome"] == "applied_before":
        when = f" at {result['applied_at']}" if result["applied_at"] else ""
        followed = ", and another write followed" if result["written_since"] else ""
        return f"{_name(result)} was left alone: this --op-id was applied before{when}{followed}"
    return None


def show(line: str, stream: TextIO, *, color: bool) -> str:
    """Return a line as a terminal shows it: its mark coloured, or left out where the encoding has none.

    What is longer than the terminal goes on in another line, which begins with a whole word: no id or time is cut.
    """
    line = "\n  ".join(terminal.wrap(terminal.printable(line), terminal.width(stream) - _INDENT))
    if terminal.is_ascii(stream):
        return line.removeprefix(_MARK).replace(f" {_ARROW} ", f" {_ASCII_ARROW} ")
    if not line.startswith(_MARK):
        return line
    rest = line.removeprefix(_MARK)
    return f"{terminal.paint(_MARK.strip(), 'green')} {rest}" if color else line


def _join(what: str, *details: str) -> str:
    said = ", ".join(each for each in details if each)
    return f"{what}: {said}" if said else what


def _name(result: Mapping[str, Any]) -> str:
    """Return the name of a resource; of what is no blob, its kind too."""
    try:
        found = addresses.parse(result["address"]).address
    except AzguardError:
        return str(result["address"])
    return found.short if found.kind is Kind.BLOB else f"{found.kind.noun} {found.short}"


def _verb(result: Mapping[str, Any], command: str) -> str:
    match result.get("created"):
        case True:
            return "created"
        case False:
            return "updated"
    fitting = [words for words in _VERBS if f" {command}".endswith(f" {words}")]
    return _VERBS[max(fitting, key=len)] if fitting else command


def _size(result: Mapping[str, Any], before: int | None) -> str:
    count = result.get("content_length")
    if count is None:
        return ""
    shown = say_count(count, "byte")
    return shown if before in (None, count) else f"{before:,} {_ARROW} {shown}"


def _visibility(result: Mapping[str, Any]) -> str:
    """Return when a message can be received, unless it could be from the start."""
    visible = result.get("time_next_visible")
    return "" if visible in (None, result.get("insertion_time")) else f"visible at {visible}"


def _tries(result: Mapping[str, Any]) -> str:
    if conflicts := result.get("conflicts"):
        return f"after {say_count(conflicts, 'conflict')}"
    return f"after {result['attempts']} attempts" if result["attempts"] > 1 else ""


def _created_keys(result: Mapping[str, Any]) -> str:
    return f"created {', '.join(keys)}" if (keys := result.get("created_keys")) else ""


def _merged(result: Mapping[str, Any]) -> str:
    """Return when another wrote what the change is merged with, where the service tells."""
    at = (result.get("merged_with") or {}).get("last_modified")
    return f"merged with what another wrote at {at}" if at else ""


def _kept(result: Mapping[str, Any]) -> str:
    kept = result.get("snapshot")
    return f"what was there is {kept.partition(':')[2]}" if kept else ""


def _describe_copy(result: Mapping[str, Any], command: str) -> str:
    source = str(result["source"])
    source = source if "://" in source else _name({"address": source})
    if result["copy_status"] == "pending":
        return _join(f"the copy of {source} to {_name(result)} is pending", f"its id is {result['copy_id']}")
    verb = "restored" if command == "blob restore" else "copied"
    where = "from" if verb == "restored" else "to"
    ends = (_name(result), source) if verb == "restored" else (source, _name(result))
    what = f"{verb} {ends[0]} {where} {ends[1]}"
    return _MARK + _join(what, _size(result, None), _tries(result))


def _describe_lease(result: Mapping[str, Any]) -> str:
    action = result["action"]
    if result["outcome"] == "already_released":
        return f"the lease of {_name(result)} was released already"
    if result["outcome"] == "gone":
        return f"the lease of {_name(result)} was held no more"
    what = f"{_MARK}{_LEASE_VERBS.get(action, action)} the lease of {_name(result)}"
    if action == "break":
        return what + _describe_broken(result)
    if action == "release":
        return what
    return f"{what}{_describe_term(result)}: {result['lease_id']}"


def _describe_term(result: Mapping[str, Any]) -> str:
    term = result.get("duration")
    if term is None:
        return ""
    return f" for {span(term)}" if isinstance(term, int) else " until it is released"


def _describe_broken(result: Mapping[str, Any]) -> str:
    broken = result.get("broken") or {}
    by = f", held by {broken['held_by']}" if broken.get("held_by") else ""
    age = f" for {span(broken['age'])}" if by and broken.get("age") is not None else ""
    return f"{by}{age}"


def _describe_many(result: Mapping[str, Any]) -> str:
    """Return how many of the entities that matched were updated, and how the others ended."""
    others = {name: result[name] for name in ("unchanged", "applied_before", "skipped", "failed", "unknown")}
    details = (f"{count:,} {name.replace('_', ' ')}" for name, count in others.items() if count)
    matched = result["matched"]
    nouns = "entity" if matched == 1 else "entities"
    what = f"updated {result['updated']:,} of {matched:,} {nouns} of {_name(result)}"
    line = _join(what, *details, _created_keys(result))
    return line if result["failed"] or result["unknown"] else _MARK + line


def _describe_ended(result: Mapping[str, Any]) -> str:
    would, forgot, deleted = ("would ", "forget", "delete") if result["dry_run"] else ("", "forgot", "deleted")
    stay = "stays" if result["in_use"] == 1 else "stay"
    parts = [f"{would}{forgot} {say_count(result['forgotten'], 'version')}"]
    parts += [f"{deleted} {say_count(result['deleted'], 'kept item')}"] if result["deleted"] else []
    parts += [f"{result['in_use']:,} in use {stay}"] if result["in_use"] else []
    line = ", ".join(parts)
    return line if would else _MARK + line


def _describe_hold(result: Mapping[str, Any]) -> str:
    ends = f"until {result['until']}" if result["until"] else "until it is released"
    begun = _HOLDING[result["outcome"]]
    return _MARK + _join(f"{begun} {_name(result)} {ends}", _describe_renewer(result), f"fence {result['fence']}")


def _describe_check(result: Mapping[str, Any]) -> str:
    left, renewer = result["seconds_left"], _describe_renewer(result)
    ends = "" if left is None else f"else it ends in {span(left)}"
    if not renewer and ends:
        ends = f"it ends in {span(left)} unless it is renewed"
    return _MARK + _join(f"this job holds {_name(result)}", renewer, ends)


def _describe_renewer(result: Mapping[str, Any]) -> str:
    return f"pid {result['pid']} renews it" if result["pid"] else ""


def _describe_lock_release(result: Mapping[str, Any]) -> str:
    if result["outcome"] == "already_released":
        return f"{_name(result)} was released already"
    return f"{_MARK}released {_name(result)}"


def _describe_start(result: Mapping[str, Any]) -> str:
    begun = "the emulator runs already" if result["already_running"] else "started the emulator"
    names = {"blob": "blobs", "queue": "queues", "table": "tables", "file": "files", "smb": "SMB"}
    endpoints = {name: result[f"{kind}_endpoint"] for kind, name in names.items()}
    places = (f"{name} at {urlsplit(endpoint).netloc}" for name, endpoint in endpoints.items() if endpoint)
    return _MARK + _join(begun, *places)


def _describe_move(result: Mapping[str, Any]) -> str:
    """Return how many messages were moved, and how the others ended."""
    details = {"perhaps in both queues": "duplicated", "failed": "failed", "unknown": "unknown"}
    others = [f"{result[field]:,} {words}" for words, field in details.items() if result[field]]
    destination = str(result["destination"]).partition(":")[2]
    line = _join(f"moved {say_count(result['moved'], 'message')} to {destination}", *others)
    return line if others else _MARK + line


def _describe_work(result: Mapping[str, Any]) -> str:
    """Return how many messages were handled, and how they ended."""
    named = ("done", "retried", "failed", "poisoned", "lost", "held", "duplicates", "released", "unsettled")
    outcomes = {**{name: name for name in named}, "duplicate_differs": "of a done key with another body"}
    counts = [f"{result[name]:,} {words}" for name, words in outcomes.items() if result[name]]
    line = _join(f"handled {say_count(result['received'], 'message')} of {_name(result)}", *counts)
    return _MARK + line if result["received"] == result["done"] + result["duplicates"] else line


def _describe_closed(result: Mapping[str, Any]) -> str:
    """Return how many handles were closed, and how many were not."""
    name = _name(result)
    if result["outcome"] == "unchanged":
        which = "no handle" if result["handle_id"] is None else f"no handle {result['handle_id']}"
        return f"there is {which} open on {name}"
    closed = result["closed"]
    line = f"closed {'the handles' if closed is None else say_count(closed, 'handle')} on {name}"
    if result["failed"]:
        return f"{line}, and failed to close {result['failed']:,}"
    return _MARK + _join(line, _tries(result))


#: What is done to nothing in an account, by its command.
_OF_NO_VERSION: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "cache forget": lambda result: f"{_MARK}forgot {say_count(result['forgotten'], 'version')}",
    "cache clear": _describe_ended,
    "cache prune": _describe_ended,
    "cache import": lambda result: f"{_MARK}imported {say_count(result['imported'], 'version')}",
    "lock hold": _describe_hold,
    "lock check": _describe_check,
    "lock release": _describe_lock_release,
    "emulator start": _describe_start,
    "emulator stop": lambda result: (
        f"{_MARK}stopped the emulator" if result["outcome"] == "stopped" else "nothing was stopped"
    ),
    "file handle close": _describe_closed,
    "queue move": _describe_move,
    "queue work": _describe_work,
    "profile set": lambda result: (
        f"{_MARK}wrote profile {result['name']}{', the default' if result['default'] else ''}"
    ),
    "profile delete": lambda result: f"{_MARK}deleted profile {result['name']}",
}
