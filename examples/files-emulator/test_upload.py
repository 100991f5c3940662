"""A test that uses the fixture of conftest.py."""

from azure.storage.fileshare import ShareServiceClient


def test_a_file_goes_up_and_down(file_service: ShareServiceClient) -> None:
    share = file_service.create_share("work")
    file = share.get_file_client("hello.txt")
    file.upload_file(b"hello")
    assert file.download_file().readall() == b"hello"
