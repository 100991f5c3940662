"""Operations on blobs."""

from functools import partial

from azguard.wire.rows import (
    ABORT_COPY,
    APPEND,
    CHANGED_SINCE,
    DATES,
    FULL,
    POSITION,
    SEQUENCE,
    SOURCE,
    SOURCE_FULL,
    STANDARD,
    TAGS,
    VERSION,
    XML,
    Guard,
    Http,
    Lease,
    Part,
    Settlement,
    appends,
    changes,
    free,
    leases,
    puts,
    reads,
    speaks,
)

_SETTINGS = "content_type content_encoding content_language content_disposition cache_control content_md5"
_PROPERTIES = (
    f"{VERSION} content_settings lease copy size metadata blob_type creation_time is_current_version access_tier "
    "blob_tier_inferred archive_status rehydrate_priority tag_count is_append_blob_sealed page_blob_sequence_number "
    "append_blob_committed_block_count legal_hold immutability_until immutability_mode"
)
_POLICY = "immutability_until immutability_mode"
_APPENDED = "etag last_modified append_offset append_blob_committed_block_count"
_PAGES = "etag last_modified page_blob_sequence_number"
# A read takes a key of the caller's alone: a scope is the account's own.
_ENCRYPTION = "encryption_key encryption_scope"
_SOURCE = "copy_source source_range source_encryption_key source_encryption_key_sha256 source_encryption_algorithm"
_UPDATES = ("x-ms-page-write", "update")
_OCTETS = ("Content-Type", "application/octet-stream")
# What most of them have in common. Some honour other conditions.
_reads = partial(reads, honours=FULL, lease=Lease.OPTIONAL)
_puts = partial(puts, honours=FULL, lease=Lease.REQUIRED, guard=Guard.IF_MATCH, settle=Settlement.LINEAGE)
_changes = partial(changes, honours=FULL, lease=Lease.REQUIRED, guard=Guard.IF_MATCH, settle=Settlement.LINEAGE)
_changes_held = partial(_changes, settle=Settlement.HELD)
_retains = partial(changes, guard=Guard.VERSION, settle=Settlement.FOUND, since="2020-06-12")
_appends = partial(appends, lease=Lease.REQUIRED, guard=Guard.IF_MATCH, settle=Settlement.POSITION)


def _put_blob(blob_type: str, sends: str, *headers: tuple[str, str]) -> Http:
    return speaks(
        "PUT",
        headers=(("x-ms-blob-type", blob_type), *headers),
        sends=f"{_SETTINGS} metadata {sends} {_ENCRYPTION}",
        returns=VERSION,
        ok=(201,),
    )


