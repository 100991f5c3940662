"""What is true of every run, whatever was typed: each oracle yields what is wrong, or nothing."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema
import yaml

from tests.pairs import rules
from tests.pairs.lines import Line
from tests.support import places
from tests.support.cli_world import Ran

#: With these, nothing was written.
UNTOUCHED = (2, 34, 42, 44, 45, 49, 53, 65, 75)
_BUG = 1
# What a line says that its command ends with.
_NAMED_STATUSES = ("--conflict-exit-code", "--lost-exit-code", "--poison-exit-code")
# A lock is made before what it is for is tried, and stays for the next.
_OF_LOCKS = re.compile(r"(blob|container):locks\b|blob:\w+/table/")
# Their result is content, unless it goes to a file or folder.
_OF_CONTENT = ("blob get", "file get", "cache export", "completion", "emulator env")
_TO_FILES = ("--file", "--recursive", "DIR")
# It says 75 that it has stopped; what it did before stands.
_STOPS = ("queue work",)
# A process, and how long something took or is old.
_VOLATILE_NUMBERS = ("pid", "seconds", "age")
# What two runs of one line do not share: ids, ETags, times and how long ago they are.
_VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9A-F]{8,}|\d{4}-\d\d-\d\dT[\d:.%A-Z+]+"
    r"|\b[\w+/]{28,40}\b|op:[\w-]+|[\w-]{16}\.-,all|\b\d+(\.\d+)?(ms|s)\b|\b\d{10,}\b|sha256:[0-9a-f]+|\.azguard-[0-9a-f]+\.tmp"
)
_NUMBER = re.compile(r"\d+(\.\d+)?")
_VOLATILE_FIELDS = ("request_id", "pop_receipt", "receipts", *_VOLATILE_NUMBERS)


@dataclass(frozen=True)
class Typing:
    """A line as it was typed, and what it left."""

    words: tuple[str, ...]
    #: How it shows its result.
    shown_as: str
    ran: Ran


@dataclass(frozen=True)
class Played:
    """A line, typed on the same stage in two orders, with results in two formats."""

    line: Line
    first: Typing
    other: Typing
    #: How many requests the first made.
    requests: int = 0
    #: What of the account is not as it was before the first.
    changed: tuple[str, ...] = ()
    #: Typed again behind the first, if that has changed something for a key.
    again: Typing | None = None
    #: What that has changed.
    changed_again: tuple[str, ...] = ()
    #: What must not be shown.
    secrets: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """Return the exit status."""
        return self.first.ran.code

    @property
    def typings(self) -> tuple[Typing, ...]:
        """Return all runs."""
        return (self.first, self.other, *([self.again] if self.again else []))


def judge(played: Played) -> Iterator[str]:
    """Yield what is wrong with a run, each with the name of its oracle."""
    for name, oracle in ORACLES.items():
        yield from (f"{name}: {what}" for what in oracle(played))


def _judge_end(played: Played) -> Iterator[str]:
    for each in played.typings:
        if "Traceback" in each.ran.err or each.ran.code == _BUG:
            yield f"it ended with {each.ran.code}: {each.ran.err[-300:]}"


def _judge_status(played: Played) -> Iterator[str]:
    named = [str(played.line.find_value(name)) for name in _NAMED_STATUSES]
    known = {*played.line.described.data["statuses"], *(int(each) for each in named if each.isdigit())}
    if played.code not in known:
        yield f"help --json names no exit status {played.code}: {played.first.ran.err.strip()[:300]}"


def _judge_refused(played: Played) -> Iterator[str]:
    broken = played.line.broken
    if broken is not None and played.code != 2:
        yield f"a rule refuses it ({rules.tell(broken)}), and it ended with {played.code}"


def _judge_allowed(played: Played) -> Iterator[str]:
    if played.line.broken is None and played.code == 2 and not played.line.is_checked:
        yield f"no rule refuses it: {played.first.ran.err.strip()[:300]}"


def _judge_requests(played: Played) -> Iterator[str]:
    if played.code == 2 and played.requests:
        yield f"refused after {played.requests} requests: {played.first.ran.err.strip()[:300]}"


def _judge_untouched(played: Played) -> Iterator[str]:
    changed = [each for each in played.changed if not _OF_LOCKS.match(each)]
    if played.line.described.name in _STOPS:
        return
    if played.code in UNTOUCHED and changed:
        yield f"exit {played.code}, and it changed {', '.join(changed)}"


def _judge_dry_run(played: Played) -> Iterator[str]:
    if played.line.has("--dry-run") and played.changed:
        yield f"it changed {', '.join(played.changed)}"


def _judge_result(played: Played) -> Iterator[str]:
    schema = played.line.described.data["result"]
    for each in played.typings:
        if each.shown_as != "json" or not each.ran.out or _shows_content(played.line):
            continue
        try:
            values = read_json(each.ran.out)
        except ValueError:
            yield f"the result is no JSON: {each.ran.out[:200]}"
            continue
        if schema is not None and played.line.find_value("--query") is None:
            yield from _find_misfits(schema, values)


def _find_misfits(schema: Any, values: Any) -> Iterator[str]:
    validator = _find_validator(json.dumps(schema))
    # A list is one result, or each of its lines is one.
    if isinstance(values, list) and all(validator.is_valid(each) for each in values):
        return
    for error in list(validator.iter_errors(values))[:1]:
        best = jsonschema.exceptions.best_match([error])
        yield f"the result does not fit its schema: {best.json_path}: {best.message[:200]}"


@cache
def _find_validator(schema: str) -> Any:
    return jsonschema.Draft202012Validator(json.loads(schema))


def _judge_error(played: Played) -> Iterator[str]:
    for each in played.typings:
        # A status that is an answer has its result on stdout, and no error.
        if each.shown_as != "json" or each.ran.code == 0 or each.ran.out:
            continue
        try:
            error = each.ran.error
        except (ValueError, KeyError):
            yield f"the error is no JSON: {each.ran.err[:200]}"
            continue
        named = [played.line.find_value(name) for name in _NAMED_STATUSES]
        if error["exit_code"] != each.ran.code and str(each.ran.code) not in named:
            yield f"the error says {error['exit_code']}, and the status is {each.ran.code}"
        yield from _find_misfits(_load_error_schema(), {"error": error})


@cache
def _load_error_schema() -> Any:
    return json.loads((places.SCHEMAS / "error.json").read_text("utf-8"))


def _judge_none(played: Played) -> Iterator[str]:
    for each in played.typings:
        if each.shown_as == "none" and each.ran.out and not _shows_content(played.line):
            yield f"-o none printed {each.ran.out[:200]}"


def _judge_quiet(played: Played) -> Iterator[str]:
    for each in played.typings:
        if played.line.has("--quiet") and each.ran.code == 0 and each.ran.err:
            yield f"stderr has: {each.ran.err[:200]}"


def _judge_secrets(played: Played) -> Iterator[str]:
    for each in played.typings:
        shown = each.ran.out + each.ran.err
        if any(secret in shown for secret in played.secrets) or re.search(r"[?&]sig=(?!\*|redacted|REDACTED)\w", shown):
            yield "it showed a key, a token or a signature"


def _judge_order(played: Played) -> Iterator[str]:
    first, other = played.first.ran, played.other.ran
    if first.code != other.code:
        yield f"{first.code}, and {other.code} as {' '.join(played.other.words)}: {(first.err or other.err)[:300]}"


def _judge_formats(played: Played) -> Iterator[str]:
    values = {each.shown_as: each.ran.out for each in (played.other, played.first)}
    if _shows_content(played.line) or played.first.ran.code != played.other.ran.code:
        return
    if played.first.shown_as == played.other.shown_as == "json":
        yield from _compare(_read_masked(played.first.ran.out), _read_masked(played.other.ran.out), "in another order")
    elif "json" in values and "yaml" in values:
        told = _read_masked(values["json"])
        found = _mask(yaml.safe_load(values["yaml"]))
        # One result that stands in a line of its own.
        yield from _compare([told] if isinstance(found, list) and isinstance(told, dict) else told, found, "as YAML")
    elif "json" in values and "tsv" in values:
        yield from _compare_cells(values["json"], values["tsv"])


def _compare(told: Any, found: Any, how: str) -> Iterator[str]:
    if told != found:
        yield f"{how} it shows {found}, not {told}"


def _compare_cells(told: str, cells: str) -> Iterator[str]:
    try:
        value = read_json(told) if told else []
    except ValueError:
        return
    lines = len(value) if isinstance(value, list) else 1
    known = {_write_cell(each) for each in _walk(value)}
    shown = {_VOLATILE.sub("~", cell) for line in cells.splitlines() for cell in line.split("\t")}
    if len(cells.splitlines()) != lines:
        yield f"as TSV it has {len(cells.splitlines())} lines, not {lines}"
    elif others := {cell for cell in shown - known if not (_NUMBER.fullmatch(cell) and _has_volatile_number(value))}:
        yield f"as TSV it shows {', '.join(sorted(others))[:300]}"


def _has_volatile_number(value: Any) -> bool:
    return any(name in each for each in _walk(value) if isinstance(each, dict) for name in _VOLATILE_NUMBERS)


def _walk(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _walk(each)


def _write_cell(value: Any) -> str:
    """Return how TSV writes a value, as docs/output.md says."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    else:
        text = json.dumps(value, ensure_ascii=False)
    return _VOLATILE.sub("~", text)


