"""Who holds a lease that neither azguard nor Terraform took, as the metadata beside it say.

WebJobs and Functions: Azure/azure-webjobs-sdk, BlobLeaseDistributedLockManager.cs (``FunctionInstance``).
Disks of virtual machines: https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/storage-resource-deletion-errors
(``MicrosoftAzureCompute_VMName``, ``_DiskName``, ``_DiskType``, ``_ResourceGroupName``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from azguard.leases.foreign import escape
from azguard.leases.owners import HOLDER_CLOCK, INFINITE, PresentLease, find_value

WEBJOBS = "webjobs"
VM_DISK = "vm-disk"
_FUNCTION_INSTANCE = "functioninstance"
_COMPUTE = "microsoftazurecompute_"
_DISK_ENDING = ".vhd"
_TITLES = {WEBJOBS: "the WebJobs host", VM_DISK: "the virtual machine"}


@dataclass(frozen=True)
class OtherHolder:
    """A holder whose record has a name, and no time."""

    #: ``webjobs`` or ``vm-disk``.
    kind: str
    name: str
    why: str | None = None
    since: str | None = None
    clock: str = HOLDER_CLOCK

    def __str__(self) -> str:
        return f"{_TITLES[self.kind]} {self.name}" + (f" ({self.why})" if self.why else "")

    def is_named(self, name: str) -> bool:
        """Return whether a name is this holder's."""
        return name == self.name

    def find_doubt(self, held: PresentLease) -> str | None:
        """Return why the record is not believed to be of the lease that is held; None if it is believed."""
        is_endless = held.duration == INFINITE
        return "that lease had a term, and this one has none" if self.kind == WEBJOBS and is_endless else None


def read(metadata: Mapping[str, str], address: str, *, is_disk: bool) -> OtherHolder | None:
    """Return who holds a lease by such a record, or None where there is none.

    A disk without a record is held by a machine that is known by the name of its file alone.
    """
    if is_disk:
        machine = find_value(metadata, f"{_COMPUTE}vmname") or address.rpartition("/")[2]
        words = [find_value(metadata, f"{_COMPUTE}{name}") for name in ("disktype", "diskname")]
        return OtherHolder(VM_DISK, escape(machine), escape(" ".join(filter(None, words))) or None)
    if instance := find_value(metadata, _FUNCTION_INSTANCE):
        return OtherHolder(WEBJOBS, escape(instance))
    return None


def looks_like_disk(metadata: Mapping[str, str], address: str) -> bool:
    """Return whether a page blob with an infinite lease is the disk of a virtual machine, by its record or its name."""
    return address.lower().endswith(_DISK_ENDING) or any(key.lower().startswith(_COMPUTE) for key in metadata)
