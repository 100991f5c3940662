"""How long a message is kept that is put again."""

from azguard.queues.message_results import Received

_DEFAULT_LIFE_SECONDS = 7 * 86_400
_FOREVER = -1
# The service says of a message that never ends that it ends in this year.
_LAST_YEAR = 9999


def choose_life(message: Received, hidden: int, wanted: int | None) -> int:
    """Return for how many seconds a message is kept: what is wanted, else 7 days, or what was left if that is more.

    ``hidden`` is for how many seconds it was hidden when it was received.
    """
    if wanted is not None:
        return wanted
    shown = message.shown
    if shown.expiration_time.year >= _LAST_YEAR:
        return _FOREVER
    # By the service's clock, which said when the message is visible again.
    left = (shown.expiration_time - shown.time_next_visible).total_seconds() + hidden
    return max(_DEFAULT_LIFE_SECONDS, round(left))
