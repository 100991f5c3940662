"""An account as another program sees it: what is there, in words to compare, and how to delete it, past azguard."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from azure.storage.blob import generate_account_sas

from azguard.wire.signing import sign

_SENT = {"x-ms-version": "2021-12-02", "Accept": "application/json;odata=nometadata", "Content-Length": "0"}
# What each answer has anew.
_OF_AN_ANSWER = ("Date", "x-ms-request-id")
SERVICES = ("blob", "table", "queue", "file")


@dataclass(frozen=True)
class Account:
    """An account with all four services."""

    connection_string: str

    @cached_property
    def settings(self) -> dict[str, str]:
        """Return the parts of the connection string."""
        return dict(part.split("=", 1) for part in self.connection_string.split(";"))

    @cached_property
    def sas(self) -> str:
        """Return a signature for all of the account."""
        until = datetime.now(UTC) + timedelta(days=1)
        return generate_account_sas(
            self.settings["AccountName"], self.settings["AccountKey"], "sco", "rwdlacupiytfx", until, services="bqtf"
        )

    @cached_property
    def ports(self) -> dict[str, int | None]:
        """Return the port of each service."""
        return {service: urlsplit(self._find_endpoint(service)).port for service in SERVICES}

    def _find_endpoint(self, service: str) -> str:
        return self.settings[f"{service.capitalize()}Endpoint"]

    @cached_property
    def _connections(self) -> dict[str, HTTPConnection]:
        return {service: HTTPConnection("127.0.0.1", port) for service, port in self.ports.items()}

    def ask(self, service: str, path: str, method: str = "GET", **headers: str) -> tuple[str, dict[str, str]]:
        """Ask for what is at a path, and return the body and the headers of the answer."""
        connection = self._connections[service]
        target = f"{urlsplit(self._find_endpoint(service)).path}/{path}"
        sent = {**_SENT, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent["x-ms-date"] = format_datetime(datetime.now(UTC), usegmt=True)
        sent["Authorization"] = self._authorize(service, method, f"{self._find_endpoint(service)}/{path}", sent)
        try:
            connection.request(method, target, headers=sent)
            answer = connection.getresponse()
        except (ConnectionError, HTTPException):
            # It was idle for so long that the service has closed it.
            connection.close()
            connection.request(method, target, headers=sent)
            answer = connection.getresponse()
        assert answer.status != HTTPStatus.FORBIDDEN, (service, path)
        return answer.read().decode("utf-8-sig"), dict(answer.headers)

    def _authorize(self, service: str, method: str, url: str, sent: dict[str, str]) -> str:
        name, key = self.settings["AccountName"], self.settings["AccountKey"]
        return f"SharedKey {name}:{sign(name, key, service, method, url, sent)}"

    def look(self, service: str) -> dict[str, str]:
        """Return what a service has: each resource by its address, in words that change when it does."""
        look = {"blob": self._look_at_blobs, "table": self._look_at_tables, "queue": self._look_at_queues}
        return dict(look.get(service, self._look_at_shares)())

    def _look_at_blobs(self) -> Iterator[tuple[str, str]]:
        for container in self._list("blob", "?comp=list&include=metadata", "Container"):
            name = container.findtext("Name") or ""
            policies, _ = self.ask("blob", f"{name}?restype=container&comp=acl")
            yield f"container:{name}", _write(container) + policies
            path = f"{name}?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs,copy,tags"
            found: dict[str, str] = {}
            for blob in self._list("blob", path, "Blob"):
                address = f"blob:{name}/{blob.findtext('Name')}"
                found[address] = found.get(address, "") + _write(blob)
            if "blob:pairs/a.json" in found:
                found["blob:pairs/a.json"] += self.ask("blob", "pairs/a.json?comp=blocklist&blocklisttype=all")[0]
            yield from found.items()

    def _look_at_tables(self) -> Iterator[tuple[str, str]]:
        for name in re.findall(r'"TableName":"(\w+)"', self.ask("table", "Tables")[0]):
            yield f"table:{name}", self.ask("table", f"{name}?comp=acl")[0] + self.ask("table", f"{name}()")[0]

    def _look_at_queues(self) -> Iterator[tuple[str, str]]:
        for queue in self._list("queue", "?comp=list&include=metadata", "Queue"):
            name = queue.findtext("Name") or ""
            messages, _ = self.ask("queue", f"{name}/messages?peekonly=true&numofmessages=32")
            yield f"queue:{name}", _write(queue) + messages + self.ask("queue", f"{name}?comp=acl")[0]

    def _look_at_shares(self) -> Iterator[tuple[str, str]]:
        for share in self._list("file", "?comp=list&include=metadata,snapshots", "Share"):
            name = share.findtext("Name") or ""
            policies, _ = self.ask("file", f"{name}?restype=share&comp=acl")
            yield f"share:{name}", _write(share) + policies + self._look_into(name)

    def _look_into(self, folder: str) -> str:
        body, _ = self.ask("file", f"{folder}?restype=directory&comp=list&include=timestamps,etag,attributes")
        words = [body]
        for kind, each in re.findall(r"<(File|Directory)>.*?<Name>(.*?)</Name>", body):
            path = f"{folder}/{quote(each)}"
            restype = "?restype=directory" if kind == "Directory" else ""
            _, headers = self.ask("file", f"{path}{restype}", "HEAD")
            words.append(str({name: value for name, value in headers.items() if name not in _OF_AN_ANSWER}))
            words.append(self._look_into(path) if restype else "")
        return "".join(words)

    def delete(self, address: str) -> None:
        """Delete a resource, whoever has leased it."""
        kind, _, name = address.partition(":")
        lease = {"x_ms_lease_action": "break", "x_ms_lease_break_period": "0"}
        if kind in ("container", "share"):
            service = {"container": "blob", "share": "file"}[kind]
            if kind == "share":
                self._free_files(name)
            self.ask(service, f"{name}?restype={kind}&comp=lease", "PUT", **lease)
            snapshots = {"x_ms_delete_snapshots": "include"} if kind == "share" else {}
            self.ask(service, f"{name}?restype={kind}", "DELETE", **snapshots)
        elif kind == "blob":
            self.ask("blob", f"{name}?comp=lease", "PUT", **lease)
            self.ask("blob", name, "DELETE", x_ms_delete_snapshots="include")
        else:
            self.ask(kind, f"Tables('{name}')" if kind == "table" else name, "DELETE")

    def _free_files(self, folder: str) -> None:
        body, _ = self.ask("file", f"{folder}?restype=directory&comp=list")
        for name in re.findall(r"<File>.*?<Name>(.*?)</Name>", body):
            self.ask("file", f"{folder}/{quote(name)}?comp=lease", "PUT", x_ms_lease_action="break")

    def _list(self, service: str, path: str, kind: str) -> list[Any]:
        return list(ET.fromstring(self.ask(service, path)[0]).iter(kind))


def _write(element: Any) -> str:
    return ET.tostring(element, "unicode")
