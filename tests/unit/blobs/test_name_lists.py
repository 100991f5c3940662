"""Listings as trees read them: names that XML cannot hold, pages, and answers that are no listing."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from azguard.accounts.account import Account, Auth, Target, encrypt_with
from azguard.address import Address, Kind
from azguard.blobs.listing import BlobPrefix, BlobWithTags, list_blobs, list_kept
from azguard.blobs.trees import BlobTree
from azguard.errors import Unavailable
from azguard.requests.deadline import Deadline
from azguard.resources.tree_store import ListedItem
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases

_ALL = (
    "<Blob><Name>a &amp; b.txt</Name><Properties><Etag>0x1</Etag><Last-Modified>Sun, 22 Nov 2026 10:00:00 GMT"
    "</Last-Modified><Content-Length>5</Content-Length><Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5>"
    "</Properties></Blob><NextMarker />"
)
_FIRST = (
    '<Blob><Name Encoded="true">%EF%BF%BE%01</Name><Properties><Etag>"0x2"</Etag><Content-Length>0</Content-Length>'
    "</Properties></Blob><NextMarker>2!more</NextMarker>"
)
_MOMENT = "2026-11-25T10:00:00.0000000Z"
_ONLY_BLOCKS = "<Blob><Name>new</Name><Properties /></Blob><NextMarker />"


@dataclass
class Pages(AnsweringClient):
    """Answers with one page after the other."""

    pages: list[bytes]
    asked: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked.query)
        return reply(200, {"x-ms-meta-m": "1"}, self.pages.pop(0))


def build_page(text: str) -> bytes:
    blobs, _, marker = text.rpartition("<NextMarker")
    return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker{marker}</EnumerationResults>".encode()


def read(pages: Pages, prefix: str = "") -> list[ListedItem]:
    return list(BlobTree(root=place(pages), prefix=prefix).list_items(Deadline(0.0)))


def place(pages: Pages) -> Target:
    account = Account("acct", {"blob": "https://acct.blob.core.windows.net"}, Auth.ANONYMOUS, None, {"client": pages})
    return Target(account, Address(Kind.CONTAINER, ("site",)))


def test_a_listing_is_read_page_after_page_with_the_prefix_and_the_marker_of_each() -> None:
    pages = Pages([build_page(_FIRST), build_page(_ALL)])
    found = read(pages, "a b/")
    assert found == [
        ListedItem("\ufffe\x01", '"0x2"', None, 0, None),
        ListedItem("a & b.txt", '"0x1"', datetime(2026, 11, 22, 10, tzinfo=UTC), 5, "XUFAKrxLKna5cZ2REBfFkg=="),
    ]
    asked = "comp=list&restype=container&prefix=a%20b%2F"
    assert pages.asked == [asked, f"{asked}&marker=2%21more"]


def test_a_directory_of_a_hierarchical_namespace_is_no_blob() -> None:
    directory = "<Blob><Name>sub</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>"
    file = "<Blob><Name>sub/a</Name><Properties><ResourceType>file</ResourceType></Properties></Blob>"
    found = read(Pages([build_page(f"{directory}{file}<NextMarker />")]))
    assert [each.name for each in found] == ["sub/a"]


def test_a_blob_of_uncommitted_blocks_has_no_version() -> None:
    assert read(Pages([build_page(_ONLY_BLOCKS)])) == [ListedItem("new", None, None, None, None)]


def test_a_line_of_a_listing_tells_all_that_a_blob_shows() -> None:
    told = (
        f"<Blob><Name>a</Name><Snapshot>{_MOMENT}</Snapshot><Deleted>true</Deleted><Properties><Etag>0x1</Etag>"
        "<Content-Length>5</Content-Length><Content-Type>text/x</Content-Type><Content-Encoding />"
        "<Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>"
        "<LeaseState>available</LeaseState><CopyStatus>success</CopyStatus><TagCount>2</TagCount></Properties>"
        "<Metadata><k>v</k><azguardlineage>x</azguardlineage></Metadata></Blob>"
        "<BlobPrefix><Name>a/</Name></BlobPrefix><NextMarker />"
    )
    pages = Pages([build_page(told)])
    found = list(list_blobs(place(pages), Deadline(0.0), delimiter="/", include=["deleted"]))
    assert found[0] == BlobPrefix("blob:site/a/", "a/")
    shown = {name: value for name, value in vars(found[1]).items() if value is not None}
    assert shown == {
        "address": f"blob:site/a?snapshot={_MOMENT}",
        "name": "a",
        "container": "site",
        "etag": '"0x1"',
        "content_length": 5,
        "content_type": "text/x",
        "content_md5": "XUFAKrxLKna5cZ2REBfFkg==",
        "lease_state": "available",
        "copy_status": "success",
        "blob_type": "BlockBlob",
        "tier": "Hot",
        "tag_count": 2,
        "snapshot": _MOMENT,
        "deleted": True,
        "metadata": {"k": "v"},
    }
    assert pages.asked == ["comp=list&restype=container&delimiter=%2F&include=deleted"]


def test_a_listing_with_tags_tells_those_of_each_blob() -> None:
    told = (
        "<Blob><Name>a</Name><Tags><TagSet><Tag><Key>state</Key><Value>a &amp; b</Value></Tag>"
        "<Tag><Key>done</Key><Value /></Tag></TagSet></Tags></Blob><Blob><Name>b</Name></Blob><NextMarker />"
    )
    found = list_blobs(place(Pages([build_page(told)])), Deadline(0.0), include=["tags"])
    assert [each.tags for each in found if isinstance(each, BlobWithTags)] == [{"state": "a & b", "done": ""}, {}]


@cases(
    "answer",
    b"",
    b"<html></html>",
    b"<EnumerationResults><Blobs><Blob />",
    b"{}",
    build_page("<Blob><Name>a</Name><Properties><Content-Length>x</Content-Length></Properties></Blob><NextMarker />"),
)
def test_what_is_no_listing_is_no_empty_container(answer: bytes) -> None:
    with pytest.raises(Unavailable):
        read(Pages([answer]))


def test_metadata_that_a_listing_hides_are_read_with_the_key() -> None:
    version = "2026-11-27T00:00:00.0000000Z"
    hidden = f'<Blob><Name>a</Name><VersionId>{version}</VersionId><Metadata Encrypted="true" /></Blob>'
    longer = "<Blob><Name>ab</Name></Blob>"
    pages = Pages([build_page(f"{hidden}{longer}<NextMarker />"), b""])
    account = replace(place(pages).account, encryption=encrypt_with(b"k" * 32))
    found = list_kept(Target(account, Address(Kind.BLOB, ("site", "a"))), ["versions", "metadata"], Deadline(0.0))
    assert [(each.name, each.metadata) for each in found] == [("a", {"m": "1"})]
    assert pages.asked[1] == f"versionid={version.replace(':', '%3A')}"
