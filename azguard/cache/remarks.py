"""What the cache keeps of a version beside its columns: behind the command that read or wrote it."""

from datetime import datetime

from azguard.conditions.seen import BLOCK_BLOB
from azguard.times import iso

# A command that delivered only a part is recorded with these options, as a user would type it.
SELECTING = " --select "
_OF_TYPE = " --blob-type "
_HIDDEN_UNTIL = ", hidden until "


def add_selection(command: str, names: str | None) -> str:
    """Return how a command is recorded that delivered only these properties; None is all."""
    return command if names is None else f"{command}{SELECTING}{names}"


def find_selection(command: str) -> str | None:
    """Return the names of the properties that a recorded command delivered, None if it was all."""
    _, found, names = f"{command} ".partition(SELECTING)
    return names.strip() if found else None


def add_blob_type(command: str, blob_type: str | None) -> str:
    """Return how a command is recorded that delivered a blob of this type; a block blob's is left out."""
    return command if blob_type in (None, BLOCK_BLOB) else f"{command}{_OF_TYPE}{blob_type}"


def find_command(command: str) -> str:
    """Return a recorded command alone, of one that delivered a whole blob or file."""
    return command.partition(_OF_TYPE)[0]


def find_blob_type(command: str) -> str:
    """Return the type of the blob that a recorded command delivered."""
    return command.partition(_OF_TYPE)[2] or BLOCK_BLOB


def add_hidden_until(command: str, moment: datetime | None) -> str:
    """Return how a command is recorded that got a receipt of a message, which is hidden until this moment."""
    return command if moment is None else f"{command}{_HIDDEN_UNTIL}{iso(moment)}"


def find_hidden_until(command: str) -> datetime | None:
    """Return until when a message is hidden of which a recorded command got a receipt; None if that is not known."""
    try:
        found = datetime.fromisoformat(command.partition(_HIDDEN_UNTIL)[2])
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
