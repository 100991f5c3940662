"""One resource and the account it is in: what every operation of the core takes."""

from dataclasses import dataclass

from azguard.accounts.account import Account
from azguard.address import Address, Kind


@dataclass(frozen=True, slots=True)
class Target:
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
