"""The words for leases and locks, files under SMB, files and programs: see ``table``."""

from collections.abc import Mapping

from azguard.cli.words.rows import Words

_AFTER_DOUBT = {
    "acquire": "release it in case it was granted: azguard lease release {address}",
    "release": "release it again; a finite lease ends by itself",
}
_OTHER_LOCKS = "where all users run azguard, a lock by lease needs HTTPS only: azguard lock run share:NAME -- CMD"
#: How each shell takes over what azguard emulator env prints, as typed.
USE_OF_EXPORT = {
    "sh": 'eval "$(azguard emulator env)"',
    "fish": "azguard emulator env | source",
    "powershell": "azguard emulator env | Out-String | Invoke-Expression",
}
_EMULATOR = "in the clone of azguard: pipx install --force '.[emulator]', or pip install '.[emulator]'"
#: How file shares come to the emulator.
NEED_OF_FILES = f"for file shares install it again, {_EMULATOR}"


def _after_doubt(facts: Mapping[str, object]) -> str:
    look = "look before you try again: azguard lease show {address}"
    return _AFTER_DOUBT.get(str(facts["action"]), look).format_map(facts)


def _take_lock(facts: Mapping[str, object]) -> str:
    if facts["noun"] == "file":
        return "a file is held by one command: azguard lock run {address} -- COMMAND".format_map(facts)
    takes = "azguard lock hold {address} takes it; later steps need AZGUARD_LOCK, or the same AZGUARD_SCOPE"
    return takes.format_map(facts)


def _use_own_lock(facts: Mapping[str, object]) -> str:
    release = "release it: azguard lock release {address}".format_map(facts)
    if facts["file"]:
        return "use it: set -a; . {file}; then type this again\n      or ".format_map(facts) + release
    return f"{release}\n      or use it: hold it with --env-file FILE, then: set -a; . FILE"


def _show_again(facts: Mapping[str, object]) -> str:
    return f"look, then decide: azguard {facts['noun']} show {facts['target']}"


def _close_handles(facts: Mapping[str, object]) -> str:
    """Return how to see who has a file open, and how to close a handle that is known."""
    target, found = facts["target"], facts.get("handles")
    if not isinstance(found, list) or not found:
        return f"see who has it open: azguard file handle list {target}"
    close = f"--handle-id {found[0]['handle_id']}" if len(found) == 1 else "--close-all"
    return (
        "close it there and try again\n      "
        f"or by force, and what that program has not written yet is lost: azguard file handle close {target} {close}"
    )


#: What to type next.
def _how_to_write_guid(facts: Mapping[str, object]) -> str:
    return "uuidgen makes one" if facts["option"] != "--lease-id" else "write it as it was printed when acquired"


