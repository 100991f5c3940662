"""The room that a share has still, by its quota.

A disk is counted only when what was written since may have filled the share.
"""

from azguard.emulators.files.disk import Disk
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.records import ShareRecord

_GIB = 1024**3


class Room:
    """The room of all shares."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: How many bytes can be written before a share has to be counted again, by its number and its quota.
        self._left: dict[tuple[int, int], int] = {}

    def take(self, share: ShareRecord, count: int) -> None:
        """Take room for so many bytes that a share has not held yet.

        Raises:
            ServiceError: its quota does not allow them.
        """
        quota = int(share.settings["x-ms-share-quota"]) * _GIB
        left = self._left.get((share.root, quota), 0)
        if left < count:
            left = quota - self._disk.count_written(share.root)
        if left < count:
            raise ServiceError("ShareSizeLimitReached")
        self._left[share.root, quota] = left - count
