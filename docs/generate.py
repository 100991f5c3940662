"""Write the tables of the pages that the code knows: conditions, exit statuses, commands, options; and the examples.

    python -m docs.generate            write them, between their marks, into the pages
    python -m docs.generate --check    only say which pages are stale; exit status 1 if any

A table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. From the pages come the topics of
``azguard help TOPIC``, and from those and the commands' help the manual pages in docs/man. While one of them is stale,
``tests/system/test_docs.py`` fails.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from azguard import errors
from azguard.cli.help import layout, pages
from azguard.cli.parsing.rows import ACCOUNT, ARGUMENTS, CONDITIONS, GENERAL, OPTIONS
from azguard.cli.parsing.tree import Command, root
from azguard.cli.registry import COMMANDS
from azguard.folders import KEPT, Keeping
from azguard.wire.rows import FULL, SOURCE_FULL, Condition, Guard, Lease, Operation, Settlement, Write
from docs import help_pages, manual, markdown
from tests.faults import table as fault_table
from tests.traces.rules import RULES

PAGES = Path(__file__).parent
EXAMPLES = PAGES.parent / "examples"
_MARKED = re.compile(r"(?<=<!-- generated: )(?P<name>[\w-]+) -->\n.*?(?=<!-- end -->)", re.DOTALL)

_WITHOUT_CONDITION = {
    Write.NO: "reads",
    Write.FREE: "writes; overwrites nothing",
    Write.APPENDS: "the version last read; never read: the end of the blob",
    Write.CREATES: "creates only; else 45",
    Write.PUTS: "the version last read; never read: creates only, else 45",
    Write.CHANGES: "the version last read; never read: refused, 42",
}
_UNGUARDED = "nothing guards it: refused, 2, without `--last-writer-wins`"
_LEASE = {
    Lease.NONE: "not looked at",
    Lease.OPTIONAL: "goes without; a wrong id is refused",
    Lease.REQUIRED: "needs its id, else 49",
    Lease.SUBJECT: "the lease itself",
}
_ETAG = {
    Guard.IF_MATCH: "the service",
    Guard.LEASE: "a short lease",
    Guard.VERSION: "the version in the request",
    Guard.COMPARE: "`--allow-race`",
    Guard.NONE: "–",
}
_SETTLEMENT = {
    Settlement.LINEAGE: "its id, among the last writes that the resource keeps",
    Settlement.HELD: "what is there, while a lease keeps all others from changing it; without a lease: 74",
    Settlement.FOUND: "what is there; if others can have done the same: 74",
    Settlement.BEFORE: "what was there before; if others can have come between: 74",
    Settlement.POSITION: "the bytes at the place to which it appended",
    Settlement.LEASE: "the id and the state of the lease; if azguard cannot see them, it asks again",
    Settlement.IDENTITY: "the id that a file or a directory keeps under its new name",
    Settlement.RECEIPT: "azguard sends it again: the receipt lets only one of two through",
    Settlement.REPEATED: "azguard sends it again: twice is as good as once",
    Settlement.NOTHING: "nothing: 74",
}
#: What the classes cannot know: two statuses that no error has, and two that share a line.
_OK = ("0", "`ok`", "Done, or nothing to do.", "")
_TOGETHER = {"130": "130, 143"}
_MEANING = {
    "internal": "A bug, or an answer of an unknown kind. Please report it.",
    "interrupted": "Ctrl-C, or SIGTERM.",
}


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def conditions() -> str:
    """Return the table of commands, the conditions they take, and what a lease means to them."""
    found = ((name, command.spec.operation) for name, command in root.walk())
    rows = (_conditions_of(name, operation) for name, operation in found if operation is not None)
    head = ("command", "without a condition", "conditions", "`--etag` is kept by", "the resource is leased")
    return _table(head, rows)


def _conditions_of(name: str, operation: Operation) -> tuple[str, ...]:
    has_five = operation.honours >= FULL
    named = operation.honours - (FULL if has_five else frozenset()) - SOURCE_FULL
    taken = ["all five"] if has_five else []
    taken += [f"`--{each}`" for each in Condition if each in named]
    if operation.honours & SOURCE_FULL:
        taken.append("`--source-if-…`")
    if operation.fences:
        taken.append("`--fence`")
    is_unguarded = operation.write is Write.CHANGES and operation.guard is Guard.NONE
    return (
        f"`{name}`",
        _UNGUARDED if is_unguarded else _WITHOUT_CONDITION[operation.write],
        ", ".join(taken) or "none",
        _ETAG[operation.guard] if operation.writes else "–",
        _LEASE[operation.lease],
    )


def lost_answers() -> str:
    """Return the table of what tells, after a lost answer, that a write was applied."""
    found = [(name, command.spec.operation) for name, command in root.walk()]
    rows = (
        (words, ", ".join(f"`{name}`" for name, row in found if row is not None and row.settle is settle))
        for settle, words in _SETTLEMENT.items()
    )
    return _table(("what tells that it was applied", "commands"), rows)


def exit_statuses() -> str:
    """Return the table of exit statuses."""
    rows: dict[int, tuple[str, ...]] = {0: _OK}
    for each in _classes(errors.AzguardError):
        # The first class of a kind is its own; the others are special cases of it.
        rows.setdefault(each.exit_code, _status_of(each))
    return _table(("status", "kind", "meaning", "run it again?"), (rows[code] for code in sorted(rows)))


def _status_of(each: type[errors.AzguardError]) -> tuple[str, ...]:
    status, first = str(each.exit_code), (each.__doc__ or "").strip().splitlines()[0]
    again = "may help" if each.retriable else ""
    return _TOGETHER.get(status, status), f"`{each.kind}`", _MEANING.get(each.kind, first), again


def _classes(root: type[errors.AzguardError]) -> Iterator[type[errors.AzguardError]]:
    yield root
    for each in root.__subclasses__():
        yield from _classes(each)


def kept_files() -> str:
    """Return the table of what azguard keeps in files."""
    rows = [(each.kind, f"`{_place(each)}`", each.purpose, each.ends, _days(each)) for each in KEPT]
    return _table(("kind", "below the folder", "what it is", "what ends it by itself", "`cache prune` after"), rows)


def _place(row: Keeping) -> str:
    return f"{row.folder}/" if row.folder else row.pattern


def _days(row: Keeping) -> str:
    return f"{row.days} days" if row.days else "never"


def command_list() -> str:
    """Return the list of nouns with their commands."""
    rows = []
    for noun, entry in COMMANDS.items():
        names = [name for name, _ in root.walk() if name.split()[0] == noun]
        links = ", ".join(f"[`{name.removeprefix(noun).strip() or noun}`](#{_anchor(name)})" for name in names)
        rows.append((f"`{noun}`", entry.summary, links))
    return _table(("noun", "what for", "commands"), rows)


def _anchor(name: str) -> str:
    return f"azguard-{name.replace(' ', '-')}"


def trace_rules() -> str:
    """Return the rules by which the steps of traces are checked."""
    rows = [f"| *{name}* | {words} |\n" for name, words in RULES.items()]
    return "".join(("| rule | it says |\n|---|---|\n", *rows))


def command_options() -> str:
    """Return a section for each command: its usage, its options, the conditions that it takes."""
    return "\n".join(_section(name, command) for name, command in root.walk()) + "\n"


def _section(name: str, command: Command) -> str:
    rows = [row for row in command.rows if not row.is_hidden]
    conditions = [f"`{row.flags[0]}`" for row in rows if row.panel == CONDITIONS]
    own = [
        (f"`{help_pages.write_row(row)}`", help_pages.explain(command, row))
        for row in rows
        if row.panel in (ARGUMENTS, OPTIONS)
    ]
    told = pages.HelpText(command.help)
    lines = "\n".join([f"azguard {name} {help_pages.usage(command)}", "", *told.examples])
    text = f"### azguard {name}\n\n{command.summary}\n\n```text\n{lines}\n```\n"
    text += "".join(f"\n{_marked_down(note)}\n" for note in told.notes)
    text += f"\n{_table(('option', 'meaning'), own)}" if own else ""
    return text + (f"\nConditions: {', '.join(conditions)}.\n" if conditions else "")


def _marked_down(text: str) -> str:
    """Return plain text such that Markdown changes nothing of it."""
    return re.sub(
        r"(?<![\w`])(--?[a-z][\w-]*)", r"`\1`", " ".join(text.split()).replace("*", "\\*").replace("~", "\\~")
    )


def shared_options() -> str:
    """Return the options that many commands share: conditions, account, general."""
    put = dict(root.walk())["blob put"]
    text = ""
    for panel in (CONDITIONS, ACCOUNT, GENERAL):
        rows = [
            (f"`{help_pages.write_row(row)}`", help_pages.explain(root, row))
            for row in put.rows
            if row.panel == panel and not row.is_hidden
        ]
        text += f"### {panel}\n\n{_table(('option', 'meaning'), rows)}\n"
    return text


def _script(path: Path) -> Callable[[], str]:
    return lambda: f"```bash\n{path.read_text(encoding='utf-8')}```\n"


TABLES: dict[str, Callable[[], str]] = {
    "conditions": conditions,
    "lost-answers": lost_answers,
    "exit-statuses": exit_statuses,
    "command-list": command_list,
    "kept-files": kept_files,
    "command-options": command_options,
    "shared-options": shared_options,
    "fault-table": fault_table.markdown,
    "trace-rules": trace_rules,
    "same-job-az": _script(PAGES.parent / "benchmarks" / "same_job_az.sh"),
    **{path.name.replace(".", "-"): _script(path) for path in EXAMPLES.glob("*.sh")},
}


#: The page of each topic, and the sections that the topic has of it. The text above the first section is named "".
_SECTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "addresses": ("addresses", ("",)),
    "accounts": ("accounts", ("", "All ways", "Your Azure identity", "A SAS", "A profile", "Secrets", "Encryption keys",
                              "An older service", "In CI")),
    "options": ("commands", ("Options that many commands share",)),
    "conditions": (
        "conditions",
        ("Without any option", "Three strategies", "The options", "What a condition does not protect from",
         "Deleting with contents", "Empty content"),
    ),
    "scopes": ("scopes-and-cache", ("", "Scopes", "What counts as read", "Files")),
    "updates": ("safe-update", ("", "Tools that edit a file", "In your editor", "What stays", "Run it again safely",
                                "A lost answer", "Guards")),
    "paths": ("paths", ("", "YAML")),
    "tables": ("tables", ("Read entities", "Types", "Names and limits", "Write entities", "Transactions",
                          "Lost answers", "Update entities")),
    "files": ("files", ("", "What guards a write", "Leases", "Temporary files", "Copies", "Run a command under a lock",
                        "SMB")),
    "queues": ("queues", ("", "Messages", "Encodings", "Back from the poison queue",
                          "What guards a write")),
    "worker": ("worker", ("", "Exit protocol", "Inside the command", "Slow commands", "How many, how long",
                          "What is not guaranteed")),
    "once": ("once", ("", "The key", "States", "Taking over", "What is guaranteed, and what is not")),
    "appends": ("appends", ("", "Many writers", "A lost answer to an append", "Long content")),
    "copies": ("copies", ("", "Conditions on the source", "A copy that takes time", "Not guaranteed")),
    "snapshots": ("copies", ("Snapshots", "Put a snapshot back", "Keep what you replace")),
    "trees": ("trees", ("", "Run it again", "Make one side like the other", "Which files", "Not guaranteed")),
    "leases": ("leases", ("", "After a crash", "Say who holds it", "Break a lease", "What is not guaranteed")),
    "locks": ("locks", ("", "Wait for a lock", "First come, first served", "No old run after a newer one",
                        "Readers beside each other", "Inside the command", "Across steps", "History",
                        "Several locks, and slots", "Who holds what", "Terraform", "Break a lock whose run is over",
                        "When the lock is lost", "What is not guaranteed")),
    "smb-locks": ("smb-locks", ("", "Which lock", "Wait for a file", "When the lock is lost", "Take it by force",
                                "When it does not work", "What is not guaranteed")),
    "fences": ("fences", ("", "How it works", "What to know")),
    "output": ("output", ("", "Bytes", "In a CI job", "Errors", "Switches")),
    "exit-status": ("exit-status", ("", "The table")),
    "environment": (
        "environment", ("", "Account", "Network", "azguard", "Inside a command", "What azguard keeps in files")
    ),
    "guarantees": ("guarantees", ("The promise", "Exactly once", "How", "What is not guaranteed")),
}  # fmt: skip


_TO_PAGE = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.md(?:#[\w-]+)?\)")


def _to_topic(link: re.Match[str]) -> str:
    """Return a link to a page as the words for the topic that is made of it, if there is one."""
    made = [name for name, (page, _) in _SECTIONS.items() if page == link[2]]
    return f"{link[1]} (`azguard help {made[0]}`)" if made else link[1]


def topic(name: str) -> str:
    """Return the text of a topic: sections of its page, without samples of what a terminal shows, and pictures."""
    page, wanted = _SECTIONS[name]
    text = written((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    text = _TO_PAGE.sub(_to_topic, text)
    text = re.sub(
        r"^<!-- file: \S+ -->\n```.*?^```\n|^```console\n.*?^```\n|^!\[[^\n]*\n|<!--.*?-->\n",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    first, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: f"## {part}" for part in rest}
    # The title of the page, and the question that it answers, are in the list of topics.
    sections[""] = re.sub(r"^# .*\n+This page answers: (?:.+\n)+", "", first)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(sections[each] for each in wanted)).strip() + "\n"


def written(text: str) -> str:
    """Return the text of a page with its tables as the code knows them now."""
    return _MARKED.sub(lambda mark: f"{mark['name']} -->\n\n{TABLES[mark['name']]().rstrip()}\n\n", text)


def stale() -> dict[Path, str]:
    """Return the files that are not up to date, each with what it should be."""
    wanted = {path: written(path.read_text(encoding="utf-8")) for path in sorted(PAGES.glob("*.md"))}
    explained = {name: markdown.parse(topic(name)) for name in pages.TOPICS}
    wanted |= manual.pages(explained)
    wanted[pages.SHIPPED] = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in explained.items())
    wanted[Path(layout.SHIPPED)] = "".join(
        f"{json.dumps(page._asdict(), ensure_ascii=False)}\n" for page in help_pages.build_all(root)
    )
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text}


def main(words: list[str]) -> int:
    """Write the pages, or only name those that are stale."""
    found = stale()
    for path, text in found.items():
        sys.stdout.write(f"{path.name}\n")
        if "--check" not in words:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(bool(found) and "--check" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
