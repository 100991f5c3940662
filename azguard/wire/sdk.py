"""The SDK's own client of a container, as ``az`` and scripts have it: the demonstration compares azguard with it.

It is here because no module outside the wire imports a client of the SDK.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient


def open_container(endpoint: str, name: str, key: str, retry_wait_seconds: float) -> "ContainerClient":
    """Return the client of one container, with its retries on."""
    from azure.storage.blob import ContainerClient, LinearRetry

    policy = LinearRetry(backoff=retry_wait_seconds, random_jitter_range=0)  # type: ignore[arg-type]  # int in name only
    # No HTTP_PROXY leads to 127.0.0.1.
    return ContainerClient(endpoint, name, credential=key, retry_policy=policy, use_env_settings=False)
