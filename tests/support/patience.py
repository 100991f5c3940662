"""How long a command tries of its own accord: longer before an emulator of the tests than for people."""

from collections.abc import Mapping

from azguard.accounts.endpoints import EMULATOR_NAME
from azguard.cli import completers, context
from azguard.commands.blob import append
from azguard.commands.safe_update import plans
from azguard.locks import log
from azguard.requests.deadline import PATIENCE_SECONDS

_PATIENT = (append, context, plans)
# A busy machine is no fault.
_LONG_SECONDS = 20.0
# What tries in vain to write the history of a lock is waited for.
_HISTORY_SECONDS = 8.0


def choose(environ: Mapping[str, str]) -> None:
    """Be patient in this process where these variables name the emulator's account; where nothing answers, do not."""
    is_emulator = EMULATOR_NAME in environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    seconds = _LONG_SECONDS if is_emulator else PATIENCE_SECONDS
    for each in _PATIENT:
        vars(each)["PATIENCE_SECONDS"] = seconds
    if is_emulator:
        vars(completers)["SECONDS"] = _LONG_SECONDS
        vars(log)["_SECONDS"] = _HISTORY_SECONDS
