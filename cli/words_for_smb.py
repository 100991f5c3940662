"""The words of the command line for locks through SMB: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

_OTHER_LOCKS = "where all users run azguard, a lock by lease needs HTTPS only: azguard lock run share:NAME -- CMD"

#: What to type next.
HINTS: Mapping[str, Words] = {
    "file_break_not_confirmed": "confirm with --yes; or close it only if this client has it open: --if-owner CLIENT",
    "file_held_elsewhere": "nothing was closed; look: azguard file lock list {target}",
    "file_in_use": "wait longer with --wait 10m, or look who has it open: azguard file lock list {share}",
    "file_locked_around": "give the same --share and --range as around it, or lock another file",
    "outer_file_lock_lost": "the command was not run; if the lock was released on purpose: unset AZGUARD_FILE_LOCKS",
    "smb_access_denied": "check that the account allows SMB from this network, with NTLMv2; is the file read-only?",
    "smb_directory_missing": "leave out --no-create: then azguard creates it; or: azguard dir create {directory}",
    "smb_file_missing": "leave out --no-create: then azguard creates it",
    "smb_is_directory": "name a file in it, such as {target}/.lock",
    "smb_logon_failed": "the key may have been rotated, or the account may refuse NTLMv2 or keys: --account-key @FILE",
    "smb_needs_key": "give --account-name NAME --account-key @FILE, or a connection string with AccountKey",
    "smb_no_answer": "if that is not the port of SMB, name it: --smb-port N, or AZGUARD_SMB_PORT=N",
    "smb_no_room": "try again later",
    "smb_not_encrypted": "use a server with SMB 3.1.1 and AES, as Azure Files has",
    "smb_not_installed": (
        "install it again, in the clone of azguard: pipx install --force '.[smb]', or pip install '.[smb]'"
    ),
    "smb_path_malformed": "write it as SHARE/PATH, with / between directories",
    "smb_port_blocked": (
        "many networks block port {port}; test it: nc -zv {host} {port}; a VPN or a private endpoint opens a way; "
        + _OTHER_LOCKS
    ),
    "smb_port_malformed": "set AZGUARD_SMB_PORT=445, or unset it",
    "smb_refused": "azguard does not know this status: please report it",
    "smb_share_is_nfs": "use a lock that is a blob: azguard lock run NAME; or mount the share, and use flock",
    "smb_share_missing": "check the name: azguard share list; to create it: azguard share create {share}",
    "smb_unreachable": "check that {host} is the host of the file service, and {port} its port for SMB; "
    + _OTHER_LOCKS,
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
