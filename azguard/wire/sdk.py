"""The SDK's own client of a container, as ``az`` and scripts have it: the demonstration compares azguard with it.

It is here because no module outside the wire imports a client of the SDK.
"""

from typing import TYPE_CHECKING

from azguard.errors import ConfigError

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient


def check_installed() -> None:
    """Refuse where only azguard itself was installed: it needs no client of the SDK.

    Raises:
        ConfigError: the client is not there.
    """
    try:
        import azure.storage.blob  # noqa: F401
    except ImportError as error:
        message = "the SDK's client, which the demo compares azguard with, is missing"
        raise ConfigError(message, reason="sdk_missing") from error


def open_container(endpoint: str, name: str, key: str, retry_wait_seconds: float) -> "ContainerClient":
    """Return the client of one container, with its retries on."""
    from azure.storage.blob import ContainerClient, LinearRetry

    policy = LinearRetry(backoff=retry_wait_seconds, random_jitter_range=0)  # type: ignore[arg-type]  # int in name only
    # No HTTP_PROXY leads to 127.0.0.1.
    return ContainerClient(endpoint, name, credential=key, retry_policy=policy, use_env_settings=False)
