"""The blob that a lock's name means."""

import pytest

from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.words.hints import in_words
from azguard.errors import ConfigError, UsageError
from tests.support.cases import cases

_ACCOUNT = "AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/acc"


def _environment(**environ: str) -> Environment:
    return Environment({}, None, "lock run", {"AZURE_STORAGE_CONNECTION_STRING": _ACCOUNT, **environ})


@cases(
    ("text", "container", "address"),
    ("deploy", None, "blob:locks/deploy"),
    ("deploy", "other", "blob:other/deploy"),
    ("site/deploy", None, "blob:site/deploy"),
    ("blob:site/deploy", None, "blob:site/deploy"),
    ("Déploiement 1.4", None, "blob:locks/Déploiement 1.4"),
    ("http://127.0.0.1:9/acc/site/deploy", None, "blob:site/deploy"),
)
def test_a_bare_name_is_a_blob_in_the_container_of_locks(text: str, container: str | None, address: str) -> None:
    assert str(addresses.lock(_environment(), text, container).address) == address


def test_the_environment_names_the_container_unless_an_option_does() -> None:
    env = _environment(AZGUARD_LOCK_CONTAINER="ours")
    found = [str(addresses.lock(env, "a", container).address) for container in (None, "other")]
    assert found == ["blob:ours/a", "blob:other/a"]


@cases("text", "deploy", "table:Orders")
def test_an_empty_container_of_the_environment_is_refused_and_not_taken_for_the_usual_one(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        addresses.lock(_environment(AZGUARD_LOCK_CONTAINER=""), text, None)
    assert refused.value.message == "AZGUARD_LOCK_CONTAINER is set but empty"


@cases("text", "site/deploy", "blob:site/deploy", "http://127.0.0.1:9/acc/site/deploy")
def test_a_container_for_a_lock_that_names_its_own_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        addresses.lock(_environment(), text, "other")
    assert refused.value.message == "--lock-container is for bare names, and blob:site/deploy names its own container"


@cases("text", "deploy", "table:Orders")
def test_a_container_is_taken_where_one_of_several_locks_is_in_it(text: str) -> None:
    found = addresses.locks(_environment(), ["blob:site/deploy", text], "other")
    assert [each.address.container for each in found] == ["site", "other"]


@cases(
    ("text", "container", "message"),
    ("", None, "the address is empty"),
    (" ", None, "the address is empty"),
    ("tabel:Orders", None, "'tabel:Orders' does not say what kind of resource it is"),
    ("queue:jobs", None, "a lock is a blob, a share, a file, or a table that a blob stands for; not a queue"),
    ("deploy?sig=x", None, "a SAS stands behind 'blob:locks/deploy', and a plain address takes none"),
    ("deploy", "a/b", "'a/b' is not a container name"),
    ("deploy", "table:Orders", "'table:Orders' names a table, and this command takes a container"),
)
def test_what_is_no_name_is_refused(text: str, container: str | None, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        addresses.lock(_environment(), text, container)
    assert in_words(refused.value).message == message