def _judge_once(played: Played) -> Iterator[str]:
    if played.again is not None and (played.again.ran.code, played.changed_again) != (0, ()):
        yield f"a second time it ended with {played.again.ran.code}, and changed {', '.join(played.changed_again)}"


#: What holds of every run, by its name.
ORACLES: Mapping[str, Callable[[Played], Iterator[str]]] = {
    "end": _judge_end,
    "status": _judge_status,
    "refused": _judge_refused,
    "allowed": _judge_allowed,
    "requests": _judge_requests,
    "untouched": _judge_untouched,
    "dry run": _judge_dry_run,
    "result": _judge_result,
    "error": _judge_error,
    "none": _judge_none,
    "quiet": _judge_quiet,
    "secrets": _judge_secrets,
    "order": _judge_order,
    "formats": _judge_formats,
    "once": _judge_once,
}


def _shows_content(line: Line) -> bool:
    goes_elsewhere = any(line.has(name) for name in _TO_FILES) and line.find_value("--file") != "-"
    return line.described.name in _OF_CONTENT and not goes_elsewhere


def read_json(text: str) -> Any:
    """Return the value that was printed; a list of values, where each stands in a line."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _read_masked(text: str) -> Any:
    try:
        return _mask(read_json(text) if text else None)
    except ValueError:
        return text


def _mask(value: Any) -> Any:
    """Return a value without what two runs of one line do not share."""
    if isinstance(value, dict):
        return {_VOLATILE.sub("~", name): _mask(each) for name, each in value.items() if name not in _VOLATILE_FIELDS}
    if isinstance(value, list):
        return [_mask(each) for each in value]
    return _VOLATILE.sub("~", value) if isinstance(value, str) else value
