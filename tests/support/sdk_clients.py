"""The SDK's clients of tables and queues, as another program uses them; azguard sends these operations itself."""

from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from azguard.accounts.account import Account
from azguard.address import Address
from azguard.wire import sdk_transport


def table(account: Account, address: Address) -> TableClient:
    """Return the client of one table."""
    return TableClient(account.endpoint("table"), address.container, **_settings(account))


def table_service(account: Account) -> TableServiceClient:
    """Return the client of the whole table service."""
    return TableServiceClient(account.endpoint("table"), **_settings(account))


def queue(account: Account, address: Address) -> QueueClient:
    """Return the client of one queue; it encodes no message."""
    return QueueClient(account.endpoint("queue"), queue_name=address.container, **_settings(account))


def queue_service(account: Account) -> QueueServiceClient:
    """Return the client of the whole queue service."""
    return QueueServiceClient(account.endpoint("queue"), **_settings(account))


def _settings(account: Account) -> dict[str, Any]:
    return {
        "credential": AzureNamedKeyCredential(account.name, account.secret or ""),
        "transport": sdk_transport.make_transport(account),
        "retry_total": 0,
    }
