"""The HTTP server of the emulator: which request is which operation, and what a SAS must allow for it."""

import logging
import re
import socket
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler

from azguard.emulators.files import (
    answers,
    copies,
    directories,
    file_operations,
    handles,
    put_range,
    shares,
    signatures,
)
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.arbiter import Opens, Smb
from azguard.emulators.files.database import DIRECTORY, FILE
from azguard.emulators.files.request import FileRequest, ask_source, is_here, read_request, refuse_source, split_target
from azguard.emulators.files.samba import Unserved
from azguard.emulators.files.signatures import Needs
from azguard.emulators.files.store import Store
from azguard.frozen import frozen

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse


_LOG = logging.getLogger("azguard.emulators.files")
# A range of 4 MiB, or a document.
_LARGEST_BODY = 4 * 1024**2 + 65_536
# In the folder of the first account, that of the others.
_OTHERS = "accounts"
_OLDEST_VERSION = "2018-11-09"
# The methods by which shares are made, renamed and deleted.
_CHANGING = ("PUT", "DELETE")
_READS = signatures.Needs("r", "o", "r")
_BODYLESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_SERVICE, _SHARE = "service", "share"


class Application:
    """Answers requests to one account; one at a time, but for the content that is sent."""

    def __init__(self, store: Store, account: str, key: bytes, smb: Smb | None = None) -> None:
        self._store = store
        #: What serves the shares over SMB as well; None if they are not.
        self._smb = smb
        self._account = account
        self._key = key

    def __call__(self, environ: dict[str, Any], start: "StartResponse") -> Iterable[bytes]:
        """Answer a request of WSGI."""
        request_id = str(uuid.uuid4())
        head: list[tuple[str, str]] = environ["azguard.headers"]
        method = environ["REQUEST_METHOD"]
        try:
            answer = self._answer(environ, method, head)
        except ServiceError as error:
            answer = answers.respond_error(error, request_id, self._store.now(), head=method == "HEAD")
        except (OSError, sqlite3.Error, Unserved):
            _LOG.exception("%s %s", method, _redact(environ["RAW_URI"]))
            failure = ServiceError("InternalError")
            answer = answers.respond_error(failure, request_id, self._store.now(), head=method == "HEAD")
        given = {name.lower(): value for name, value in head}
        headers = {
            "Server": "Windows-Azure-File/1.0 azguard",
            "x-ms-request-id": request_id,
            "x-ms-version": given.get("x-ms-version", _OLDEST_VERSION),
            "Date": answers.format_date(self._store.now()),
            **answer.headers,
        }
        if "x-ms-client-request-id" in given:
            headers["x-ms-client-request-id"] = given["x-ms-client-request-id"]
        return _send(start, answer, headers, method)

    def _answer(self, environ: dict[str, Any], method: str, head: list[tuple[str, str]]) -> FileAnswer:
        body = _read_body(environ)
        request = read_request(method, environ["RAW_URI"], head, body, [self._account])
        if request.account != self._account:
            raise ServiceError("AuthenticationFailed")
        operation = _find_operation(request)
        if "x-ms-structured-body" in request.headers:
            # It would be kept as if it were the content.
            raise ServiceError("UnsupportedHeader")
        with self._store.transaction():
            self._check(request, operation.needs, environ["REMOTE_ADDR"])
        # Looked for outside a transaction: that server may ask this one.
        request = copies.look_elsewhere(request, self._key, self._store.now())
        admitted = nullcontext() if self._smb is None else self._smb.admit(self._store, request, operation.opens)
        with admitted, self._store.transaction():
            answer = operation.run(self._store, request)
            if self._smb is not None and request.method in _CHANGING and not request.path:
                self._smb.publish(self._store)
            return answer

    def _check(self, request: FileRequest, needs: signatures.Needs, address: str) -> None:
        now, key = self._store.now(), self._key
        signatures.check(request, key, needs, lambda: self._find_policies(request), address, now)
        source = request.headers.get("x-ms-copy-source", "")
        # The key that signs a copy of a whole file is good for its source as well.
        is_signed = "authorization" in request.headers and request.query.get("comp") != "range"
        if not source or not is_here(request, source) or is_signed:
            return
        asked = ask_source(request, source)
        try:
            signatures.check(asked, key, _READS, lambda: self._find_policies(asked), address, now)
        except ServiceError as error:
            raise refuse_source(error.status, error.code) from None

    def _find_policies(self, request: FileRequest) -> str:
        share = self._store.database.find_share(request.share)
        return share.policies if share else ""


