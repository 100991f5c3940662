"""The words for files, SMB, trees and programs: see ``hints``."""

from collections.abc import Mapping

from azguard.cli.words.templates import Words

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
HINTS: Mapping[str, Words] = {
    "batch_line": 'words as in a shell, a JSON array of them, or {{"args": [...], "stdin": "...", "id": "..."}}',
    # Files.
    "directory_not_empty": "a directory is deleted when it is empty; see azguard file list {target}",
    "file_delete_pending": _close_handles,
    "file_exists": "read it, then decide: azguard file get {target} -f FILE; or leave it alone: --if-exists skip",
    "file_is_open": _close_handles,
    "file_is_read_only": "remove the attribute: azguard file properties set {target} --attributes None",
    "parent_not_found": "create it first: azguard dir create {parent}",
    "not_provisioned": "see the limits of the account in the portal, or choose a smaller quota",
    "quota_too_recent": "a premium share takes a smaller quota 24 hours after the last change",
    "file_made_anew": "all of its ranges are new: azguard file range list {target}",
    "snapshot_only_read": "leave ?snapshot=… out",
    "path_of_other_type": "choose another name; see what is there: azguard file list {container}",
    "range_beyond_end": "choose bytes inside the file; they are counted from 0",
    "temporary_file_failed": "the file itself is as it was; try again",
    "rename_to_other_share": "name a directory of the same share",
    "file_keeps_changing": "try again when its writers pause",
    "not_whole_blocks": "to clear other bytes, write zeros with azguard file range put",
    "range_behind_end": "make it longer first: azguard file resize {target} {needed}",
    "range_incomplete": "look at what is there, then go on from {next_offset}: --offset {next_offset}",
    "range_is_empty": "did the command before the pipe fail?",
    "share_being_deleted": "wait 30 seconds or more, or create it with --wait 2m",
    "share_is_full": "delete what is not needed, or let it hold more: azguard share quota {container} GIB",
    "share_has_snapshots": "--delete-snapshots include deletes them too",
    "share_or_file_changed": "look, then decide: azguard {noun} show {target}",
    "share_not_found": "check the name: azguard share list; to create it: azguard share create {container}",
    "share_snapshot_not_found": "see what there is: azguard share list --include snapshots --prefix {container}",
    # Smb.
    "file_break_not_confirmed": "confirm with --yes; or close it only if this client has it open: --if-owner CLIENT",
    "file_held_elsewhere": "nothing was closed; look: azguard file lock list {target}",
    "file_not_open": "nothing has to be closed; who has files open: azguard file lock list {share}",
    "file_in_use": "wait longer with --wait 10m, or look who has it open: azguard file lock list {share}",
    "file_locked_around": "give the same --share, --shared and --range as around it, or lock another file",
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
    "emulator_without_proc": "mount it: mount -t proc proc /proc",
    "emulator_slow": "allow more time: --wait 3m",
    "filter_not_run": "does a script lack its first line, such as #!/bin/sh?",
    "filter_not_executable": "make it executable: chmod +x {program}; or name its interpreter first",
    "interpreter_missing": "correct the script's first line, or install that interpreter",
    "lineage_newer": "update this azguard, or do it on the machine that has the newer one",
    "lock_file_not_writable": "set AZGUARD_CACHE_DIR",
    "node_missing": f"install Node.js 20 or later with npm; or let pip bring one (206 MB), {_EMULATOR}",
    "sdk_missing": f"let pip bring it, {_EMULATOR}",
    "npm_distrusts_registry": (
        "your network has certificates of its own; name their file to Node.js, then run this again, such as: "
        "export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
    ),
    "output_held_open": "let the command wait for the processes it starts, or redirect their output",
    "home_unknown": "set HOME, or both AZGUARD_CACHE_DIR and AZGUARD_CONFIG_DIR",
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
    # Trees.
    "file_changed_while_read": "nothing was written; try again when its writer is done",
    "copies_changed_here": "--overwrite takes theirs; --if-exists skip leaves alone what is in the folder",
    "some_files_busy": "run it again; a get with --unchanged skip reads only the rest",
    "some_files_failed": "the line of each file says why; correct that, then run it again",
    "tree_conflicts": (
        "these files changed since you read them, or you never read them, so another run fails, too; "
        "read theirs beside yours: azguard {noun} get ADDRESS -f THEIRS"
    ),
    "tree_file_leased": (
        "wait until it is free: azguard lease wait {address}\n"
        "      or, if its holder is gone, break it: azguard lease break {address}"
    ),
    "tree_folder_fails": "name another folder",
    "tree_has_no_file": "check the address; if there may be no file: --allow-empty",
    "tree_is_no_folder": "to put one file, leave --recursive out: -f FILE",
    "tree_last_missing": (
        "name it as it is below the folder, such as css/site.css; links and excluded files do not count"
    ),
    "tree_mirror_is_empty": "check that it is the right one, and complete; to delete all: --allow-empty",
    "tree_name_refused": "read it alone, under another name: azguard {noun} get {target} -f FILE",
    "tree_name_twice": "give one of them another name, or leave it out: --exclude",
    "tree_pattern_malformed": (
        "a pattern is like '*.css' or 'drafts/', below the folder; to leave files out, use --exclude; "
        r"for a name that begins with # or ! write '\#…' or '\!…'"
    ),
    "tree_service_gone": "run it again when the service answers; a get with --unchanged skip reads only the rest",
    "tree_stopped": "run it again: it begins with what is missing",
}


#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    # Programs.
    "shell_unknown": "--shell {shell!r} is not known",
}
