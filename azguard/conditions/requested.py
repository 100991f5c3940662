"""The conditions that a caller names, as text."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from azguard.conditions.operations import Condition


@dataclass(frozen=True)
class RequestedConditions:
    """The conditions as the caller gives them; None is not given."""

    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: str | None = None
    if_unmodified_since: str | None = None
    if_tags: str | None = None
    source_if_match: str | None = None
    source_if_none_match: str | None = None
    source_if_modified_since: str | None = None
    source_if_unmodified_since: str | None = None
    source_if_tags: str | None = None
    append_position: str | None = None
    max_size: str | None = None
    if_sequence_number_le: str | None = None
    if_sequence_number_lt: str | None = None
    if_sequence_number_eq: str | None = None
    etag: str | None = None
    lease_id: str | None = None
    fence: str | None = None
    last_writer_wins: bool = False
    allow_race: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "RequestedConditions":
        """Return the conditions among named arguments, such as the options of a command line."""
        given: dict[str, Any] = {each.name: options.get(each.name) for each in fields(cls)}
        given |= {name: bool(given[name]) for name in ("last_writer_wins", "allow_race")}
        return cls(**given)

    @cached_property
    def values(self) -> Mapping[Condition, str]:
        """Return the values of the conditions that the service evaluates, as far as they are given."""
        every = ((condition, getattr(self, condition.argument)) for condition in Condition)
        return {condition: value for condition, value in every if value is not None}


#: What a create-only write means.
CREATE_ONLY = RequestedConditions(if_none_match="*")
