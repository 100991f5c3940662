"""The words of the command line for addresses, names, times and files of this machine: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

_KEYS = "keys may not hold / \\ # ? or the control characters U+0000 to U+001F and U+007F to U+009F"


def _list_below(facts: Mapping[str, object]) -> str:
    prefix = f" --prefix {facts['text']}" if facts["text"] else ""
    return f"the name of a container has no /; to list the blobs in it: azguard blob list {facts['container']}{prefix}"


#: What to type next.
HINTS: Mapping[str, Words] = {
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
        "azguard share list --include-snapshots those of shares"
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
WORDS: Mapping[str, Words] = {"time_malformed": "{option}: {message}"}
