"""When a service counts as gone: so many files in a row did not reach it."""

from azguard.errors import AzguardError, Changed, OutcomeUnknown, Unavailable, UsageError
from azguard.requests.pool import FAILED, UNKNOWN, Done
from azguard.trees.runs import CREATED, UNCHANGED, Outage
from tests.support.cases import cases

LOST = Done("a", FAILED, Unavailable("it does not answer"))
ANSWERED = Done("a", FAILED, Changed("it changed", http_status=412))


def unknown(cause: AzguardError) -> Done:
    """Return the end of a write that was sent, and whose look failed for a reason."""
    error = OutcomeUnknown("it was sent")
    error.__cause__ = cause
    return Done("a", UNKNOWN, error.but(address="a"))


@cases(
    ("ends", "is_certain"),
    [
        ([LOST, LOST], False),
        ([LOST, LOST, LOST], True),
        ([LOST, unknown(Unavailable("no answer")), LOST], True),
        ([LOST, LOST, unknown(Changed("another version")), LOST], True),
        ([LOST, LOST, Done("a", CREATED), LOST, LOST], False),
        ([LOST, LOST, ANSWERED, LOST], False),
        ([LOST, LOST, Done("a", UNCHANGED), Done("a", FAILED, UsageError("cannot be read")), LOST], True),
        ([LOST, LOST, LOST, Done("a", CREATED)], True),
    ],
)
def test_only_files_that_the_service_did_not_answer_in_a_row_prove_that_it_is_gone(
    ends: list[Done], is_certain: bool
) -> None:
    outage = Outage(3)
    for each in ends:
        outage.note(each)
    assert outage.is_certain is is_certain
