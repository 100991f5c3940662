"""Shares, directories and files in the matrix: what is there."""

from azure.core.exceptions import ResourceNotFoundError

from azguard.accounts.account import Account
from azguard.address import Address, Kind
from tests.support import sdk_clients


def content(direct: Account, name: str) -> bytes | None:
    """Return the content of the file ``f`` of a share, nothing for a share or a directory; None if it is gone."""
    share, _, path = name.partition("/")
    client = sdk_clients.share(direct, Address(Kind.SHARE, (share,)))
    try:
        if not path:
            client.get_share_properties()
            return b""
        if path == "d":
            client.get_directory_client(path).get_directory_properties()
            return b""
        found: bytes = client.get_file_client(path).download_file().readall()
    except ResourceNotFoundError:
        return None
    return found
