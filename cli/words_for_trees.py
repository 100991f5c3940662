"""The words of the command line for trees of files: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _how_to_read_alone(facts: Mapping[str, object]) -> str:
    return f"read it alone, under another name: azguard {facts['noun']} get {facts['target']} -f FILE"


#: What to type next.
HINTS: Mapping[str, Words] = {
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
    "tree_folder_fails": "name another folder with -f DIR",
    "tree_has_no_file": "check the address; if there may be no file: --allow-empty",
    "tree_is_no_folder": "to put one file, leave --recursive out: -f FILE",
    "tree_last_missing": (
        "name it as it is below the folder, such as css/site.css; links and excluded files do not count"
    ),
    "tree_mirror_is_empty": "check that it is the right one, and complete; to delete all: --allow-empty",
    "tree_name_refused": _how_to_read_alone,
    "tree_name_twice": "give one of them another name, or leave it out: --exclude",
    "tree_pattern_malformed": (
        "a pattern is like '*.css' or 'drafts/', below the folder; to leave files out, use --exclude; "
        r"for a name that begins with # or ! write '\#…' or '\!…'"
    ),
    "tree_service_gone": "run it again when the service answers; a get with --unchanged skip reads only the rest",
    "tree_stopped": "run it again: it begins with what is missing",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
