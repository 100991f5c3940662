"""The built-in edits of an entity.

An entity is flat, so a path is the name of a property, or of its annotation. Whether a value fits its type is checked
when all edits are done, and so is that the keys stay.
"""

from collections.abc import Sequence
from typing import Any

from azguard.documents import edits
from azguard.documents.edits import Edit, Increment, Set, Unset
from azguard.documents.paths import Path, Step
from azguard.errors import TransformFailed, UsageError
from azguard.requests.lineage import KEY
from azguard.tables import edm
from azguard.tables.edm import ANNOTATION, Entity
from azguard.tables.entity_json import parse

_WHOLE = (edm.INT32, edm.INT64)


def apply(chosen: Sequence[Edit], content: bytes) -> bytes:
    """Return the entity with the edits applied in order.

    Raises:
        TransformFailed: an edit does not fit.
    """
    after = content
    for edit in chosen:
        after = _apply_one(edit, after)
    _require_kept_types(chosen, parse(content), parse(after))
    return after


def property_path(path: Path) -> Path:
    """Return a path of one step. ``count@odata.type`` is one name, though its dot looks like two.

    Raises:
        UsageError: it leads to no property.
    """
    whole = _find_property(path)
    if whole is None or whole.removesuffix(ANNOTATION) in ("", KEY):
        raise UsageError(
            f"{path.text!r} is not a property: an entity is flat",
            reason="property_path_malformed",
        )
    return Path(path.text, (Step(whole),))


def _find_property(path: Path) -> str | None:
    """Return the name of the property, or of its annotation, that a path consists of; None if it is neither."""
    if len(path.steps) == 1:
        return path.steps[0].name
    return path.text if path.text.endswith(ANNOTATION) else None


def _apply_one(edit: Edit, content: bytes) -> bytes:
    if isinstance(edit, Increment):
        edit = _resolve_increment(edit, parse(content))
    after = edits.apply([edit], content)
    if isinstance(edit, Unset):
        after = edits.apply([edit._replace(path=Path("", (Step(f"{edit.path.steps[0].name}{ANNOTATION}"),)))], after)
    return after


def _require_kept_types(chosen: Sequence[Edit], before: Entity, after: Entity) -> None:
    """Refuse a value of another type where no annotation would: it would give the property that type.

    A property that is unset has none to keep.
    """
    free = {edit.path.steps[0].name for edit in chosen if isinstance(edit, Unset)}
    for name in before:
        old, new = (_find_implied_type(entity, name) for entity in (before, after))
        if old is not None and new not in (None, old) and name not in free:
            failed = TransformFailed(f"{name} is an {old}, and its new value an {new}", values={"path": name})
            if old == edm.STRING:
                raise failed.but(reason="property_is_string")
            raise failed.but(reason="property_of_other_type")


def _find_implied_type(entity: Entity, name: str) -> str | None:
    """Return the type of a property that has no annotation; None if it has one, or is not there."""
    if entity.get(name) is None or name + ANNOTATION in entity:
        return None
    try:
        return edm.kind_of(entity, name)
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None


def _resolve_increment(edit: Increment, entity: Entity) -> Increment | Set:
    """Return an increment of an integer as the sum to set; any other as it is. Edm.Int64 is a string in JSON."""
    name = edit.path.steps[0].name or ""
    kind, value = _map_properties(entity).get(name, ("", None))
    if kind not in _WHOLE or value is None:
        return edit  # A double is a number in JSON too, and anything else is refused by its name.
    if not isinstance(edit.by, int):
        raise TransformFailed(
            f"{name} is an {kind}, and {edit.by.text} is no whole number",
            reason="increment_of_whole_number",
            values={"path": f"{name}{ANNOTATION}", "type": edm.DOUBLE},
        )
    total = int(value) + edit.by
    return Set(edit.path, str(total) if kind == edm.INT64 else total)


def _map_properties(entity: Entity) -> dict[str, tuple[str, Any]]:
    try:
        return {name: (kind, value) for name, kind, value in edm.iterate_properties(entity)}
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None
