"""Operations on tables and entities."""

from azguard.wire.rows import ETAG, Guard, changes, creates, free, reads

_IN_EACH_LINE = 'each line has its own: "etag", "if_match" or "last_writer_wins"'
_UPSERT = "Update and Merge Entity keep a version, Insert Entity creates only"

# Tables have no ETag, entities do.
TABLE_CREATE = creates("table.create", "create-table")
TABLE_DELETE = changes("table.delete", "delete-table", remark="a table has no ETag")
TABLE_QUERY_TABLES = reads("table.query_tables", "query-tables")
TABLE_GET_ACL = reads("table.get_acl", "get-table-acl")
# An ACL without an ETag: its content can be compared, and nothing holds the others off.
TABLE_SET_ACL = changes("table.set_acl", "set-table-acl", guard=Guard.COMPARE)
TABLE_ENTITY_QUERY = reads("table.entity_query", "query-entities")
TABLE_ENTITY_GET = reads("table.entity_get", "query-entities")
TABLE_ENTITY_INSERT = creates(
    "table.entity_insert", "insert-entity", remark="Insert Or Replace Entity, an upsert, writes whatever is there"
)
TABLE_ENTITY_UPDATE = changes("table.entity_update", "update-entity2", ETAG, guard=Guard.IF_MATCH)
TABLE_ENTITY_MERGE = changes("table.entity_merge", "merge-entity", ETAG, guard=Guard.IF_MATCH)
TABLE_ENTITY_DELETE = changes("table.entity_delete", "delete-entity1", ETAG, guard=Guard.IF_MATCH)
# The same requests as update and merge without If-Match: unconditional. If-None-Match: * does not make them
# create only (the emulator overwrites, the documentation does not list it).
TABLE_ENTITY_INSERT_OR_REPLACE = changes("table.entity_insert_or_replace", "insert-or-replace-entity", remark=_UPSERT)
TABLE_ENTITY_INSERT_OR_MERGE = changes("table.entity_insert_or_merge", "insert-or-merge-entity", remark=_UPSERT)
# Each operation inside is one of the rows above and is guarded as that row says.
TABLE_BATCH = free("table.batch", "performing-entity-group-transactions", remark=_IN_EACH_LINE)
