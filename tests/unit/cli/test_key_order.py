"""The order of the keys of a result, of which some are inherited."""

from azguard.blobs.containers import ContainerAcl
from azguard.blobs.copies import BlobCopied
from azguard.blobs.snapshots import BlobSnapshot, UpdateReportKept
from azguard.cli.output.json_form import _list_printed
from azguard.files.copies import FileCopied
from azguard.files.entries import DirectoryShown
from azguard.files.files import FileRenamed
from azguard.files.replacing import FilePut
from azguard.files.shares import ShareShown
from azguard.leases.breaking import BreakDone
from azguard.queues.message_format import MessagePut
from azguard.tables.transactions import ItemWritten


def test_inherited_keys_stand_before_and_after_those_of_the_result() -> None:
    """Scripts read TSV by position, and people compare the JSON of two runs."""
    expected = {
        BlobCopied: "address source source_etag etag last_modified version_id content_length blob_type "
        "copy_id copy_status guard attempts conflicts outcome created",
        BlobSnapshot: "address snapshot snapshot_address base_etag etag last_modified guard attempts conflicts outcome",
        BreakDone: "address lease_id etag last_modified action duration lease_time "
        "guard attempts conflicts outcome broken",
        ContainerAcl: "address etag last_modified public_access policies",
        DirectoryShown: "address name share etag last_modified attributes created written changed "
        "permission_key file_id parent_id metadata",
        FileCopied: "address source source_etag etag last_modified content_length content_type "
        "copy_id copy_status guard attempts conflicts outcome created",
        FilePut: "address etag last_modified content_length content_type content_hash "
        "guard attempts conflicts outcome created",
        FileRenamed: "address previous_address etag last_modified guard attempts conflicts outcome",
        ItemWritten: "line op address etag last_modified guard attempts conflicts outcome",
        MessagePut: "address id pop_receipt time_next_visible guard attempts conflicts outcome "
        "etag last_modified insertion_time expiration_time",
        ShareShown: "address name snapshot etag last_modified quota access_tier protocols root_squash "
        "lease_status lease_state lease_duration deleted deleted_version remaining_retention_days metadata",
        UpdateReportKept: "address etag last_modified version_id content_length guard attempts conflicts doubts "
        "outcome created op_id applied_at written_since created_keys merged_with snapshot",
    }
    assert {kind: " ".join(_list_printed(kind)) for kind in expected} == expected
