"""Leases that are recorded nowhere."""

from typing import Any

from azguard.cache.records import HeldLease
from azguard.leases.recorded import LeaseRecords


class NoRecords(LeaseRecords):
    """Takes the place of the records of leases."""

    def __init__(self) -> None:
        """Open no cache."""

    def find_held(self, _target: Any) -> HeldLease | None:
        """Know of none."""

    def add(self, _target: Any, _lease_id: str, _seconds: int | None, *, has_reason: bool = False) -> None:
        """Record nothing."""

    def confirm(self, _target: Any, _lease_id: str, _since: Any = None) -> None:
        """Record nothing."""

    def remove(self, _target: Any, _lease_id: str) -> None:
        """Record nothing."""

    def give_up(self, _target: Any, _lease_id: str, _seconds: int | None, *, is_told: bool = True) -> None:
        """Record nothing."""

    def find_given_up(self, _target: Any) -> list[str]:
        """Know of none."""
        return []

    def note_left(self, _target: Any) -> None:
        """Tell nothing."""

    def record_move(self, _target: Any, _moved: Any) -> None:
        """Record nothing."""

    def record_creation(self, _target: Any, _made: Any) -> None:
        """Record nothing."""
