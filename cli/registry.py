"""The commands, by name: their modules and their summaries."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One line of ``azguard --help``: the module under ``commands``, and what it is for."""

    module: str
    summary: str


ROOT = "azguard"


# In the order of --help.
COMMANDS = {
    "safe-update": Entry("safe_update", "Read, change and write back, retried on conflict, applied exactly once."),
    "blob": Entry("blob", "Blobs: get, put, show, exists, list, delete."),
    "container": Entry("container", "Containers: create, show, exists, list, delete."),
    "table": Entry("table", "Tables: create, list, delete, and their access policies."),
    "entity": Entry("entity", "Entities: get, query, insert, replace, merge, upsert, delete, transaction."),
    "lease": Entry("lease", "Leases: acquire, renew, change, release, break, show, list, wait."),
    "lock": Entry("lock", "Run a command while holding a lock, and see or break locks."),
    "status": Entry("status", "Ask which of the things read here changed since."),
    "cache": Entry("cache", "The ETags this machine remembers."),
    "profile": Entry("profile", "Named accounts in the configuration file."),
    "emulator": Entry("emulator", "A local Azurite to try things on."),
    "demo": Entry("demo", "Watch updates get lost, doubled, and applied exactly once."),
    "help": Entry("help", "The help of a command."),
    "version": Entry("version", "The version of azguard."),
    "completion": Entry("completion", "The script by which your shell completes azguard's command lines."),
}
