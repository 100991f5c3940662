"""Operations on tables and entities."""

from functools import partial

from azguard.wire.rows import ETAG, XML, Guard, Settlement, changes, creates, free, reads, speaks

_IN_EACH_LINE = 'each line has its own: "etag", "if_match" or "last_writer_wins"'
_UPSERT = "Update and Merge Entity keep a version, Insert Entity creates only"
_JSON = (("Content-Type", "application/json"),)
_XML = (("Accept", "application/xml"),)
_BARE_JSON = (("Content-Type", "application/json;odata=nometadata"),)
_CONTINUED = "next_partition next_row"
_changes = partial(changes, honours=ETAG, guard=Guard.IF_MATCH, settle=Settlement.LINEAGE)
_upserts = partial(changes, remark=_UPSERT, settle=Settlement.LINEAGE)

# Tables have no ETag, entities do.
TABLE_CREATE = creates(
    "table.create", settle=Settlement.BEFORE, http=speaks("POST", path="Tables", headers=_BARE_JSON, ok=(201, 204))
)
TABLE_DELETE = changes(
    "table.delete",
    remark="a table has no ETag",
    settle=Settlement.NOTHING,
    http=speaks("DELETE", path="Tables('{name}')", ok=(204,)),
)
TABLE_QUERY_TABLES = reads(
    "table.query_tables",
    "query-tables",
    http=speaks("GET", path="Tables", sends="filter top next_table", returns="next_table"),
)
TABLE_GET_ACL = reads("table.get_acl", http=speaks("GET", "acl", headers=_XML))
# An ACL without an ETag: its content can be compared, and nothing holds the others off.
TABLE_SET_ACL = changes(
    "table.set_acl",
    guard=Guard.COMPARE,
    settle=Settlement.FOUND,
    http=speaks("PUT", "acl", headers=(*_XML, *XML), ok=(204,)),
)
TABLE_ENTITY_QUERY = reads(
    "table.entity_query",
    "query-entities",
    http=speaks("GET", path="{name}()", sends=f"filter select top {_CONTINUED}", returns=_CONTINUED),
)
TABLE_ENTITY_GET = reads("table.entity_get", "query-entities", http=speaks("GET", sends="select"))
TABLE_ENTITY_INSERT = creates(
    "table.entity_insert",
    "insert-entity",
    remark="Insert Or Replace Entity, an upsert, writes whatever is there",
    http=speaks("POST", path="{name}", headers=_BARE_JSON, returns="etag", ok=(201, 204)),
)
TABLE_ENTITY_UPDATE = _changes(
    "table.entity_update",
    "update-entity2",
    http=speaks("PUT", headers=_JSON, sends="if_match", returns="etag", ok=(204,)),
)
TABLE_ENTITY_MERGE = _changes(
    "table.entity_merge",
    "merge-entity",
    http=speaks("PATCH", headers=_JSON, sends="if_match", returns="etag", ok=(204,)),
)
TABLE_ENTITY_DELETE = _changes(
    "table.entity_delete",
    "delete-entity1",
    settle=Settlement.BEFORE,
    http=speaks("DELETE", sends="if_match", ok=(204,)),
)
# The same requests as update and merge without If-Match: unconditional. If-None-Match: * does not make them
# create only (the emulator overwrites, the documentation does not list it).
TABLE_ENTITY_INSERT_OR_REPLACE = _upserts(
    "table.entity_insert_or_replace",
    "insert-or-replace-entity",
    http=speaks("PUT", headers=_JSON, returns="etag", ok=(204,)),
)
TABLE_ENTITY_INSERT_OR_MERGE = _upserts(
    "table.entity_insert_or_merge",
    "insert-or-merge-entity",
    http=speaks("PATCH", headers=_JSON, returns="etag", ok=(204,)),
)
# Each operation inside is one of the rows above and is guarded as that row says.
TABLE_BATCH = free(
    "table.batch",
    "performing-entity-group-transactions",
    remark=_IN_EACH_LINE,
    settle=Settlement.LINEAGE,
    http=speaks("POST", path="$batch", sends="body_type", ok=(202,)),
)
