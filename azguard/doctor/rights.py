"""Checks of rights: may this login do what a feature of azguard needs? Operations are tried on what is not there."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from azguard.doctor.checks import Check, CheckFinding, holds, not_possible
from azguard.doctor.plays import PLAYS
from azguard.doctor.stage import ROOMS, CheckStage, Reaction
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Write

PART = "rights"


class Feature(NamedTuple):
    """What azguard does, and the operations that this takes."""

    name: str
    operations: tuple[str, ...]

    @property
    def service(self) -> str:
        return PLAYS[self.operations[0]].kind.service


_FEATURES = (
    Feature("read blobs", ("blob.get", "blob.get_properties")),
    Feature("list blobs", ("container.list_blobs",)),
    Feature(
        "write blobs, safe-update",
        ("blob.put_block_blob", "blob.put_block", "blob.put_block_list", "blob.set_metadata", "blob.get"),
    ),
    Feature("append to blobs", ("blob.append_block", "blob.get_properties")),
    Feature("delete blobs", ("blob.delete",)),
    Feature(
        "locks: lock run, lease",
        ("blob.lease_acquire", "blob.lease_renew", "blob.lease_release", "blob.set_metadata", "blob.get_properties"),
    ),
    Feature("fences", ("blob.set_tags", "blob.get_tags")),
    Feature("snapshots", ("blob.snapshot",)),
    Feature("read entities", ("table.entity_get", "table.entity_query")),
    Feature(
        "write entities, safe-update",
        ("table.entity_insert", "table.entity_update", "table.entity_merge", "table.entity_delete", "table.entity_get"),
    ),
    Feature("put messages", ("queue.put_message",)),
    Feature("queue work", ("queue.get_messages", "queue.update_message", "queue.delete_message")),
    Feature("read files", ("file.get", "file.get_properties", "directory.list")),
    Feature(
        "write files, safe-update",
        ("file.create", "file.put_range", "file.set_metadata", "file.rename", "file.lease_acquire", "file.delete"),
    ),
)


def list_checks(services: tuple[str, ...]) -> Iterator[Check]:
    """Yield a check for each feature. Most operations were tried before, by other checks."""
    for feature in _FEATURES:
        if feature.service in services:
            yield Check(PART, feature.name, partial(check_rights, feature), feature.service, 1)


def check_rights(feature: Feature, stage: CheckStage) -> CheckFinding:
    """Try the operations that a feature takes; what they are for is not there, so that nothing is changed."""
    for name in feature.operations:
        found = stage.tried.get(name) or _try(name, stage)
        if found.is_denied:
            return not_possible(found.error.message if found.error is not None else str(found))
        if found.is_unknown:
            return not_possible(f"{name.replace('.', ' ').replace('_', ' ')}: {found}")
    return holds()


def _try(name: str, stage: CheckStage) -> Reaction:
    operation, play = ALL[name], PLAYS[name]
    is_in_room = play.kind in ROOMS.values()
    target = stage.rooms[play.kind.service] if is_in_room else stage.name(play.kind)
    if operation.write in (Write.PUTS, Write.CREATES):
        stage.note_made(target)
    return stage.send(operation, target, **play.arguments(stage, target))
