"""A bare NAME given to the commands of locks is a blob in the container of locks."""

from tests.support.cli_world import CliWorld


def test_every_command_of_locks_means_the_same_blob_by_a_bare_name(cli: CliWorld) -> None:
    container = cli.container()
    environ = {"AZGUARD_LOCK_CONTAINER": container}
    ran = cli.call("lock", "run", "deploy-prod", "--", "sh", "-c", 'printf %s "$AZGUARD_LOCK"', env=environ)
    shown = cli.call("lock", "show", "deploy-prod", env=environ)
    listed = cli.call("lock", "list", env=environ)
    inside = cli.call("lock", "run", f"{container}/deploy-prod", "--", "true", env=environ)
    address = f"blob:{container}/deploy-prod"
    assert (ran.code, shown.json["address"], [each["address"] for each in listed.json]) == (0, address, [address])
    assert inside.code == 0
