"""The commands, by name: their summaries, and their files under ``commands``."""

from collections.abc import Mapping
from typing import NamedTuple

ROOT = "azguard"


class CommandEntry(NamedTuple):
    """One line of ``azguard --help``, and where its commands are."""

    summary: str
    #: Its file, where that has another name.
    file: str | None = None
    #: Of a noun with a folder: the files in it, and the commands of each, in the order of its help.
    files: tuple[tuple[str, str], ...] = ()


# In the order of --help.
COMMANDS = {
    "safe-update": CommandEntry("Read, change and write back, exactly once.", "safe_update.update"),
    "edit": CommandEntry("Change a blob or an entity in your editor, exactly once.", "safe_update.update"),
    "blob": CommandEntry(
        "Blobs: get, put, show, exists, list, delete, copy, snapshot, restore, metadata, tags, tier.",
        files=(
            ("content", "get, put"),
            ("listing", "show, exists, list"),
            ("content", "delete"),
            ("copies", "copy, abort-copy, snapshot, restore, undelete"),
            ("append", "append, append seal"),
            ("listing", "wait"),
            ("properties", "metadata, tags, set-properties, tier, legal-hold, immutability"),
            ("pages", "page"),
            ("blocks", "block"),
        ),
    ),
    "container": CommandEntry("Containers: create, show, exists, list, delete, undelete, metadata, acl."),
    "table": CommandEntry("Tables: create, exists, list, delete, and their access policies."),
    "entity": CommandEntry(
        "Entities: get, query, insert, replace, merge, upsert, delete.",
        files=(("reads", "get, query"), ("writes", "insert, replace, merge, upsert, delete, transaction")),
    ),
    "queue": CommandEntry(
        "Queues: create, show, exists, list, delete, work, move, poison, metadata, acl.",
        files=(
            ("queues", "create, show, exists, list, delete"),
            ("work", "work"),
            ("queues", "move, poison, metadata, acl"),
        ),
    ),
    "message": CommandEntry("Messages of queues: put, get, peek, update, delete, clear."),
    "share": CommandEntry(
        "File shares: create, show, exists, list, delete, undelete, snapshot, stats, quota, metadata, acl."
    ),
    "dir": CommandEntry("Directories: create, show, exists, list, delete, rename, properties, metadata."),
    "file": CommandEntry(
        "Files: get, put, show, list, delete, prune, copy, rename, resize, properties, permission, metadata, "
        "range, handle, lock.",
        files=(
            ("content", "get, put"),
            ("tree", "show, exists, list, delete, prune"),
            ("copies", "copy, abort-copy, rename"),
            ("tree", "resize, properties, permission, metadata"),
            ("content", "range"),
            ("handles", "handle, lock"),
        ),
    ),
    "lease": CommandEntry("Leases: acquire, renew, release, break, show, list, wait."),
    "lock": CommandEntry(
        "Hold a lock for a command or for many steps. See and break locks.",
        files=(("run", "run"), ("hold", "hold, check, release"), ("look", "log, show, list, break")),
    ),
    "batch": CommandEntry("Run many command lines in one process.", "batch.run"),
    "doctor": CommandEntry("Check whether all that azguard promises holds on this machine and this account."),
    "status": CommandEntry("Compare what you read with what the service has now."),
    "cache": CommandEntry("The ETags this machine remembers."),
    "profile": CommandEntry("Named accounts in the configuration file."),
    "emulator": CommandEntry("A local Azurite to try things on."),
    "demo": CommandEntry("Watch updates get lost, doubled, and applied exactly once."),
    "help": CommandEntry("The help of a command, or of a topic.", "about"),
    "version": CommandEntry("The version of azguard.", "about"),
    "completion": CommandEntry("The script with which your shell completes command lines.", "about"),
}


def find_module(name: str) -> str:
    """Return the module of a command or of a noun that has one file."""
    return COMMANDS[name].file or name.replace("-", "_")


def list_modules(noun: str) -> Mapping[str, str]:
    """Return the modules of a noun that has a folder, by the names of their commands."""
    rows = COMMANDS[noun].files
    return {name: f"{find_module(noun)}.{file}" for file, names in rows for name in names.split(", ")}
