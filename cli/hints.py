"""What to type after a conflict, as command lines that run when they are copied."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from azguard.cli.hint_table import HINTS, WORDS
from azguard.cli.redaction import OPTIONS
from azguard.cli.words import Words
from azguard.errors import AzguardError, Changed, Gone, NotFound

_GUARDS = ("--etag", "--if-match", "--if-none-match", "--if-modified-since", "--if-unmodified-since", "--if-tags")
_ENDPOINTS = ("--blob-endpoint", "--table-endpoint", "--queue-endpoint", "--file-endpoint", "--endpoint-suffix")
_ACCOUNT = (*OPTIONS, *_ENDPOINTS, "--account-name", "--auth-mode", "--profile", "--emulator", "--scope")
_FLAGS = ("--emulator",)
_READS = ("blob get", "blob show", "blob exists", "lease show")


def in_words(error: AzguardError) -> AzguardError:
    """Return an error of the core with the command line's words for its reason."""
    if error.reason is None:
        return error
    facts = {**error.facts, **error.values, **_facts(error)}
    message = _filled(WORDS.get(error.reason), facts)
    if message is not None:
        message = _line_of(error) + message
    hint = _filled(HINTS.get(error.reason), facts)
    return error.but(
        message=error.message if message is None else message,
        hint=hint if error.hint is None else error.hint,
    )


def _filled(words: Words | None, facts: Mapping[str, object]) -> str | None:
    if words is None:
        return None
    return words.format_map(facts) if isinstance(words, str) else words(facts)


def _facts(error: AzguardError) -> dict[str, object]:
    address = error.address or ""
    return {
        "address": address,
        "target": address.partition(":")[2],
        "option": "" if error.argument is None else f"--{error.argument.replace('_', '-')}",
        "code": error.service_code or "",
        "message": error.message.removeprefix(_line_of(error)),
    }


def _line_of(error: AzguardError) -> str:
    """Return how the message of an error begins that is about one line of the input."""
    return f"line {error.facts['line']}: " if "line" in error.facts else ""


def of(error: AzguardError, command: str, params: dict[str, Any], argv: Sequence[str]) -> str | None:
    """Return what to type next, so that neither side's work is lost, or None where that is not known.

    ``command`` is the one that ran, ``params`` its own arguments, ``argv`` all that was typed.
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
        return _after_delete(_get(str(params["blob"]), argv), argv)
    if command in ("entity replace", "entity merge"):
        return _after_entity(params, argv)
    if command == "entity delete":
        return _after_delete(_get_entity(str(params["entity"]), argv), argv)
    return None


def typed(argv: Sequence[str], option: str) -> str | None:
    """Return the value that was typed for an option, or None."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    values = [after for word, after in pairwise([*own, ""]) if word == option]
    values += [word.partition("=")[2] for word in own if word.startswith(f"{option}=")]
    return values[-1] if values else None


