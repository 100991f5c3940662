"""The topics of ``azguard help TOPIC``: parts of the pages of docs/, which ``python -m docs.generate`` puts here."""

from pathlib import Path

#: Each topic, and what it is about. In the order of the list.
TOPICS = {
    "addresses": "How to name a blob, a container, a table, an entity.",
    "accounts": "How to choose the storage account, and as whom.",
    "options": "The options of all commands: account, output, scope.",
    "conditions": "What guards a write, and how to choose it.",
    "scopes": "How azguard knows what you read last.",
    "updates": "How safe-update works, and what stays as it is.",
    "paths": "How --set, --unset and --increment name a value.",
    "tables": "Entities: their types, their limits, the ledger.",
    "queues": "Queues and messages: receipts, encodings, limits.",
    "worker": "A worker for a queue: the exit protocol, slow commands, how it ends.",
    "once": "How a message has its effect once, although it comes twice.",
    "files": "File shares: what guards a write, and who has a file open.",
    "appends": "How many writers add lines to one log.",
    "copies": "How a blob is copied, and what guards both sides.",
    "snapshots": "How to keep a blob, and put it back.",
    "trees": "How whole folders move: --recursive.",
    "leases": "How to keep other writers out for a while.",
    "locks": "How one job runs at a time.",
    "smb-locks": "How to lock a file that programs use over SMB.",
    "fences": "How the storage refuses a holder that is too late.",
    "output": "Formats, --query, colours, what goes where.",
    "exit-status": "What an exit status tells a script.",
    "environment": "The environment variables.",
    "guarantees": "What azguard promises, and what it does not.",
}
FOLDER = Path(__file__).parent / "topic_pages"


def path(name: str) -> Path:
    """Return the file of a topic."""
    return FOLDER / f"{name}.md"


def render(name: str, width: int) -> str:
    """Return the text of a topic as help shows it."""
    from azguard.cli import markdown

    text = markdown.render(markdown.parse(path(name).read_text(encoding="utf-8")), width)
    return f"{TOPICS[name]}\n\n{text}"
