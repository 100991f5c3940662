"""The words of the command line for tables, entities and what is in a container or a table: see ``hint_table``."""

from collections.abc import Mapping

from azguard.cli.words import Words


def _how_to_see_acl(facts: Mapping[str, object]) -> str:
    return f"look, then decide: azguard {facts['noun']} acl get {facts['target']}"


def _how_to_look_at_acl(facts: Mapping[str, object]) -> str:
    return f"look before you try again: azguard {facts['noun']} acl get {facts['target']}"


#: What to type next.
HINTS: Mapping[str, Words] = {
    "acl_changed": _how_to_see_acl,
    "acl_field_unknown": "its fields are {known}",
    "acl_not_object": (
        '{{"readers": {{"start": "2026-01-01T00:00:00Z", "expiry": "2027-01-01T00:00:00Z", "permission": "r"}}}}'
    ),
    "acl_outcome_unknown": _how_to_look_at_acl,
    "acl_permission_malformed": "use letters of {letters}, in this order",
    "acl_time_malformed": "write for example 2027-01-01T00:00:00Z",
    "annotation_without_property": "add {property}, or leave it out",
    "binary_malformed": "write it in base64",
    "boolean_malformed": "write true or false",
    "datetime_malformed": "write UTC, to 100 ns at most, from the year 1601 on: 2026-11-21T10:00:00.1234567Z",
    "double_malformed": "write a number, or one of the texts NaN Infinity -Infinity",
    "entity_exists": (
        "read it: azguard entity get {target}, then replace or merge; "
        "or write it without a guard: azguard entity upsert with --last-writer-wins"
    ),
    "entity_key_changed": "insert an entity under the other name, then delete this one",
    "entity_not_object": 'an entity looks like {{"price": 3}}',
    "entity_too_large": "keep large values in a blob, and its address here",
    "entity_too_large_with_lineage": "--no-lineage leaves it out; a lost answer can then end as exit 74",
    "filter_literal_open": "a quote within a literal is written twice: ''",
    "filter_number_not_finite": "filter on a number instead",
    "filter_parameter_given_twice": "give each parameter one value",
    "filter_parameter_malformed": (
        "write @name with blanks or brackets around it; in a literal, @ is only a character"
    ),
    "filter_parameter_name_malformed": "use letters, digits and underscores: --param p=eu",
    "filter_parameter_unused": "write @{name} where its value belongs",
    "filter_parameter_without_value": "add --param {name}=VALUE",
    "guid_malformed": "write for example c9da6455-213d-42c9-9a79-3e9149a57833",
    "int32_too_large": 'add "{annotation}": "{type}"',
    "integer_malformed": "write a whole number",
    "integer_too_large": "it has {bits} bits",
    "key_not_string": "the keys are strings: {key}={value}",
    "property_malformed": "write name=text or name:type=value, with a type of: {types}",
    "property_nested": "keep it as a string of JSON, or in properties of its own",
    "property_path_malformed": "write NAME, or NAME@odata.type for its type",
    "property_type_unknown": "its types are {types}",
    "property_typed_twice": "give each property one value and one type",
    "string_not_unicode": "half of a character is no Unicode text: write bytes as Edm.Binary",
    "string_without_quotes": "put it in quotes",
    "transaction_empty": 'write one JSON object on each line: {{"op": "insert", ...}}',
    "transaction_entity_twice": "an entity can be written once in a transaction",
    "transaction_in_two_partitions": "a transaction is within one partition of one table",
    "transaction_item_changed": (
        "see what it is now: azguard entity get {target}; then correct line {line}, also the version in it"
    ),
    "transaction_too_large": "split it; each transaction is all or nothing by itself",
    "type_without_property": "add {property}=…",
    "contents_not_listed": "--with-contents deletes it without looking",
    "entity_other_keys": "leave it out of the entity, or correct the address",
    "entity_bad_etag": "leave it as azguard entity get printed it; or remove it, and name the version with --etag",
    "entity_two_versions": "remove the one under which the entity was not read",
    "entity_not_json": "write for example {example}",
    "delete_copy_without_etag": "leave it out to be guarded by what you last read, or name the version with --etag",
    "line_unknown_key": "its keys are {known}",
    "line_incomplete": "write for example {example}",
    "line_word": '"{name}" is one of: {words}',
    "line_condition_not_text": "leave it out to be guarded by what was read last",
    "line_insert_overwrites": 'to overwrite what is there: "op": "upsert"',
    "line_mode_not_upsert": "leave it out",
}
#: What happened, where the core's own sentence would have to name an option.
WORDS: Mapping[str, Words] = {
    "filter_literal_open": "a literal in {option} does not end",
    "filter_parameter_given_twice": "{option} {name} is given twice",
    "filter_parameter_malformed": "{option}: {message}",
    "filter_parameter_name_malformed": "{option}: {message}",
    "filter_parameter_unused": "{option} {name} is not in the filter",
    "filter_parameter_without_value": "{option} has @{name}, which has no value",
}
