"""ETags as people type them → as they are sent; and which text can be the ETag of which kind of resource."""

import re

from azguard.address import Kind
from azguard.errors import UsageError

_QUOTE = '"'
_BLOB = re.compile(r'"[!#-&(-)+\--?A-~][!#-&(-)+\--~]*"')
# A table has none of its own; azguard makes one of its access policies.
_TABLE = re.compile(r'"acl-[0-9a-f]{32}"')
_ENTITY = re.compile(r"""W/"datetime'[!#-&(-)+-~]+'\"""")
# The pop receipt of a message is its version.
_RECEIPT = re.compile(r"[!#-~]+")
_OF_KIND = dict.fromkeys((Kind.CONTAINER, Kind.BLOB, Kind.QUEUE, Kind.SHARE, Kind.DIR, Kind.FILE), _BLOB) | {
    Kind.TABLE: _TABLE,
    Kind.MESSAGE: _RECEIPT,
    Kind.ENTITY: _ENTITY,
}


def is_version(kind: Kind, text: str) -> bool:
    """Return whether a text names one version of such a resource, byte for byte as the service gives it.

    Only that may be remembered and sent as a guard: ``*``, or a list, would match a version that was never read.
    """
    pattern = _OF_KIND.get(kind)
    return pattern is not None and pattern.fullmatch(text) is not None


def parse_blob_etag(etag: str, argument: str = "etag") -> str:
    """Return a blob-service ETag in quotes, as it is sent; bare and quoted are accepted.

    Raises:
        UsageError: it is neither, or it is weak, which these services never hand out.
    """
    text = etag.strip()
    if text.startswith("W/"):
        raise UsageError(f"{etag!r} is a weak ETag, which only tables have", argument=argument, reason="etag_weak")
    bare = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not re.fullmatch(r"[!#-)+\--~]+", bare) or "'" in bare or bare.startswith("@"):
        raise UsageError(f"{etag!r} is not an ETag", argument=argument, reason="etag_malformed")
    return quote_etag(bare)


def quote_etag(etag: str) -> str:
    """Return an ETag of the service in quotes: its listings and the SDK give some without."""
    return f'"{etag.strip(_QUOTE)}"'


def parse_table_etag(kind: Kind, etag: str, argument: str) -> str:
    """Return the ETag of an entity, or of a table's access policies, as it is, byte for byte."""
    if is_version(kind, etag):
        return etag
    if kind is Kind.TABLE:
        raise UsageError(
            f"{etag!r} is not the ETag of a table's policies", argument=argument, reason="policies_etag_malformed"
        )
    raise UsageError(f"{etag!r} is not the ETag of an entity", argument=argument, reason="entity_etag_malformed")
