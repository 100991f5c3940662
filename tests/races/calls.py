"""What callers asked and were told, as calls of one key, held against a counter and a register.

``history`` holds what was told against what the proxy saw. Here the proxy is not asked: what the callers alone can see
must be what a single copy, used by one at a time, would have told them. So a read that is older than what was read, or
written, before it began is found.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from tests.races.chain import Final, Kind, Violation, Write
from tests.races.history import End, Told
from tests.races.job import COUNT, LINES, How
from tests.races.log import FOREIGN
from tests.traces.linear import COUNTER, REGISTER, Call, describe

Key = tuple[str, str]
_OF_METADATA = (How.METADATA, How.READ_METADATA)


def check(
    told: Iterable[Told], reads: Iterable[Told], finals: Mapping[str, Final], wipes: Sequence[Call] = ()
) -> list[Violation]:
    """Return each key whose calls have no order; ``wipes`` are those of the metadata."""
    calls: dict[Key, list[Call]] = defaultdict(list)
    by_op: dict[str, list[Told]] = defaultdict(list)
    for each in told:
        by_op[each.op].append(each)
    for runs in by_op.values():
        calls[_key(runs[0])] += _merge(runs)
    for each in reads:
        calls[_key(each)].append(Call("read", each.began, each.ended, answer=_answer(each), by=each.run))
    for blob, final in finals.items():
        _add_final(blob, final, calls)
    if wipes:
        calls[COUNT, "metadata"] += wipes
    found = []
    for (blob, part), history in calls.items():
        evidence = describe(history, REGISTER if blob == LINES else COUNTER)
        if evidence is not None:
            found.append(Violation("no order", f"what was told of the {part} of {blob} fits no order", evidence))
    return found


def list_wipes(writes: Iterable[Write]) -> list[Call]:
    """Return the writes of others that left no lineage in the metadata of the counter, and so no count either."""
    wipes = (
        each for each in writes if each.run.startswith(FOREIGN) and each.blob == COUNT and not each.stamped.entries
    )
    return [
        Call("write", each.sent, each.answered, 0, by=each.run) for each in wipes if each.kind is not Kind.PROPERTIES
    ]


def _key(told: Told) -> Key:
    return told.blob, "metadata" if told.how in _OF_METADATA else "content"


def _answer(told: Told) -> Any:
    return tuple(told.value) if isinstance(told.value, list) else told.value


def _merge(runs: list[Told]) -> list[Call]:
    """Return the one call of an op, which is run again after its process was killed; none if it was not applied."""
    first = min(run.began for run in runs)
    done = next((run for run in runs if run.end is End.COMMITTED), None)
    open_ = any(run.end in (End.UNKNOWN, End.KILLED, End.CRASHED) for run in runs)
    if done is None and not open_:
        return []
    what, value = ("append", runs[0].op) if runs[0].blob == LINES else ("add", 1)
    ended, answer = (inf, None) if done is None else (done.ended, _answer(done))
    return [Call(what, first, ended, value, answer, runs[-1].run)]


def _add_final(blob: str, final: Final, calls: Mapping[Key, list[Call]]) -> None:
    values = {"content": final.lines if blob == LINES else final.count, "metadata": final.hits}
    for part, value in values.items():
        history = calls.get((blob, part))
        if history and value is not None:
            last = max(call.began if call.ended == inf else call.ended for call in history)
            history.append(Call("read", last + 1, last + 2, answer=value, by="in the end"))
