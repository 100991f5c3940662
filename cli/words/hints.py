"""What happened and what to type next, as command lines that run when they are copied.

The words for what the core raises are found by the reason of an error. A template takes the facts of the error:
``{address}`` with its prefix, ``{noun}``, ``{target}`` without it, ``{option}``, the option of the argument that is
wrong, ``{code}``, the service's own code, ``{message}``, and its ``facts`` and ``values``. In what to type next,
address and target are quoted for a shell. Where the words depend on the facts, a row is a function of them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from azguard.address import Kind, parse
from azguard.cli.parsing import command_line
from azguard.cli.registry import COMMANDS
from azguard.cli.words import accounts, conditions, files, leases, services
from azguard.cli.words.templates import Words, fill
from azguard.errors import AzguardError, Changed, Gone, Locked, NotFound, OutcomeUnknown, UsageError

#: The tables, by subject.
PAGES = (accounts, conditions, files, leases, services)
#: What to type next.
HINTS: Mapping[str, Words] = {reason: words for page in PAGES for reason, words in page.HINTS.items()}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {reason: words for page in PAGES for reason, words in page.WORDS.items()}
_READS = ("blob get", "blob show", "blob exists", "lease show")
# A hint about a table may name it as the beginning of a name.
_WITH_URL = [each for each in Kind if each is not Kind.TABLE]
#: Facts that stand in command lines. Others may have chosen them.
NAMES = (
    "account", "address", "container", "destination", "directory", "file", "folder", "parent", "program", "scope",
    "share", "source", "target", "text",
)  # fmt: skip
_LOCAL = ("profile", "emulator", "demo", "help", "version", "completion")
_ALONE = ("safe-update", "edit", "batch", "doctor", "status")
_SCOPED = "cache"
_NOUNS = "|".join(name for name in COMMANDS if name not in (*_LOCAL, *_ALONE))
_GROUPS = (
    "metadata|acl|tags|properties|page|block|legal-hold|immutability|permission|handle|range|poison|(?<=file )lock"
)
# What follows where a command is told of, and not to be typed.
_PROSE = r" --help| (?:sets|keeps|writes|makes|with|copies)\b"
# Atomic: where a command is left alone, so is the group that it is in.
_COMMAND = re.compile(
    rf"\bazguard (?>{'|'.join(_ALONE)}|(?P<noun>{_NOUNS}) (?>(?:{_GROUPS}) [a-z][a-z-]*|append seal|[a-z][a-z-]*))"
    rf"(?![\w-]|{_PROSE})"
)


def in_words(error: AzguardError, argv: Sequence[str] = ()) -> AzguardError:
    """Return an error of the core with the command line's words for its reason; ``argv`` is all that was typed."""
    next_step = _after_edit(error, argv) or _after_update(error, argv) if error.hint is None else error.hint
    if error.reason is None:
        return error if next_step == error.hint else error.but(hint=next_step)
    facts = {**error.facts, **error.values, **_facts(error)}
    message = fill(WORDS.get(error.reason), facts)
    if message is not None:
        message = _line_of(error) + message
    return error.but(
        message=error.message if message is None else message,
        hint=fill(HINTS.get(error.reason), _as_typed(facts, argv)) if next_step is None else next_step,
    )


def _facts(error: AzguardError) -> dict[str, object]:
    address = error.address or ""
    noun, _, target = address.partition(":")
    return {
        "address": address,
        "noun": noun,
        "target": target,
        "option": _name_option(error),
        "code": error.service_code or "",
        "message": error.message.removeprefix(_line_of(error)),
    }


def _as_typed(facts: Mapping[str, object], argv: Sequence[str]) -> dict[str, object]:
    """Return facts with the names as they are typed in a shell: a name may hold blanks, and even a command."""
    url = _find_url(facts, argv)
    names = {**facts, **({} if url is None else {"address": url, "target": url})}
    return {**facts, **{each: command_line.quote(str(names[each])) for each in NAMES if names.get(each)}}


def _find_url(facts: Mapping[str, object], argv: Sequence[str]) -> str | None:
    """Return the URL that was typed for what an error is about, without its SAS: it names the account, too."""
    for word in command_line.split(argv)[0]:
        if facts["noun"] in _WITH_URL and "://" in word and _names(word, facts):
            return command_line.hide_secret(word)
    return None


def name_as_typed(error: AzguardError, argv: Sequence[str]) -> str:
    """Return the name of the resource that an error is about: the URL that was typed, else the address."""
    return _find_url(_facts(error), argv) or str(error.address)


def _names(url: str, facts: Mapping[str, object]) -> bool:
    try:
        return str(parse(url, Kind(str(facts["noun"]))).address) == facts["address"]
    except UsageError:
        return False


