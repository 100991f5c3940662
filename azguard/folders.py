"""Where azguard keeps things on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Folders(NamedTuple):
    """The user's cache and configuration folders; nothing is created until it is written to."""

    cache: Path
    config: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Folders":
        """Return the folders: ``AZGUARD_CACHE_DIR`` and ``AZGUARD_CONFIG_DIR``, else the platform's own.

        They are absolute: processes that azguard starts run in other folders.
        """
        cache, config = environ.get("AZGUARD_CACHE_DIR"), environ.get("AZGUARD_CONFIG_DIR")
        if not cache or not config:
            import platformdirs

            cache = cache or platformdirs.user_cache_dir("azguard", appauthor=False)
            config = config or platformdirs.user_config_dir("azguard", appauthor=False)
        return cls(Path(cache).absolute(), Path(config).absolute())

    @property
    def emulator(self) -> Path:
        """Return the folder of the emulator's state file, log and installation."""
        return self.cache / "emulator"

    @property
    def queues(self) -> Path:
        """Return the folder of the host-local queues of writers."""
        return self.cache / "queues"

    @property
    def holds(self) -> Path:
        """Return the folder of the locks that are held beyond one command."""
        return self.cache / "holds"

    @property
    def runs(self) -> Path:
        """Return the folder of the runs of Terraform under way."""
        return self.cache / "runs"

    @property
    def process_leases(self) -> Path:
        """Return the folder of the leases without a term that end with their processes."""
        return self.cache / "process-leases"

    @property
    def process_files(self) -> Path:
        """Return the folder of the temporary files that end with their processes."""
        return self.cache / "process-files"

    @property
    def attempts(self) -> Path:
        """Return the folder of writes under way, for the next run with the same key."""
        return self.cache / "attempts"

    @property
    def kept(self) -> Path:
        """Return the folder of work kept when an update had to give up."""
        return self.cache / "kept"

    @property
    def profiles(self) -> Path:
        """Return the file of profiles."""
        return self.config / "config.toml"
