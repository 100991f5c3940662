"""Whether an op was applied: what can be known of it later."""

import pytest

from azguard.errors import NotFound
from azguard.requests.lineage import Lineage
from azguard.updates.doubt import find_status
from tests.support.fake_resource import FakeResource, Fault, Store, forever
from tests.support.update_case import OP, OTHER, Case, others_update, stored


def asked(store: Store) -> str:
    return find_status(FakeResource(store, forever([Fault.NONE])), OP, store.clock.deadline()).outcome


def test_an_op_in_the_lineage_is_committed() -> None:
    store = stored()
    Case(store).end()
    others_update(store)()
    assert asked(store) == "committed"


def test_an_op_that_is_not_in_the_whole_history_is_not_committed() -> None:
    store = Store()
    store.put(None, b"1", OTHER, str(Lineage().after(OTHER, None)), None)
    assert asked(store) == "not_committed"


def test_an_op_is_unknown_where_the_history_has_no_beginning() -> None:
    assert asked(stored()) == "unknown"


def test_an_op_is_found_among_the_kept_versions() -> None:
    store = stored(keeps_versions=True)
    Case(store).end()
    store.foreign_write()
    assert asked(store) == "committed"
    store.delete()
    assert asked(store) == "committed"


def test_of_an_op_on_what_is_not_there_nothing_is_claimed() -> None:
    with pytest.raises(NotFound) as caught:
        asked(Store())
    assert caught.value.http_status == 404
