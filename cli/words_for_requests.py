"""The words of the command line for what the service refused or did not answer: see ``hint_table``."""

from collections.abc import Mapping

from azguard.accounts import endpoints
from azguard.cli.words import Words

_RENEW = "make a new one, and give it by --sas-token @FILE"


def _look_first(facts: Mapping[str, object]) -> str:
    """Return what to type to see whether a write was applied."""
    kind, target = facts["noun"], facts["target"]
    if kind == "table":
        return f"look before you try again: azguard table list --prefix {target}"
    verb = "get" if kind == "entity" else "show"
    return f"look before you try again: azguard {kind} {verb} {target}"


def _find_key(facts: Mapping[str, object]) -> str:
    """Return where the key of the account stands; that of emulators is well known."""
    if facts["account"] == endpoints.EMULATOR_NAME:
        return "azguard emulator env prints the key of the emulator"
    return f"az storage account keys list --account-name {facts['account']}, and give it by --account-key @FILE"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "busy": "wait a moment, then try again",
    "clock_is_off": "set the clock, for example by sudo timedatectl set-ntp true",
    "container_not_found": "check the name: azguard container list; to create it: azguard container create {container}",
    "create_unknown": "run it again: with --if-exists skip that is safe",
    "disabled": "ask who administers the account",
    "emulator_too_old": (
        "this emulator is older than the SDK: use azguard emulator start, or azurite --skipApiVersionCheck"
    ),
    "entity_without_key": "an entity has a PartitionKey and a RowKey, both strings",
    "has_snapshots": "add --delete-snapshots include, or only",
    "infinite_lease_required": "acquire it with --infinite: what it protects may take longer than any term",
    "kept_out": "its firewall may not know this network: see Networking of the account in the portal",
    "key_of_another_account": _find_key,
    "key_too_long": "make the partition or row key shorter",
    "keys_not_accepted": "log in: --auth-mode login",
    "lease_breaking": "release the lease, or finish under the id that it has",
    "lease_broken": "stop the work that it protects and release it; then acquire a new one",
    "lease_broken_already": "see its state: azguard lease show {address}",
    "lease_id_missing": "name the lease with --lease-id, or wait until its holder releases it",
    "lease_not_held": "it was released or lost, or the id is wrong: azguard lease show {address}",
    "lease_over": "it expired or was broken: read again before you write; if you gave --lease-id, leave it out",
    "lease_refuses": "see its state: azguard lease show {address}",
    "leased_by_another": "wait until it is free: azguard lease wait {address}",
    "leased_under_another_id": "check the id, or see who holds it: azguard lease show {address}",
    "login_ended": "log in again: az login",
    "login_not_accepted": "log in again: az login, in the account's own directory: az login --tenant TENANT",
    "metadata_full": (
        "remove an entry, or keep large values in a blob; where --no-lineage is an option, azguard adds no entry "
        "with it"
    ),
    "no_lease": "take one: azguard lease acquire {address}",
    "not_allowed": "check the key, the SAS or the login",
    "answer_altered": "a proxy or a cache stands in between: go past it (NO_PROXY=HOST), or name the real endpoint",
    "answer_unreadable": "a proxy or a firewall may stand in between; --debug shows what could not be read",
    "listing_never_ends": "the server there is not Azure Storage, or a proxy stands in between: check the endpoint",
    "redirected": "check the endpoint; a proxy or a login page may stand in between",
    "not_azure_storage": "a proxy, a firewall or a login page stands in between, or the endpoint is wrong",
    "not_public": "use --auth-mode login, --account-key or --sas-token",
    "outcome_unknown": _look_first,
    "property_given_twice": "give each one value",
    "property_name_malformed": "use letters, digits and underscores; the first is no digit",
    "property_name_too_long": "make it shorter",
    "queue_being_deleted": "wait 30 seconds or more, then try again",
    "queue_not_found": "check the name: azguard queue list; to create it: azguard queue create {container}",
    "refusal_unclear": "azguard does not know this code: see the error codes in the REST reference of Azure Storage",
    "role_missing": "assign one, such as {role}; it takes effect after up to ten minutes",
    "sas_allows_too_little": (
        "make one that allows more: to overwrite needs write (w), and create (c) does not include it"
    ),
    "sas_does_not_fit": (f"it is of another resource, its key was changed since, or it was not copied whole; {_RENEW}"),
    "sas_for_https": "write the endpoint with https",
    "sas_for_other_resource_types": "make one with srt={types}",
    "sas_not_yet_valid": "wait until then, or make one that has no st",
    "sas_of_account_needed": "make an account SAS with ss={service} and srt=sco, or use a login or a key",
    "sas_of_one_file": "take a SAS of the share (sr=s); azguard file range put writes into the file itself",
    "sas_policy_refuses": f"check that the policy exists, has not ended and allows this; else {_RENEW}",
    "sas_unsuitable": _RENEW,
    "sas_without_permission": "make one whose sp has {permissions} too, and give it by --sas-token @FILE",
    "service_asks_to_wait": "try again then, or let azguard wait: a longer --timeout",
    "service_unavailable": "try again, or allow more time: --timeout 60s",
    "snapshot_is_leased": (
        "see its snapshots: azguard share list --include-snapshots --prefix {target}; "
        "then release that lease, or break it"
    ),
    "table_being_deleted": "wait 40 seconds or more, then try again",
    "table_input": "check the filter: azguard entity query --help shows one",
    "table_not_found": "check the name: azguard table list; to create it: azguard table create {container}",
    "too_many_properties": "put some of them into an entity of their own, or several into one as JSON",
    "value_of_other_type": 'check each "NAME@odata.type"',
    "value_out_of_range": "DateTimes begin with the year 1601",
    "value_too_large": "keep large values in a blob, and its address here",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