BLOB_PUT_BLOCK_BLOB = _puts(
    "blob.put_block_blob", "put-blob", fences=True, http=_put_blob("BlockBlob", "access_tier tags", _OCTETS)
)
BLOB_PUT_APPEND_BLOB = _puts("blob.put_append_blob", "put-blob", http=_put_blob("AppendBlob", ""))
BLOB_PUT_PAGE_BLOB = _puts("blob.put_page_blob", "put-blob", http=_put_blob("PageBlob", "size"))
# Only Get Blob and Get Blob Properties are documented to combine conditions; the rule of writes is kept for other
# reads.
BLOB_GET = _reads(
    "blob.get",
    combines=True,
    http=speaks(
        "GET",
        sends="range range_md5 encryption_key",
        returns=f"{_PROPERTIES} content_type content_range blob_content_md5",
        ok=(200, 206),
    ),
)
BLOB_GET_PROPERTIES = _reads(
    "blob.get_properties", combines=True, http=speaks("HEAD", sends="encryption_key", returns=_PROPERTIES)
)
BLOB_SET_PROPERTIES = _changes_held(
    "blob.set_properties", http=speaks("PUT", "properties", sends=_SETTINGS, returns=VERSION)
)
# What of the properties is not sent alone stays. The service evaluates no sequence number here, as it does on pages.
BLOB_RESIZE = _changes_held(
    "blob.resize", "set-blob-properties", http=speaks("PUT", "properties", sends=f"size {_ENCRYPTION}", returns=_PAGES)
)
BLOB_SET_SEQUENCE_NUMBER = _changes_held(
    "blob.set_sequence_number",
    "set-blob-properties",
    http=speaks("PUT", "properties", sends="sequence_action sequence_number", returns=_PAGES),
)
# They move no ETag, and no lease keeps others from them. Versions never change, and each can be named.
BLOB_SET_LEGAL_HOLD = _retains(
    "blob.set_legal_hold", http=speaks("PUT", "legalhold", sends="legal_hold", returns="legal_hold")
)
BLOB_SET_IMMUTABILITY_POLICY = _retains(
    "blob.set_immutability_policy",
    honours=DATES - CHANGED_SINCE,
    http=speaks("PUT", "immutabilityPolicies", sends=_POLICY, returns=_POLICY),
)
BLOB_DELETE_IMMUTABILITY_POLICY = _retains(
    "blob.delete_immutability_policy", http=speaks("DELETE", "immutabilityPolicies")
)
BLOB_SET_METADATA = _changes(
    "blob.set_metadata",
    part=Part.METADATA,
    http=speaks("PUT", "metadata", sends=f"metadata {_ENCRYPTION}", returns=VERSION),
)
# Whether a leased blob refuses a tier without the id is unverified; a wrong id is refused. A lease held over
# compare and write keeps --etag all the same: everything that changes the ETag requires its id.
BLOB_SET_TIER = changes(
    "blob.set_tier",
    honours=TAGS,
    lease=Lease.OPTIONAL,
    guard=Guard.LEASE,
    settle=Settlement.HELD,
    http=speaks("PUT", "tier", sends="access_tier rehydrate_priority", ok=(200, 202)),
)
# The x-ms-blob-if-* headers (service version 2026-02-06) are known from the specification only, the emulator
# ignores them, and tags move no ETag: they could not stop a second writer of tags. The lease does.
BLOB_GET_TAGS = _reads("blob.get_tags", honours=TAGS, http=speaks("GET", "tags"), since="2019-12-12")
BLOB_SET_TAGS = changes(
    "blob.set_tags",
    honours=TAGS,
    lease=Lease.REQUIRED,
    guard=Guard.LEASE,
    fences=True,
    part=Part.TAGS,
    settle=Settlement.HELD,
    http=speaks("PUT", "tags", headers=XML, ok=(204,)),
    since="2019-12-12",
)
BLOB_LEASE_ACQUIRE, BLOB_LEASE_RENEW, BLOB_LEASE_CHANGE, BLOB_LEASE_RELEASE, BLOB_LEASE_BREAK = leases(
    "blob", honours=FULL, guard=Guard.IF_MATCH
)
# The documentation calls it a read; recordings of the service answer 412, not 304: a write.
BLOB_SNAPSHOT = free(
    "blob.snapshot",
    honours=FULL,
    lease=Lease.OPTIONAL,
    guard=Guard.IF_MATCH,
    settle=Settlement.LINEAGE,
    http=speaks("PUT", "snapshot", sends=f"metadata {_ENCRYPTION}", returns=f"snapshot {VERSION}", ok=(201,)),
)
# x-ms-source-lease-id has not been supported since 2012, whatever the SDK sends.
BLOB_COPY = _puts(
    "blob.copy",
    honours=FULL | SOURCE_FULL,
    fences=True,
    http=speaks(
        "PUT", sends="copy_source access_tier metadata tags", returns=f"{VERSION} copy_id copy_status", ok=(202,)
    ),
)
BLOB_ABORT_COPY = free(
    "blob.abort_copy",
    "abort-copy-blob",
    lease=Lease.REQUIRED,
    remark="the copy id names the one copy it may stop",
    settle=Settlement.FOUND,
    http=ABORT_COPY,
)
# Its x-ms-access-tier-if-* conditions have no flag: they watch the tier, not the content.
BLOB_DELETE = _changes(
    "blob.delete", fences=True, settle=Settlement.BEFORE, http=speaks("DELETE", sends="delete_snapshots", ok=(202,))
)
# That the blob is there does not tell that its snapshots are back too.
BLOB_UNDELETE = free("blob.undelete", settle=Settlement.REPEATED, http=speaks("PUT", "undelete"))
BLOB_PUT_BLOCK = free(
    "blob.put_block",
    "put-block",
    lease=Lease.REQUIRED,
    remark="Put Block List evaluates them",
    settle=Settlement.REPEATED,
    http=speaks("PUT", "block", headers=(_OCTETS,), sends=f"block_id {_ENCRYPTION}", ok=(201,)),
)
BLOB_PUT_BLOCK_LIST = _puts(
    "blob.put_block_list",
    "put-block-list",
    fences=True,
    http=speaks(
        "PUT",
        "blocklist",
        headers=XML,
        sends=f"{_SETTINGS} access_tier metadata tags {_ENCRYPTION}",
        returns=VERSION,
        ok=(201,),
    ),
)
BLOB_GET_BLOCK_LIST = _reads(
    "blob.get_block_list",
    "get-block-list",
    honours=TAGS,
    http=speaks("GET", "blocklist", sends="blocklisttype", returns="etag"),
)
# An append overwrites nothing, but where it lands matters to a writer who has read: guarded by that version. Where
# nothing was read, the end at which it begins is its guard.
BLOB_APPEND_BLOCK = _appends(
    "blob.append_block",
    "append-block",
    honours=FULL | APPEND,
    http=speaks("PUT", "appendblock", headers=(_OCTETS,), sends=_ENCRYPTION, returns=_APPENDED, ok=(201,)),
)
BLOB_APPEND_BLOCK_FROM_URL = _appends(
    "blob.append_block_from_url",
    "append-block-from-url",
    honours=FULL | APPEND | SOURCE,
    http=speaks("PUT", "appendblock", sends=f"{_SOURCE} {_ENCRYPTION}", returns=_APPENDED, ok=(201,)),
)
BLOB_SEAL_APPEND_BLOB = _changes(
    "blob.seal_append_blob",
    "append-blob-seal",
    honours=STANDARD | POSITION,
    settle=Settlement.FOUND,
    http=speaks("PUT", "seal", returns="etag last_modified"),
    since="2019-12-12",
)
BLOB_PUT_PAGE = _changes_held(
    "blob.put_page",
    "put-page",
    honours=FULL | SEQUENCE,
    http=speaks("PUT", "page", headers=(_UPDATES, _OCTETS), sends=f"range {_ENCRYPTION}", returns=_PAGES, ok=(201,)),
)
BLOB_CLEAR_PAGE = _changes_held(
    "blob.clear_page",
    "put-page",
    honours=FULL | SEQUENCE,
    http=speaks(
        "PUT", "page", headers=(("x-ms-page-write", "clear"),), sends=f"range {_ENCRYPTION}", returns=_PAGES, ok=(201,)
    ),
)
BLOB_PUT_PAGE_FROM_URL = _changes_held(
    "blob.put_page_from_url",
    "put-page-from-url",
    honours=FULL | SEQUENCE | SOURCE,
    http=speaks("PUT", "page", headers=(_UPDATES,), sends=f"range {_SOURCE} {_ENCRYPTION}", returns=_PAGES, ok=(201,)),
)
BLOB_GET_PAGE_RANGES = _reads(
    "blob.get_page_ranges", "get-page-ranges", http=speaks("GET", "pagelist", sends="range prevsnapshot marker")
)