def under_own_lease(argv: Sequence[str]) -> str:
    """Return the command line as typed, under the lease that this scope holds."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    words = ["azguard", *_without(own, ("--lease-id", "--wait-lease")), "--lease-id", "@held", *argv[len(own) :]]
    return f"that lease is your own: {_line(words)}"


def _after_read(etag: str, argv: Sequence[str]) -> str:
    now = f"to read what is there now: {_again(argv, [])}"
    return f"{now}\n      or that version and no other: {_again(argv, ['--if-match', etag])}"


def _after_put(params: dict[str, Any], argv: Sequence[str]) -> str:
    file = params.get("file")
    mine = file if file not in (None, "-") else "MERGED"
    added = ["--etag", "@last"] if mine == file else ["-f", mine, "--etag", "@last"]
    blob = str(params["blob"])
    update = _line(["azguard", "safe-update", _prefixed(blob), *_account(argv)])
    lines = (
        f"fetch theirs beside yours: {_get(blob, argv)}",
        f"merge the two in {shlex.quote(mine)}, then: {_again(argv, added)}",
        f"or let azguard retry the change: {update} -- COMMAND",
    )
    return "\n      ".join(lines)


def _after_count(command: str, params: dict[str, Any], argv: Sequence[str]) -> str:
    noun = command.split(maxsplit=1)[0]
    look = ["blob", "list"] if noun == "container" else ["entity", "query"]
    see = _line(["azguard", *look, str(params[noun]), *_account(argv)])
    return f"see what is in it: {see}\n      to delete that too: {_line(['azguard', *argv, '--with-contents'])}"


def _after_deletion(command: str, argv: Sequence[str]) -> str | None:
    """Return what to do where the resource is not there: create it, or leave it."""
    # No lease outlives what it was on, and an insert overwrites nothing.
    rest = _without(argv, (*_GUARDS, "--lease-id", "--last-writer-wins"))
    if command == "blob put":
        again = _line(["azguard", *rest, "--if-none-match", "*"])
        return f"to create it anew with your content: {again}\n      to leave it deleted, do nothing"
    if command in ("entity replace", "entity merge"):
        again = _line(["azguard", "entity", "insert", *rest[rest.index(command.split()[1]) + 1 :]])
        return f"to create it with these properties alone: {again}\n      to leave it deleted, do nothing"
    if command in ("blob delete", "entity delete"):
        return "there is nothing left to delete"
    return None


def _after_entity(params: dict[str, Any], argv: Sequence[str]) -> str:
    words, file, entity = params.get("properties"), params.get("file"), str(params["entity"])
    mine = "your words" if words else "MERGED" if file in (None, "-") else str(file)
    added = ["--etag", "@last"] if words or mine == file else ["-f", mine, "--etag", "@last"]
    update = _line(["azguard", "safe-update", _prefixed(entity, "entity"), *_account(argv)])
    lines = (
        f"see what it is now: {_get_entity(entity, argv)}",
        f"merge the two in {mine if words else shlex.quote(mine)}, then: {_again(argv, added)}",
        f"or let azguard retry the change: {update} --set NAME=JSON",
    )
    return "\n      ".join(lines)


def _get_entity(entity: str, argv: Sequence[str]) -> str:
    return _line(["azguard", "entity", "get", entity, *_account(argv)])


def _after_delete(get: str, argv: Sequence[str]) -> str:
    fetch = f"see what it is now: {get}"
    return f"{fetch}\n      if it is to go all the same: {_again(argv, ['--etag', '@last'])}"


def _get(blob: str, argv: Sequence[str]) -> str:
    return _line(["azguard", "blob", "get", blob, "-f", "THEIRS", *_account(argv)])


def _again(argv: Sequence[str], added: Sequence[str]) -> str:
    """Return the command line as typed, with another guard."""
    return _line(["azguard", *_without(argv, _GUARDS), *added])


def _without(argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the words of a command line without some options and their values, and without ``-f -``."""
    return [word for group in _groups(argv) if _name(group) not in options and group != ["-f", "-"] for word in group]


def _account(argv: Sequence[str]) -> list[str]:
    return [word for group in _groups(argv) if _name(group) in _ACCOUNT for word in group]


def _groups(argv: Sequence[str]) -> list[list[str]]:
    """Return the words of a command line, each option together with its value."""
    known = (*_GUARDS, *_ACCOUNT, "-f", "--file", "--lease-id")
    groups: list[list[str]] = []
    rest = list(argv)
    while rest:
        takes = rest[0] in known and rest[0] not in _FLAGS
        groups.append(rest[: 2 if takes else 1])
        del rest[: 2 if takes else 1]
    return groups


def _name(group: Sequence[str]) -> str:
    return group[0].partition("=")[0]


def _line(words: Sequence[str]) -> str:
    """Return words as a line for a shell; a secret in it is left out."""
    shown: list[str] = []
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if index and words[index - 1] in OPTIONS and not word.startswith("@"):
            shown.append("…")
        elif equals and name in OPTIONS and not value.startswith("@"):
            shown.append(f"{name}=…")
        elif word.startswith(("http://", "https://")) and "sig=" in word:
            shown.append(shlex.quote(word.partition("?")[0]) + "?…")
        else:
            shown.append(shlex.quote(word))
    return " ".join(shown)


def _prefixed(address: str, kind: str = "blob") -> str:
    return address if "://" in address or address.startswith(f"{kind}:") else f"{kind}:{address}"
