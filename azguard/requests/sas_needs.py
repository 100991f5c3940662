"""The permissions that a SAS needs for a request, by its method and its query.

Source: https://learn.microsoft.com/rest/api/storageservices/create-service-sas
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

# The permission that a request on a blob needs, by its comp; of several letters one.
_BY_COMP = {"list": "l", "tags": "t", "lease": "wd", "appendblock": "aw"}
_FILES_BY_COMP = {"list": "l", "listhandles": "l", "lease": "wd", "forceclosehandles": "wd"}


def list_permissions(request: Any, service: str) -> tuple[str, ...]:
    """Return what a SAS needs for a request: of each text, one of its letters. Nothing where that is not known."""
    url = urlsplit(request.url)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    if service == "table":
        return _list_for_tables(request, url.path.rpartition("/")[2])
    if service == "file" and query.get("comp") != "acl":
        return (_list_for_files(request.method, query.get("comp")),)
    if service != "blob" or query.get("comp") == "acl":
        return ()
    needed = _list_for_blobs(request.method, query)
    if needed and any(name.lower() in ("x-ms-tags", "x-ms-if-tags") for name in request.headers):
        return (needed, "t")
    return (needed,) if needed else ()


def _list_for_tables(request: Any, name: str) -> tuple[str, ...]:
    if name == "$batch":
        return ()
    if name.startswith("Tables"):
        return {"GET": ("l",), "POST": ("cw",), "DELETE": ("d",)}.get(request.method, ())
    if request.method in ("PUT", "PATCH", "MERGE"):
        # Without a condition it may have to insert the entity.
        return ("u",) if "If-Match" in request.headers else ("u", "a")
    return {"GET": ("r",), "POST": ("a",), "DELETE": ("d",)}.get(request.method, ())


def _list_for_blobs(method: str, query: Mapping[str, str]) -> str | None:
    comp = query.get("comp")
    if comp in _BY_COMP:
        return _BY_COMP[comp]
    if method in ("GET", "HEAD"):
        return "r"
    if method == "DELETE":
        return "x" if "versionid" in query else "d"
    return "cw" if comp in (None, "block", "blocklist", "snapshot") else "w"


def _list_for_files(method: str, comp: str | None) -> str:
    if comp in _FILES_BY_COMP:
        return _FILES_BY_COMP[comp]
    return {"GET": "r", "HEAD": "r", "DELETE": "d"}.get(method) or ("cw" if comp is None else "w")
