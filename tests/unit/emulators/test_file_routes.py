"""The Files emulator serves each operation on shares, directories and files that azguard sends."""

from azguard.emulators.files.server import OPERATIONS
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Operation

ROWS = [row for row in ALL.values() if row.noun in ("share", "directory", "file")]
# What programs other than azguard ask the emulator for.
FOR_OTHERS = {
    ("GET", "service", "properties"),
    ("PUT", "service", "properties"),
    ("HEAD", "share", ""),
    ("HEAD", "directory", ""),
    *((method, kind, "metadata") for method in ("GET", "HEAD") for kind in ("share", "directory", "file")),
}


def find_routes(rows: list[Operation]) -> dict[str, tuple[str, str, str]]:
    """Return the method, the kind of resource and the ``comp`` by which each operation is asked for."""
    return {
        row.name: (
            row.http.method,
            "service" if row.http.path == "" else row.noun,
            dict(row.http.query).get("comp", ""),
        )
        for row in rows
    }


def test_the_emulator_serves_every_operation_that_is_sent() -> None:
    routes = find_routes(ROWS)
    assert {name: route for name, route in routes.items() if route not in OPERATIONS} == {}


def test_what_else_it_serves_is_for_other_programs() -> None:
    assert set(OPERATIONS) - set(find_routes(ROWS).values()) == FOR_OTHERS