def _name_option(error: AzguardError) -> str:
    """Return the option that an error is about as it is typed; in a line of JSON it is a key."""
    if error.argument is None:
        return ""
    return f'"{error.argument}"' if "line" in error.facts else f"--{error.argument.replace('_', '-')}"


def _line_of(error: AzguardError) -> str:
    return f"line {error.facts['line']}: " if "line" in error.facts else ""


def of(error: AzguardError, command: str, params: dict[str, Any], argv: Sequence[str]) -> str | None:
    """Return a hint: the next command, which keeps both sides' work; None where no such command is known.

    ``command`` is the command that ran, ``params`` its own arguments, ``argv`` the whole command line.
    """
    if isinstance(error, Changed) and "contents" in error.facts:
        return _after_count(command, params, argv)
    if isinstance(error, (Gone, NotFound)):
        return _after_deletion(command, argv)
    if isinstance(error, Changed) and error.current_etag and command in _READS:
        return _after_read(error.current_etag, argv)
    if not isinstance(error, Changed) or not error.expected_etag:
        return None
    if command == "blob put":
        return _after_put(params, argv)
    if command == "blob delete":
        return _after_delete(_get(str(params["blob"])), argv)
    if command in ("entity replace", "entity merge"):
        return _after_entity(params, argv)
    if command == "entity delete":
        return _after_delete(_get_entity(str(params["entity"])), argv)
    return _after_change(error, command, argv)


def _after_change(error: Changed, command: str, argv: Sequence[str]) -> str | None:
    """Return how to see what a blob is now, where it has changed and what was meant was not done."""
    if error.address is None or not error.address.startswith(f"{Kind.BLOB}:") or not error.current_etag:
        return None
    noun = command.split(maxsplit=1)[0]
    look = ["blob", "metadata", "get"] if command == "blob metadata set" else [noun, "show"]
    name = name_as_typed(error, argv)
    name = name.removeprefix(f"{Kind.BLOB}:") if noun == Kind.BLOB else name
    return f"look, then decide: {command_line.show(['azguard', *look, name])}"


def under_own_lease(argv: Sequence[str], option: str = "--lease-id") -> str:
    """Return the command line as typed, under the lease that this scope holds; ``option`` takes its id."""
    own, rest = command_line.split(argv)
    # What asks for a lease of its own contradicts the one that is held.
    others = ("--wait", "--guard") if command_line.find_value(own, "--guard") == "lease" else ("--wait",)
    again = ["azguard", *command_line.drop(own, (option, *others)), option, "@held", *rest]
    return f"that lease is your own: {command_line.show(again)}"


def _after_edit(error: AzguardError, argv: Sequence[str]) -> str | None:
    """Return how to go on with what was typed in an editor; None if the error is about none."""
    if not error.values.get("is_edit"):
        return None
    own, rest = command_line.split(argv)
    own = command_line.drop(own, ("--resume",))
    again = ["azguard", *own, "--resume", str(error.facts["kept"]), *rest]
    if not isinstance(error, OutcomeUnknown):
        mend = HINTS.get(error.reason or "") if str(error.reason).startswith("edit_") else None
        return "\n      ".join([*([str(mend)] if mend else []), f"go on with it: {command_line.show(again)}"])
    op = str(error.facts["op_id"])
    ask = command_line.show(["azguard", "safe-update", name_as_typed(error, argv), "--op-id", op, "--status"])
    if command_line.find_value(own, "--op-id") is None:
        again += ["--op-id", op]
    return (
        f"ask for its outcome: {ask}\n      if it was not applied, go on under the same id: {command_line.show(again)}"
    )


def _after_update(error: AzguardError, argv: Sequence[str]) -> str | None:
    """Return how to go on with an update that did not end well; None if the error is about none."""
    leaves_trace = error.values.get("leaves_trace")
    if leaves_trace is None or isinstance(error, Locked):
        return None
    op = str(error.facts["op_id"])
    own, rest = command_line.split(argv)
    if leaves_trace and command_line.find_value(own, "--op-id") is None:
        own += ["--op-id", op]
    again = command_line.show(["azguard", *own, *rest])
    if not isinstance(error, OutcomeUnknown):
        return f"resume it: {again}"
    if not leaves_trace:
        kind, _, name = str(error.address).partition(":")
        name = _find_url(_facts(error), argv) or name
        return f"without a lineage only you can tell: {command_line.show(['azguard', kind, 'get', name])}"
    ask = command_line.show(["azguard", "safe-update", name_as_typed(error, argv), "--op-id", op, "--status"])
    return f"ask for its outcome: {ask}\n      if it was not applied, run it again under the same id: {again}"


