"""The words of the command line for emulators and commands that are run: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

#: How each shell takes over what azguard emulator env prints, as typed.
USE_OF_EXPORT = {
    "sh": 'eval "$(azguard emulator env)"',
    "fish": "azguard emulator env | source",
    "powershell": "azguard emulator env | Out-String | Invoke-Expression",
}
_EMULATOR = "in the clone of azguard: pipx install --force '.[emulator]', or pip install '.[emulator]'"
#: How file shares come to the emulator.
NEED_OF_FILES = f"for file shares install it again, {_EMULATOR}"
#: What to type next.
HINTS: Mapping[str, Words] = {
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
    "node_missing": f"install Node.js 20 or later with npm; or let pip bring one (206 MB), {_EMULATOR}",
    "npm_distrusts_registry": (
        "your network has certificates of its own; name their file to Node.js, then run this again, such as: "
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
WORDS: Mapping[str, Words] = {"shell_unknown": "--shell {shell!r} is not known"}
