"""The words for requests, accounts and names: see ``hints``."""

from collections.abc import Mapping

from azguard.accounts import endpoints
from azguard.cli.words.templates import Words

_RENEW = "make a new one, and give it by --sas-token @FILE"
_CA = "if a proxy or a firewall opens TLS here, name its CA certificate: export REQUESTS_CA_BUNDLE=FILE"
_KEYS = "keys may not hold / \\ # ? or the control characters U+0000 to U+001F and U+007F to U+009F"


def _look_first(facts: Mapping[str, object]) -> str:
    """Return the command that shows whether a write was applied."""
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


def _list_below(facts: Mapping[str, object]) -> str:
    prefix = f" --prefix {facts['text']}" if facts["text"] else ""
    return f"the name of a container has no /; to list the blobs in it: azguard blob list {facts['container']}{prefix}"


#: What to type next.
HINTS: Mapping[str, Words] = {
    # Requests.
    "account_being_created": "try again in a minute",
    "api_version": "--debug shows the version that azguard speaks; see the property with the tool that set it",
    "busy": "wait a moment, then try again",
    "clock_is_off": "set the clock, for example by sudo timedatectl set-ntp true",
    "container_being_deleted": "wait 30 seconds or more, or create it with --wait 2m",
    "container_not_found": "check the name: azguard container list; to create it: azguard container create {container}",
    "create_unknown": "run it again: with --if-exists skip that is safe",
    "disabled": "ask who administers the account",
    "emulator_too_old": (
        "this emulator knows an older API version only: use azguard emulator start, or azurite --skipApiVersionCheck"
    ),
    "service_too_old": (
        "an older service, such as an Azure Stack, has to be asked in its version: --api-version 2019-07-07, "
        "which azguard profile set keeps"
    ),
    "entity_without_key": "an entity has a PartitionKey and a RowKey, both strings",
    "has_snapshots": "add --delete-snapshots include, or only",
    "kept_out": "its firewall may not know this network: see Networking of the account in the portal",
    "key_of_another_account": _find_key,
    "key_too_long": "make the partition or row key shorter",
    "key_vault_out_of_reach": "ask who administers the account and its key vault",
    "keys_not_accepted": "log in: --auth-mode login",
    "login_ended": "log in again: az login",
    "login_not_accepted": "log in again: az login, in the account's own directory: az login --tenant TENANT",
    "metadata_full": (
        "remove an entry, or keep large values in a blob; where --no-lineage is an option, azguard adds no entry "
        "with it"
    ),
    "no_public_access": (
        "use a login or a key, and leave --public-access out; "
        "az storage account update --allow-blob-public-access true permits it"
    ),
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
    "queue_being_deleted": "wait 30 seconds or more, or create it with --wait 2m",
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
    "secondary_takes_no_writes": "name the primary endpoint, which keeps its name in a failover",
    "service_unavailable": "try again, or allow more time: --timeout 60s",
    "snapshot_is_leased": (
        "see its snapshots: azguard share list --include snapshots --prefix {target}; "
        "then release that lease, or break it"
    ),
    "table_being_deleted": "wait 40 seconds or more, or create it with --wait 2m",
    "table_input": "check the filter: azguard entity query --help shows one",
    "table_not_found": "check the name: azguard table list; to create it: azguard table create {container}",
    "too_many_properties": "put some of them into an entity of their own, or several into one as JSON",
    "value_of_other_type": 'check each "NAME@odata.type"',
    "value_out_of_range": "DateTimes begin with the year 1601",
    "value_too_large": "keep large values in a blob, and its address here",
    # Accounts.
    "ca_file_missing": "correct the path in REQUESTS_CA_BUNDLE",
    "certificate_not_trusted": _CA,
    "certificate_not_valid_now": "check this machine's clock: date -u",
    "certificate_of_another_host": f"check the endpoint; {_CA}",
    "answer_of_another_request": "a proxy or a gateway mixes up answers: go past it (NO_PROXY=HOST), or try again",
    "answer_too_long": "the server there is not Azure Storage, or a proxy stands in between: check the endpoint",
    "cut_off": "try again",
    "dns_down": "check the network's DNS",
    "emulator_stopped": 'type azguard emulator start, then eval "$(azguard emulator env)"',
    "emulator_without_files": 'type azguard emulator start, then eval "$(azguard emulator env)"; or use a real account',
    "host_unknown": "check the account's name; for another cloud: --endpoint-suffix, such as core.chinacloudapi.cn",
    "network_unclear": "check the network, then try again",
    "no_route": "check the network and the VPN",
    "no_tls_there": "check the port, or write the endpoint with http://",
    "nothing_listens": "check the host and the port of the endpoint",
    "proxy_not_url": "write {variable}=http://HOST:PORT",
    "proxy_refuses": (
        "ask who runs the proxy to allow {host}; if this machine may reach {host} directly: NO_PROXY={host}"
    ),
    "proxy_silent": "check {variable}; if this machine may reach {host} directly: NO_PROXY={host}",
    "proxy_wants_password": "write {variable}=http://USER:PASSWORD@{proxy}",
    "proxy_without_tls": "write {variable}=http://{proxy}",
    "socks_proxy": "install it: pip install pysocks",
    "timed_out": "a firewall may stand in between; or allow more time: --timeout 60s",
    "account_name_malformed": "a name has 3 to 24 lower-case letters and digits",
    "connection_string_cut": (
        "put it in single quotes: the shell takes the ';' between its parts for the end of a command"
    ),
    "connection_string_incomplete": "copy it whole from the portal (Access keys), in single quotes",
    "connection_string_of_other_service": (
        "copy the one under Access keys of the storage account: it begins with DefaultEndpointsProtocol"
    ),
    "connection_string_of_two": "leave one of the two out",
    "emulator_without_endpoint": 'use --emulator, or type: eval "$(azguard emulator env)"',
    "endpoint_has_sas": "leave out the ? and all that follows it, and use --sas-token @FILE",
    "endpoint_missing": "use a connection string that has {title}Endpoint=…, or --{service}-endpoint URL",
    "endpoint_not_url": "write it as https://NAME.blob.core.windows.net",
    "endpoint_of_other_account": "leave one of them out",
    "endpoint_of_other_service": "write .{service}. in it, or give it as that of {other}",
    "endpoint_service_unknown": "set AZURE_STORAGE_BLOB_ENDPOINT or AZURE_STORAGE_TABLE_ENDPOINT instead",
    "job_without_id_token": "the job needs permissions: id-token: write",
    "api_version_unknown": "name the date of a version from {oldest} to {newest}",
    "version_lacks": "leave it out; or name a version from {since} on, if the service has it: --api-version DATE",
    "encryption_key_malformed": "make one: openssl rand -base64 32 > key.txt; then --encryption-key @key.txt",
    "encryption_key_needs_https": "name the endpoint as https://…; over http others can read the key",
    "key_not_base64": "copy the whole key, with the = signs at its end",
    "federated_credential_missing": (
        "check that AZURE_CLIENT_ID has a federated credential for this repository, branch or environment"
    ),
    "no_login": "log in: az login; or use --account-key or --sas-token",
    "no_login_in_github": ("give the job permissions: id-token: write, and set AZURE_CLIENT_ID and AZURE_TENANT_ID"),
    "no_login_in_pipelines": "run it in an AzureCLI@2 task with env: SYSTEM_ACCESSTOKEN: $(System.AccessToken)",
    "service_connection_refused": (
        "check that the service connection uses workload identity federation, and that this pipeline may use it"
    ),
    "login_malformed": (
        "correct or unset the variable that is wrong: AZURE_AUTHORITY_HOST, AZURE_TOKEN_CREDENTIALS, AZURE_CLIENT_…"
    ),
    "login_needs_https": "use --account-key or --sas-token for an emulator",
    "profile_missing": "create it: azguard profile set {name} --account-name NAME --auth-mode login",
    "profile_setting_unknown": "its settings are {known}",
    "config_setting_unknown": 'the file may have: default = "NAME" and [profiles.NAME]',
    "profiles_not_a_table": "write [profiles.NAME]",
    "profiles_not_toml": "correct the file, or move it away",
    "sas_unsigned": "put it in quotes: else the shell ends the command at the first &",
    "suffix_malformed": "write for example core.windows.net or core.chinacloudapi.cn",
    "service_needs_credentials": "use --account-key, --sas-token or --auth-mode login",
    "token_service_silent": "check the network, then try again",
    "token_for_another_service": "the server there may not be Azure Storage: check the endpoint",
    "tenant_named_by_stranger": (
        "log in to the tenant of the account: az login --tenant TENANT; if you trust the endpoint: --trust-endpoint, "
        "which azguard profile set keeps"
    ),
    "url_of_another_account": "add a SAS to the URL, or name that account's credentials",
    # Names.
    "address_empty": "an unset shell variable looks like this; write for example site/config.json",
    "address_incomplete": "write {kind}:{form}",
    "address_kind_in_capitals": "write it in lower-case letters: {kind}:",
    "address_kind_unknown": "the kinds are {kinds}; a blob may go without, as in CONTAINER/NAME",
    "address_without_kind": (
        "write container:{text}, table:{text}, or CONTAINER/{text} for a blob; the kinds are {kinds}"
    ),
    "container_name_has_slash": _list_below,
    "container_name_malformed": (
        "use 3 to 63 lower-case letters, digits and single hyphens; begin and end with a letter or digit"
    ),
    "duration_malformed": "write 90s, 10m, 1h30m or bare seconds",
    "key_has_character": _KEYS,
    "key_has_slash": f"{_KEYS}; in an address, / separates TABLE/PARTITION/ROW",
    "name_ends_with_dot": "take another name",
    "name_has_backslash": "write / instead",
    "path_character": 'paths may not hold " \\ : | < > * ?',
    "path_part_end": "Windows drops it and cannot open the file: choose another name, or put this file alone",
    "sas_behind_address": (
        "--sas-token @FILE, or the whole URL in quotes; if it is part of the name, write a URL with %3F for ?"
    ),
    "snapshot_malformed": (
        "it looks like 2026-11-21T10:00:00.0000000Z; azguard blob list --include snapshots shows those of blobs, "
        "azguard share list --include snapshots those of shares"
    ),
    "table_name_malformed": "use 3 to 63 letters and digits, the first a letter",
    "text_not_utf8": "names are Unicode: write it in UTF-8, or in a URL percent-encoded",
    "time_malformed": "write 2026-11-21T10:00:00Z or Sat, 21 Nov 2026 10:00:00 GMT",
    "url_has_fragment": "in a name, write it as %23",
    "url_names_nothing": "add the container and the name to it",
    "url_not_of_storage": "a storage URL begins with https://",
    "url_without_scheme": "write it whole, such as https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME",
    "url_query_malformed": (
        "quote the URL, so that the shell does not cut it at the first &; in a name, write %3F for ?"
    ),
}


#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    # Names.
    "time_malformed": "{option}: {message}",
}
