"""``lock run``: leases around a command, so that it runs on one machine at a time.

azguard itself acquires and renews the leases. The command runs under a second, small process, the guardian, which ends
it when azguard says so, when azguard is gone, or when the last renewal it heard of is about to run out.
"""
