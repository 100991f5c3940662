"""One resource and the account it is in: what every operation of the core takes."""

from typing import NamedTuple

from azguard.accounts.account import Account
from azguard.address import Address, Kind


class Target(NamedTuple):
    """A resource and the account it is in: what every operation of the core takes."""

    account: Account
    address: Address

    @property
    def kind(self) -> Kind:
        """Return what the address names."""
        return self.address.kind

    @property
    def endpoint(self) -> str:
        """Return the endpoint of its service."""
        return self.account.endpoint(self.kind.service)

    def __str__(self) -> str:
        return self.address.short