def _after_read(etag: str, argv: Sequence[str]) -> str:
    now = f"to read what is there now: {_again(argv, [])}"
    return f"{now}\n      or that version and no other: {_again(argv, ['--if-match', etag])}"


def _after_put(params: dict[str, Any], argv: Sequence[str]) -> str:
    file = params.get("file")
    mine = file if file not in (None, "-") else "MERGED"
    added = ["--etag", "@last"] if mine == file else ["-f", mine, "--etag", "@last"]
    blob = str(params["blob"])
    update = command_line.show(["azguard", "safe-update", _add_prefix(blob)])
    lines = (
        f"fetch theirs beside yours: {_get(blob)}",
        f"merge the two in {command_line.quote(mine)}, then: {_again(command_line.drop(argv, ['--content']), added)}",
        f"or let azguard retry the change: {update} -- COMMAND",
    )
    return "\n      ".join(lines)


def _after_count(command: str, params: dict[str, Any], argv: Sequence[str]) -> str:
    noun = command.split(maxsplit=1)[0]
    look = {"container": ["blob", "list"], "table": ["entity", "query"], "share": ["file", "list"]}.get(
        noun, ["message", "peek"]
    )
    see = command_line.show(["azguard", *look, str(params["resource"])])
    own, rest = command_line.split(argv)
    again = command_line.show(["azguard", *own, "--with-contents", *rest])
    return f"see what is in it: {see}\n      to delete that too: {again}"


def _after_deletion(command: str, argv: Sequence[str]) -> str | None:
    """Return the hint where the resource does not exist: create it, or leave it."""
    # No lease outlives what it was on, and an insert overwrites nothing.
    own, rest = command_line.split(argv)
    own = command_line.drop(own, (*command_line.GUARDS, "--lease-id", "--last-writer-wins"))
    if command == "blob put":
        again = command_line.show(["azguard", *own, "--if-none-match", "*", *rest])
        return f"to create it anew with your content: {again}\n      to leave it deleted, do nothing"
    if command in ("entity replace", "entity merge"):
        typed = own[own.index(command.split()[1]) + 1 :]
        again = command_line.show(["azguard", "entity", "insert", *typed, *rest])
        return f"to create it with these properties alone: {again}\n      to leave it deleted, do nothing"
    if command in ("blob delete", "entity delete"):
        return "there is nothing left to delete"
    return None


def _after_entity(params: dict[str, Any], argv: Sequence[str]) -> str:
    words, file, entity = params.get("properties"), params.get("file"), str(params["entity"])
    mine = "your words" if words else "MERGED" if file in (None, "-") else str(file)
    added = ["--etag", "@last"] if words or mine == file else ["-f", mine, "--etag", "@last"]
    update = command_line.show(["azguard", "safe-update", _add_prefix(entity, "entity")])
    lines = (
        f"see what it is now: {_get_entity(entity)}",
        f"merge the two in {mine if words else command_line.quote(mine)}, then: {_again(argv, added)}",
        f"or let azguard retry the change: {update} --set NAME=JSON",
    )
    return "\n      ".join(lines)


def _get_entity(entity: str) -> str:
    return command_line.show(["azguard", "entity", "get", entity])


def _after_delete(get: str, argv: Sequence[str]) -> str:
    fetch = f"see what it is now: {get}"
    return f"{fetch}\n      if it is to go all the same: {_again(argv, ['--etag', '@last'])}"


def _get(blob: str) -> str:
    return command_line.show(["azguard", "blob", "get", blob, "-f", "THEIRS"])


def _again(argv: Sequence[str], added: Sequence[str]) -> str:
    """Return the command line as typed, with another guard."""
    own, rest = command_line.split(argv)
    return command_line.show(["azguard", *command_line.drop(own, command_line.GUARDS), *added, *rest])


def _add_prefix(address: str, kind: str = "blob") -> str:
    return address if "://" in address or address.startswith(f"{kind}:") else f"{kind}:{address}"


def keep(hint: str | None, argv: Sequence[str]) -> str | None:
    """Return a hint whose command lines have the options of the account and the scope that were typed."""
    if hint is None:
        return None
    options = command_line.keep_account(argv)
    scope = command_line.keep(options, ("--scope",))
    return "\n".join(_add(line, options, scope) for line in hint.split("\n")) if options else hint


def _add(line: str, options: list[str], scope: list[str]) -> str:
    """Return a line with the options, unless it has some of them already."""
    names = [word.partition("=")[0] for word in options if word.startswith("--")]
    if any(name in re.split(r"[\s=]", line) for name in names):
        return line

    def insert(found: re.Match[str]) -> str:
        added = scope if found["noun"] == _SCOPED else options
        return f"{found[0]} {command_line.show(added)}" if added else found[0]

    return _COMMAND.sub(insert, line)