HINTS: Mapping[str, Words] = {
    "lease_id_empty": "an unset shell variable looks like this; leave the option out",
    "lease_id_malformed": _how_to_write_guid,
    "lease_not_held_here": (
        "name the id itself: --lease-id ID; azguard lease list --mine --all-scopes shows what is held"
    ),
    # Leases.
    "infinite_lease_required": "acquire it with --infinite: what it protects may take longer than any term",
    "lease_breaking": "release the lease, or finish under the id that it has",
    "lease_broken": "stop the work that it protects and release it; then acquire a new one",
    "lease_broken_already": "see its state: azguard lease show {address}",
    "lease_id_missing": "name the lease with --lease-id, or wait until its holder releases it",
    "lease_not_held": "it was released or lost, or the id is wrong: azguard lease show {address}",
    "lease_over": "it expired or was broken: read again before you write; if you gave --lease-id, leave it out",
    "lease_refuses": "see its state: azguard lease show {address}",
    "leased_by_another": "wait until it is free: azguard lease wait {address}",
    "leased_under_another_id": "check the id, or see who holds it: azguard lease show {address}",
    "no_lease": "take one: azguard lease acquire {address}",
    "lease_of_another_job": "to use it all the same, name it: --lease-id ID; azguard lease list --mine --all-scopes",
    "lease_is_own": "this scope holds it, or did: azguard lease renew {address}, or release",
    "lease_not_free_in_time": "wait longer, or see who holds it: azguard lease show {address}",
    "lease_of_vm_disk": "nothing was broken; delete the machine, or detach the disk, and the lease ends by itself",
    "lease_outcome_unknown": _after_doubt,
    "lease_reason_empty": "an unset shell variable looks like this; leave the option out",
    "lease_reason_malformed": "write for example --reason 'migration of the schema'",
    "break_condition_without_version": "leave the condition out, or name the version: --if-match ETAG",
    "break_at_once": "leave out --lease-break-period",
    "break_not_confirmed": (
        "confirm with --yes, or with what you saw: --if-owner NAME, --if-older-than 2h, --if-match ETAG"
    ),
    "kind_without_lease": "name a blob:CONTAINER/NAME, container:NAME, share:NAME or file:SHARE/PATH",
    "lease_not_named": "give --lease-id ID, or --lease-id @held for the lease of this scope",
    "lease_lasts_until_released": "leave it out: it lasts until it is released or broken",
    "lease_not_broken": "nothing was broken; look again: azguard lease show {address}",
    "lease_without_term": "--infinite, without --lease-duration: it lasts until it is released or broken",
    "no_lease_to_break": "nothing has to be broken; to take it: azguard lease acquire {address}",
    "lock_blob_missing": "leave out --no-create to create it",
    "hold_lost_before": "see what ran since; to take the lock again: AZGUARD_LOCK= azguard lock hold …",
    "hold_not_recorded": "the lock was released; set AZGUARD_CACHE_DIR",
    "run_not_recorded": "the command was not run; set AZGUARD_CACHE_DIR",
    "held_by_another_job": (
        "give each job a scope of its own (azguard help scopes); to end that hold: azguard lock break NAME"
    ),
    "hold_none": "azguard lock hold sets AZGUARD_LOCK for later steps; or name the lock, with the --scope that took it",
    "hold_of_another_scope": "another scope holds it: --scope {scope}",
    "hold_unknown": _take_lock,
    "lock_held_by_this_scope": _use_own_lock,
    "lock_read_by_this_scope": "release it: azguard lock release {address}",
    "lock_busy": "wait longer with --wait 10m, or look: azguard lock show {address}",
    "history_unreadable": "look at it: azguard blob get {target}; another program may have written it",
    "lock_lost": (
        "its last seconds may have overlapped with the next holder's: compare the fences of what was written "
        "before you run it again"
    ),
    "lock_lost_before_release": "what was done under it may have overlapped with another holder's work",
    "lock_lost_before_start": "the command was not run",
    "lock_lost_before_write": "nothing was written: run it again",
    "lock_lost_unfenced": (
        "its last seconds may have overlapped with the next holder's: look at what it wrote before you run it again"
    ),
    "lock_not_acquired": "nothing was run under it; try again",
    "lock_not_held": "stop here: what follows would run without the lock",
    "sticky_until_is_over": "no lock was taken; name a later time, such as --until 4h",
    "lock_shared_around": "leave out --shared around it, or give --shared here too",
    "lock_shared_without_queue": "use a SAS of the container with the permissions rwcdl; or leave out --shared",
    "lock_slots_differ": "use --slots {slots}, as its other holders do, or another name",
    "lock_superseded": (
        "a newer run has had the lock, so there is nothing to do; to run all the same, leave out --sequence"
    ),
    "lock_term_too_short": "a longer term leaves more time: --lease-duration 60s",
    "outer_lock_lost": "the command was not run; if the lock was released on purpose: unset AZGUARD_LOCK",
    "run_not_askable": "nothing was broken; look at the run yourself, then: azguard lock break {address} --yes",
    "run_not_finished": "nothing was broken; cancel the run, or wait for its end",
    "run_unknown": "nothing was broken; a token may be missing: GITHUB_TOKEN, SYSTEM_ACCESSTOKEN",
    "some_containers_not_listed": "the other containers are listed; ask for the right to list all, or use --prefix",
    "table_lock_unavailable": "nothing was written: try again",
    "terraform_state_busy": "wait longer with --wait 10m, or look: azguard lease show {address}",
    "outer_lock_lost_before_write": "nothing was written",
    "record_needs_blob": "leave it out, or lease a blob that stands for it",
    "record_on_snapshot": "leave it out",
    # Files.
    "directory_not_empty": "a directory is deleted when it is empty; see azguard file list {target}",
    "file_delete_pending": _close_handles,
    "file_exists": "read it, then decide: azguard file get {target} -f FILE; or leave it alone: --if-exists skip",
    "file_is_open": _close_handles,
    "file_is_read_only": "remove the attribute: azguard file set-properties {target} --attributes None",
    "parent_not_found": "create it first: azguard dir create {parent}",
    "path_of_other_type": "choose another name; see what is there: azguard file list {container}",
    "range_beyond_end": "choose bytes inside the file; they are counted from 0",
    "temporary_file_failed": "the file itself is as it was; try again",
    "rename_to_other_share": "name a directory of the same share",
    "file_keeps_changing": "try again when its writers pause",
    "not_whole_blocks": "to clear other bytes, write zeros with azguard file range put",
    "range_behind_end": "make it longer first: azguard file resize {target} {needed}",
    "range_incomplete": "look at what is there, then go on from {next_offset}: --offset {next_offset}",
    "range_is_empty": "did the command before the pipe fail?",
    "share_being_deleted": "wait 30 seconds or more, then try again",
    "share_is_full": "delete what is not needed, or let it hold more: azguard share quota {container} GIB",
    "share_has_snapshots": "--delete-snapshots include deletes them too",
    "share_or_file_changed": _show_again,
    "share_not_found": "check the name: azguard share list; to create it: azguard share create {container}",
    "share_snapshot_not_found": "see what there is: azguard share list --include snapshots --prefix {container}",
    # Smb.
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
    # Programs.
    "azurite_not_installed": (
        "check the network and `npm config get registry`, then run this again; "
        "or put that version on PATH: npm install -g azurite@{version}"
    ),
    "command_needs_shell": "no shell runs the command; for shell syntax write -- sh -c '...'",
    "command_not_executable": "make it executable: chmod +x {program}",
    "command_not_found": "is it installed, and on the PATH?",
    "command_missing": "write it after --, as in: -- jq '.replicas += 1'",
    "command_without_room": "make room on this machine; TMPDIR names another folder for the files of commands",
    "data_folder_not_writable": "choose another with --data",
    "demo_writer_failed": "run it again; if it happens again, please report it",
    "emulator_did_not_last": "run it again",
    "emulator_differs": "stop it: azguard emulator stop; then start it again",
    "emulator_folder_not_writable": "set AZGUARD_CACHE_DIR",
    "emulator_not_running": "start it: azguard emulator start",
    "emulator_of_another": "is it another user's? Set AZGUARD_CACHE_DIR to a folder of your own",
    "emulator_on_windows": "start Azurite yourself: npx azurite@3.35.0 --skipApiVersionCheck; then use --emulator",
    "emulator_slow": "allow more time: --wait 3m",
    "filter_not_run": "does a script lack its first line, such as #!/bin/sh?",
    "filter_not_executable": "make it executable: chmod +x {program}; or name its interpreter first",
    "interpreter_missing": "correct the script's first line, or install that interpreter",
    "lock_file_not_writable": "set AZGUARD_CACHE_DIR",
    "node_missing": f"install TreeNode.js 20 or later with npm; or let pip bring one (206 MB), {_EMULATOR}",
    "npm_distrusts_registry": (
        "your network has certificates of its own; name their file to TreeNode.js, then run this again, such as: "
        "export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
    ),
    "output_held_open": "let the command wait for the processes it starts, or redirect their output",
    "own_is_link": "if it is your own, name the real folder: AZGUARD_CACHE_DIR={real}; else remove the link",
    "own_of_another": "set AZGUARD_CACHE_DIR to a folder of your own; under sudo: sudo -H azguard",
    "own_of_sudo": "sudo -H azguard keeps its files in root's own folder; else set AZGUARD_CACHE_DIR",
    "own_open_to_others": "remove what others have put there, then: chmod go-w {path}",
    "port_privileged": "choose one above 1023",
    "port_taken": "choose another, or leave the option out for a free one",
    "scratch_gone": "a command that edits a file must leave it, or another of the same name",
    "scratch_not_readable": "the command must leave a regular file that you may read",
    "scratch_not_written": "is the temporary folder full? Choose another: TMPDIR=FOLDER",
    "shell_unknown": "choose one of: {shells}",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "lease_id_empty": "{option} is empty",
    "lease_id_malformed": "{option}: {message}",
    "lease_not_held_here": "--lease-id @held: this scope holds no such lease",
    # Leases.
    "lease_reason_empty": "{option} is empty",
    "lease_reason_malformed": "{option} takes one line of at most {longest} visible characters",
    "break_condition_without_version": (
        "--if-owner and --if-older-than judge one version of the blob, which the other condition does not name"
    ),
    "record_on_snapshot": "--reason is not for {target}: a snapshot never changes",
    "record_needs_blob": "--reason is not for a {kind}: its metadata have no guard that other writers must respect",
    # Programs.
    "shell_unknown": "--shell {shell!r} is not known",
}
