"""The identity of an update: a fresh op id, or the one that a key of the caller's stands for."""

from azguard.accounts import endpoints
from azguard.accounts.target import Target
from azguard.errors import UsageError
from azguard.requests.lineage import fresh_op, is_op, op_of_key

#: What an op id of azguard's own begins with where people see it; a key of theirs does not.
RAW_OP = "op:"


def choose_op(target: Target, key: str | None) -> str:
    """Return the op id of an update: a fresh one, or that of the caller's key for this resource.

    Raises:
        UsageError: the key looks like an id of ours and is none.
    """
    if key is None:
        return fresh_op()
    if not key.startswith(RAW_OP):
        return op_of_key(key, endpoints.plain(target.endpoint), str(target.address.folded))
    found = key.removeprefix(RAW_OP)
    if not is_op(found):
        raise UsageError(
            f"{key!r} is not an id that azguard made",
            argument="op_id",
            reason="op_id_malformed",
            values={"prefix": RAW_OP},
        )
    return found
