"""The words of the command line for JSON documents, the paths into them, and metadata: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words

_PATHS = "write replicas, a.b.c, items[0], items[-1], a\\.b or a JSON Pointer, /a/b"

#: What to type next.
HINTS: Mapping[str, Words] = {
    "metadata_name_malformed": "use letters, digits and _; the first is no digit",
    "metadata_name_reserved": "leave it out; azguard keeps it",
    "metadata_too_large": "keep large values in a blob, and its name here",
    "metadata_value_malformed": (
        "use visible ASCII, without spaces at either end; encode other text, for example in base64"
    ),
    "metadata_value_nested": "quote it to store its JSON as text",
    "path_escape_unknown": "only {escaped} are escaped",
    "path_index_too_large": "[-] appends",
    "path_malformed": _PATHS,
    "path_name_malformed": f"{_PATHS}; an empty name only as a JSON Pointer, special characters as in a\\.b",
    "path_names_array": "write [0], [-1] or, to append, [-]",
    "pointer_malformed": "write ~ as ~0, / in a name as ~1",
    "yaml_not_editable": "a command can edit it: -- yq -i '.a = 1' {{}}",
    "yaml_way_is_shared": "change it where it stands ({anchor}), or set the whole value above it",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {}
