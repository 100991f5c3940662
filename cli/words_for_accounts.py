"""The words of the command line for accounts, credentials, profiles and the way to the service: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

_CA = "if a proxy or a firewall opens TLS here, name its CA certificate: export REQUESTS_CA_BUNDLE=FILE"

#: What to type next.
HINTS: Mapping[str, Words] = {
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
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
