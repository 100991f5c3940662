"""The tables of faults as Markdown: what each command says in each cell, as the tests hold it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase

from tests.faults.ages import AGES, Age, Clock
from tests.faults.matrix import CONTESTS, OUTAGES, ROWS, Column, Row, Says
from tests.faults.reads import READS

#: What happens to a request: in the head of a table, and in its legend.
_TITLES = {
    Column.DROP: ("answer lost", "it is done, and its answer is lost"),
    Column.FAIL_AFTER: ("503 although done", "it is done, and answered with 503"),
    Column.LATE: ("answer late", "it is done, and answered after azguard gave it up"),
    Column.HALF: ("half an answer", "it is done, and half of its answer comes"),
    Column.SLOW: ("answer slow", "it is done, and its answer comes in small pieces"),
    Column.ZOMBIE_FIRST: ("late, before the look", "azguard gives it up, and it arrives before the next request"),
    Column.STORED_AFTER: ("earlier answer", "it is done, and answered as an earlier one was that was done"),
    Column.STORED_REFUSAL: ("earlier refusal", "it is done, and answered as an earlier one was that was refused"),
    Column.DATE_AHEAD: ("Date ahead", "its answer is lost, and all others have a Date two hours ahead"),
    Column.DATE_BEHIND: ("Date behind", "its answer is lost, and all others have a Date two hours behind"),
    Column.FAIL_BEFORE: ("not done", "it is not passed on, and answered with 503"),
    Column.RESET: ("reset", "it is not passed on, and the connection is reset"),
    Column.STORED_BEFORE: (
        "not done, earlier answer",
        "it is not passed on, and answered as an earlier one was that was done",
    ),
    Column.ZOMBIE_THEN: ("late, after the look", "azguard gives it up, and it arrives after the next request"),
    Column.ZOMBIE_LAST: ("late, after the end", "azguard gives it up, and it arrives after the command has ended"),
    Column.REPLAYED: ("sent twice", "the network passes it on twice, and the second answer comes"),
}
_DONE = "✓"
_TWICE = "✓✓"


def markdown() -> str:
    """Return the tables of writes, reads and ages, each with its legend."""
    return "\n".join((*_tell_writes(), *_tell_reads(), *_tell_ages()))


def _tell_writes() -> Iterator[str]:
    columns = _merge_columns()
    letters = _name_reasons()
    yield "**Writes.** A row is a command and one of its requests. A column is what happens to that request:\n"
    for head, same in columns.items():
        yield f"- *{head}*: {'; '.join(_TITLES[column][1] for column in same)}."
    yield f"\n{_DONE} is exit status 0: the write was done exactly once. {_TWICE} is 0, too: nothing in the service"
    yield "keeps the network from doing it a second time, to the same end. A number is another exit status."
    yield "Why it is 74:\n"
    for why, letter in letters.items():
        yield f"- {letter}: {why}."
    for noun in dict.fromkeys(_find_noun(row) for row in ROWS):
        cells = (_tell_row(row, columns.values(), letters) for row in ROWS if _find_noun(row) == noun)
        yield from _draw((f"`{noun}`", "request", *columns), cells)
    yield f"\nIn {len(CONTESTS)} more cells another writes meanwhile. In {len(OUTAGES)} the fault hits every such"
    yield "request, until azguard gives up."


def _merge_columns() -> dict[str, list[Column]]:
    """Return the columns that are the same in every row together, by the head of the first."""
    merged: dict[tuple[Says, ...], list[Column]] = {}
    for column in _TITLES:
        merged.setdefault(tuple(row.says(column) for row in ROWS), []).append(column)
    return {_TITLES[same[0]][0]: same for same in merged.values()}


def _name_reasons() -> dict[str, str]:
    reasons = dict.fromkeys(row.says(column).why for row in ROWS for column in Column)
    return dict(zip(filter(None, reasons), ascii_lowercase, strict=False))


def _find_noun(row: Row) -> str:
    return row.command.split()[0]


def _tell_row(row: Row, columns: Iterable[Sequence[Column]], letters: Mapping[str, str]) -> tuple[str, ...]:
    _, _, command = row.command.partition(" ")
    condition = f"{_show(command)} ({row.name})"
    return condition, row.spoilt, *(_tell_cell(row.says(same[0]), letters) for same in columns)


def _tell_cell(says: Says, letters: Mapping[str, str]) -> str:
    if says.code == 0:
        return _TWICE if says.twice else _DONE
    return f"{says.code} {letters[says.why]}" if says.why else str(says.code)


def _tell_reads() -> Iterator[str]:
    yield "\n**Reads.** Another changes what was read, and it is read again. A gateway gives each answer of the first"
    yield "time once more. azguard tells what is true. Where the gateway never gives another answer, it ends with 53."
    yield from _draw(
        ("command", "exit status", "it prints"),
        ((_show(each.command), str(each.code), each.shows or "–") for each in READS),
    )


def _tell_ages() -> Iterator[str]:
    yield "\n**Ages.** The Date of all answers is wrong by two hours: of those that the command receives (*ahead*,"
    yield "*behind*), or of those that the holder received (*holder ahead*, *holder behind*). The command ends as under"
    yield "the right clock, and leaves or prints the same:"
    yield from _draw(
        ("what is judged", "command", *(clock.value for clock in Clock), "then"),
        ((each.name, _show(each.command), *_tell_clocks(each), each.shows) for each in AGES),
    )


def _tell_clocks(age: Age) -> Iterator[str]:
    for clock in Clock:
        yield (_DONE if age.code == 0 else str(age.code)) if clock in age.clocks else ""


def _show(command: str) -> str:
    """Return a command line with words in capitals for the names of a cell."""
    names = {name: name.upper() for name in ("blob", "container", "entity", "message", "queue", "share", "table")}
    return f"`{command.format(**names, lease='ID', at='NAME')}`"


def _draw(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield ""
    for line in (head, tuple("---" for _ in head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