class _Dispatcher:
    """Gives each request to the application of its account."""

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self._applications = applications

    def __call__(self, environ: dict[str, Any], start: "StartResponse") -> Iterable[bytes]:
        """Answer a request of WSGI; what names no account of ours is refused by the first one."""
        account, _, _ = split_target(environ["RAW_URI"], self._applications, environ.get("HTTP_HOST", ""))
        found = self._applications.get(account) or next(iter(self._applications.values()))
        return found(environ, start)


class _Handler(WSGIRequestHandler):
    """Reads requests with the case of their headers, and keeps connections open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    #: How long a connection may be idle, in seconds.
    timeout = 120

    def run_wsgi(self) -> None:
        """Answer one request. Werkzeug's own ends each connection, and sends two of its headers beside ours."""
        if self.headers.get("Expect", "").strip().lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.environ = self.make_environ()
        self._is_answered = False
        body: Iterable[bytes] = ()
        try:
            body = self.server.app(self.environ, self._start)
            for each in body:
                self.wfile.write(each)
        except ConnectionError:
            self.close_connection = True
        except Exception:  # noqa: BLE001  # whatever failed, the others are answered
            _LOG.exception("%s %s", self.command, _redact(self.path))
            # The client must not take what was sent for the whole answer.
            self.close_connection = True
            if not self._is_answered:
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _start(self, status: str, headers: list[tuple[str, str]], _: object = None) -> Callable[[bytes], object]:
        """Send the head of the answer; see ``start_response`` of WSGI."""
        self._is_answered = True
        code, words = status.split(" ", 1)
        self.log_request(code)
        self.send_response_only(int(code), words)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        return self.wfile.write

    def make_environ(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().make_environ()
        environ["azguard.headers"] = list(self.headers.items())
        environ["RAW_URI"] = self.path
        return environ

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        # A line that is no request, such as the first one of TLS, has no path.
        _LOG.info("%s %s %s", self.command, _redact(getattr(self, "path", "")), code)

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  # the name in the base class
        _LOG.info(message, *args)


class _Server(ThreadedWSGIServer):
    """A server that ends its connections when it is closed."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._open = set[socket.socket]()
        super().__init__(*arguments, **settings)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def serve(
    folder: Path,
    accounts: Mapping[str, bytes],
    host: str,
    port: int,
    *,
    retention_days: int = 0,
    share_deletion_seconds: float = 0,
    smb: Smb | None = None,
) -> "Running":
    """Start a server in a thread of this process, as tests do; ``smb`` serves the shares of the first account, too."""
    stores: list[Store] = []
    applications = {}
    for name, key in accounts.items():
        store = Store(
            folder / _OTHERS / name if stores else folder,
            retention_days=retention_days,
            share_deletion_seconds=share_deletion_seconds,
        )
        with store.transaction():
            shares.forget_expired(store)
        if smb is not None and not stores:
            smb.begin(store)
        applications[name] = Application(store, name, key, None if stores else smb)
        stores.append(store)
    # It listens before it is returned; port 0 takes a free one.
    with socket.create_server((host, port)) as listening:
        server = _Server(host, port, _Dispatcher(applications), _Handler, fd=listening.fileno())
    server.daemon_threads = True
    return Running(server, stores)


class Running:
    """A server that runs in a thread."""

    def __init__(self, server: BaseWSGIServer, stores: Sequence[Store]) -> None:
        self._server = server
        self._stores = stores
        #: The port that it listens on.
        self.port = server.port
        self._thread = threading.Thread(target=server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop it, and close its files."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for store in self._stores:
            store.close()


def _redact(target: str) -> str:
    return re.sub(r"([?&]sig=)[^&]*", r"\1redacted", target, flags=re.IGNORECASE)


def _read_body(environ: Mapping[str, Any]) -> bytes:
    if environ.get("HTTP_TRANSFER_ENCODING"):
        raise ServiceError("MissingContentLengthHeader", Connection="close")
    told = environ.get("CONTENT_LENGTH") or "0"
    if not (told.isascii() and told.isdecimal()):
        raise ServiceError("InvalidHeaderValue", Connection="close")
    length = int(told)
    if length > _LARGEST_BODY:
        raise ServiceError("RequestBodyTooLarge", Connection="close")
    body: bytes = environ["wsgi.input"].read(length) if length else b""
    if len(body) < length:
        raise ServiceError("InvalidInput", Connection="close")
    return body


def _send(start: "StartResponse", answer: FileAnswer, headers: dict[str, str], method: str) -> Iterable[bytes]:
    length = headers.setdefault("Content-Length", str(len(answer.body)))
    if method == "HEAD" or answer.status in _BODYLESS:
        # A HEAD tells the length that the content has.
        _start(start, answer.status, {**headers, "Content-Length": length})
        return []
    _start(start, answer.status, headers)
    return answer.stream if answer.stream is not None else [answer.body]


def _start(start: Callable[..., Any], status: int, headers: Mapping[str, str]) -> None:
    start(f"{status} {HTTPStatus(status).phrase}", [(name, _encode(value)) for name, value in headers.items()])


def _encode(value: str) -> str:
    """Return a value as a header can carry it: its UTF-8, a character a byte."""
    return value.encode().decode("latin-1") if not value.isascii() else value


@frozen
class Route:
    """An operation: what does it, and what a SAS must allow."""

    run: Callable[[Store, FileRequest], FileAnswer]
    needs: Needs
    #: How it opens its file over SMB, if the shares are served so.
    opens: Opens = Opens.NOTHING


def _of_share(run: Callable[[Store, FileRequest], FileAnswer], account: str, service: str = "") -> Route:
    return Route(run, Needs(account, "c", service))


def _of_item(run: Callable[[Store, FileRequest], FileAnswer], letters: str, opens: Opens = Opens.NOTHING) -> Route:
    return Route(run, Needs(letters, "o", letters), opens)


# By methods, kind of resource and ``comp``.
_ROUTES: Mapping[tuple[str, str, str], Route] = {
    ("GET", _SERVICE, "list"): Route(directories.list_shares, Needs("l", "s")),
    ("GET", _SERVICE, "properties"): Route(shares.show_service, Needs("r", "s")),
    ("PUT", _SERVICE, "properties"): Route(shares.set_service, Needs("w", "s")),
    ("PUT", _SHARE, ""): _of_share(shares.create, "cw"),
    ("GET HEAD", _SHARE, ""): _of_share(shares.show, "r"),
    ("DELETE", _SHARE, ""): _of_share(shares.delete, "d"),
    ("PUT", _SHARE, "snapshot"): _of_share(shares.snapshot, "cw"),
    ("PUT", _SHARE, "undelete"): _of_share(shares.restore, "w"),
    ("PUT", _SHARE, "properties"): _of_share(shares.set_properties, "w"),
    ("GET HEAD", _SHARE, "metadata"): _of_share(shares.show_metadata, "r"),
    ("PUT", _SHARE, "metadata"): _of_share(shares.set_metadata, "w"),
    ("GET", _SHARE, "acl"): _of_share(shares.show_policies, ""),
    ("PUT", _SHARE, "acl"): _of_share(shares.set_policies, ""),
    ("GET", _SHARE, "stats"): _of_share(shares.show_stats, "r"),
    ("PUT", _SHARE, "lease"): _of_share(shares.lease, "wd"),
    ("PUT", _SHARE, "filepermission"): _of_share(shares.create_permission, "cw", "cw"),
    ("GET", _SHARE, "filepermission"): _of_share(shares.show_permission, "r", "r"),
    ("PUT", DIRECTORY, ""): _of_item(directories.create, "cw"),
    ("GET HEAD", DIRECTORY, ""): _of_item(directories.show, "r"),
    ("DELETE", DIRECTORY, ""): _of_item(directories.delete, "d", Opens.DELETE),
    ("GET", DIRECTORY, "list"): Route(directories.list_directory, Needs("l", "c", "l")),
    ("GET HEAD", DIRECTORY, "metadata"): _of_item(file_operations.show_metadata, "r", Opens.LOOK),
    ("PUT", DIRECTORY, "metadata"): _of_item(directories.set_metadata, "w"),
    ("PUT", DIRECTORY, "properties"): _of_item(directories.set_properties, "w"),
    ("PUT", DIRECTORY, "rename"): _of_item(partial(file_operations.rename, kind=DIRECTORY), "w", Opens.RENAME),
    ("PUT", FILE, ""): _of_item(file_operations.create, "cw", Opens.REPLACE),
    ("GET", FILE, ""): _of_item(file_operations.get, "r", Opens.READ),
    ("HEAD", FILE, ""): _of_item(file_operations.show, "r", Opens.LOOK),
    ("DELETE", FILE, ""): _of_item(file_operations.delete, "d", Opens.DELETE),
    ("PUT", FILE, "range"): _of_item(put_range.put, "w", Opens.WRITE),
    ("GET", FILE, "rangelist"): _of_item(put_range.show, "r", Opens.READ),
    ("GET HEAD", FILE, "metadata"): _of_item(file_operations.show_metadata, "r", Opens.LOOK),
    ("PUT", FILE, "metadata"): _of_item(file_operations.set_metadata, "w", Opens.CHANGE),
    ("PUT", FILE, "properties"): _of_item(file_operations.set_properties, "w", Opens.CHANGE),
    ("PUT", FILE, "lease"): _of_item(file_operations.lease, "wd", Opens.LEASE),
    ("PUT", FILE, "rename"): _of_item(partial(file_operations.rename, kind=FILE), "w", Opens.RENAME),
    ("PUT", FILE, "copy"): _of_item(copies.abort, "w"),
    ("GET", FILE, "listhandles"): Route(handles.show, Needs("l", "o", "l")),
    ("PUT", FILE, "forceclosehandles"): _of_item(handles.close, "wd"),
}
#: What is served, by method, kind of resource and ``comp``.
OPERATIONS = {
    (method, kind, comp): route for (methods, kind, comp), route in _ROUTES.items() for method in methods.split()
}
_COPY = _of_item(copies.copy, "cw", Opens.REPLACE)


def _find_operation(request: FileRequest) -> Route:
    comp = request.query.get("comp", "").lower()
    kind = _find_kind(request, comp)
    if request.method == "PUT" and kind == FILE and not comp and "x-ms-copy-source" in request.headers:
        return _COPY
    if (found := OPERATIONS.get((request.method, kind, comp))) is not None:
        return found
    if any(found[1:] == (kind, comp) for found in OPERATIONS):
        raise ServiceError("UnsupportedHttpVerb")
    raise ServiceError("InvalidQueryParameterValue")


def _find_kind(request: FileRequest, comp: str) -> str:
    if not request.share:
        return _SERVICE
    restype = request.query.get("restype", "").lower()
    if restype in (_SHARE, DIRECTORY):
        return restype
    if comp in ("undelete", "filepermission"):
        return _SHARE
    return FILE
