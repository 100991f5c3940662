"""Leases on every kind of resource that has them.

``actions``   acquire, renew, change, release, break
``kinds``     the kinds of resources that have leases: one row for each
``file_lease``  the SDK's client of a lease on a share or a file
``state``     the state of a lease
``outcome``   find the outcome of an operation whose answer was lost
``owners``    the record that a holder leaves
``foreign``   what others wrote, made safe to show
``other_holders``  WebJobs hosts and virtual machines, by the metadata that they leave
``conventions``  how other programs say who holds what: a class for each
``process_leases``  leases that end with their process
``holding``   something that is held, as a listing shows it
``holdings``  who holds what in an account
``share_holdings``  the leases on the shares of an account
``watching``  what changes between two such listings
``owner_records``  the record written under the lease
``facts``     one lease, its holder and its age, as commands show it
``age``       how long a lease is held, by the service's clock
``kept``      acquire, renew, change, release with the record of the lease on this machine
``guard``     a lease held between a comparison and a write
``held``      which of the remembered leases are still held
``breaking``  a break as an operator does it
``releasing``  a release that tells whether the lease was held until then
``ci_runs``   ask whether the CI run in a record is over
``waiting``   waiting until a lease is free
``listing``   the leases on the blobs of a container
"""
