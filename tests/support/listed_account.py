"""An account whose listings a test writes down: containers, the blobs in them, and which of them may not be listed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import SimpleNamespace
from typing import Any

from azure.core.exceptions import HttpResponseError

from azguard.accounts.account import Auth

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
_PAGE = 1000
_DATE = {"Date": "Sun, 22 Nov 2026 12:00:00 GMT"}


def item(
    name: str,
    state: str = "available",
    *,
    metadata: Mapping[str, str] | None = None,
    duration: str | None = None,
    age_seconds: float = 0,
    blob_type: str = "BlockBlob",
) -> Any:
    """Return a blob, or a container, as the SDK lists it."""
    status = "locked" if state in ("leased", "breaking") else "unlocked"
    usual = "fixed" if state == "leased" else None
    return SimpleNamespace(
        name=name,
        lease=SimpleNamespace(state=state, status=status, duration=duration or usual),
        etag='"0x1"',
        last_modified=NOW - timedelta(seconds=age_seconds),
        metadata=dict(metadata or {}),
        blob_type=blob_type,
    )


def refusal(status: int, code: str) -> HttpResponseError:
    """Return a refusal of the service as the SDK raises it."""
    error = HttpResponseError(message=code)
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined]  # as the SDK's own handler of errors sets it
    return error


def _answer(hook: Callable[[Any], None]) -> None:
    request = SimpleNamespace(headers={})
    answer = SimpleNamespace(status_code=200, headers=_DATE, request=request, body=bytes)
    hook(SimpleNamespace(http_response=answer))


@dataclass(frozen=True)
class _Pager:
    """A listing of the SDK's: a page, or the error instead of it."""

    items: Iterable[Any]
    error: Exception | None
    hook: Callable[[Any], None]

    def by_page(self) -> Iterator[list[Any]]:
        items = iter(self.items)
        pages = iter(lambda: list(islice(items, _PAGE)), [])

        def fetch() -> list[Any] | None:
            _answer(self.hook)
            if self.error is not None:
                raise self.error
            return next(pages, None)

        return _Pages(fetch)


@dataclass
class _Pages(Iterator[list[Any]]):
    """The pages of a listing; no generator, which a failure would end: the SDK's own can be asked again."""

    fetch: Callable[[], list[Any] | None]
    #: Where the next page begins: none of a test is long enough to lead back.
    continuation_token: None = None

    def __next__(self) -> list[Any]:
        if (page := self.fetch()) is None:
            raise StopIteration
        return page


@dataclass
class ListedAccount:
    """The account: what is in each container, in order of name."""

    blobs: Mapping[str, Iterable[Any]]
    #: The error instead of the listing of a container.
    errors: Mapping[str, Exception] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=lambda: {"blob": "http://127.0.0.1/a"})
    leased_containers: Mapping[str, Any] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)
    #: The containers whose blobs were asked for.
    asked: list[str] = field(default_factory=list)

    auth: Auth = Auth.ANONYMOUS
    secret: str | None = None

    def endpoint(self, _service: str) -> str:
        return "https://acc.blob.core.windows.net"

    def keep(self, _name: str, _make: Callable[[], Any]) -> Any:
        """Return what stands for the SDK's client of the service."""
        return SimpleNamespace(
            list_containers=self._list_containers,
            get_container_client=self._find_container,
            get_blob_client=self._find_blob,
        )

    def _list_containers(self, name_starts_with: str | None, raw_response_hook: Any, **_: Any) -> _Pager:
        names = sorted(name for name in self.blobs if name.startswith(name_starts_with or ""))
        found = [self.leased_containers.get(name) or item(name) for name in names]
        return _Pager(found, None, raw_response_hook)

    def _find_container(self, name: str) -> Any:
        def list_blobs(name_starts_with: str | None, raw_response_hook: Any, **_: Any) -> _Pager:
            self.asked.append(name)
            found = (each for each in self.blobs[name] if each.name.startswith(name_starts_with or ""))
            return _Pager(found, self.errors.get(name), raw_response_hook)

        return SimpleNamespace(list_blobs=list_blobs)

    def _find_blob(self, container: str, name: str, *_: Any, **__: Any) -> Any:
        content = self.contents.get(f"{container}/{name}", b"")
        return SimpleNamespace(download_blob=lambda **_: SimpleNamespace(readall=lambda: content))
