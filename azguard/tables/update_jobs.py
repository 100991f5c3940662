"""Updates of entities, each a job of a pool, and how they end."""

from dataclasses import dataclass

from azguard.errors import NotFound, TransformFailed
from azguard.requests.deadline import Deadline
from azguard.requests.pool import Done, conclude
from azguard.tables.updating import VersionedEntity
from azguard.updates import update as updates
from azguard.updates.plan import UpdateHooks, UpdatePlan

UPDATED = "updated"
UNCHANGED = "unchanged"
APPLIED_BEFORE = "applied_before"
SKIPPED = "skipped"


class NoLongerMatches(TransformFailed):
    """Another writer changed the entity, so that it is not to be updated any more."""


@dataclass(frozen=True)
class Update:
    """One entity's update, ready to run."""

    resource: VersionedEntity
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks

    def run(self) -> Done:
        """Make the update and return how it ended."""
        address = str(self.resource.target.address)
        return conclude(address, lambda: self._run(address))

    def _run(self, address: str) -> Done:
        try:
            ended = updates.update(self.resource, self.plan, self.deadline, self.tools)
        except NoLongerMatches:
            return Done(address, SKIPPED)
        except NotFound as error:
            if error.service_code is not None:
                raise
            return Done(address, SKIPPED)  # It was deleted meanwhile.
        return Done(address, UPDATED if ended.outcome == "committed" else ended.outcome, result=ended.created_keys)
