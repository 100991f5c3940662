"""A request comes late, or twice: it undoes nothing that is written next, and proves nothing of it."""

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import ShareLeaseClient

from azguard.requests.lineage import KEY, Lineage, fresh_op
from tests.support import files_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

_META = "x-ms-meta-"
_PIECE = 4 * 1024**2
#: A write after the record of who holds the lease, which is lost: the words, when that comes after all, whether what
#: is asked then is lost too.
AFTER_THE_RECORD = {
    "undoes nothing": (("file", "metadata", "set", "{file}", "--metadata", "a=1"), " release", False),
    "proves nothing": (("file", "range", "put", "{file}", "--offset", "0"), "comp=range", True),
    "even if the change of the id is lost": (("file", "range", "put", "{file}", "--offset", "0"), " change", True),
}


@dataclass
class Late:
    """The first request with ``which`` in it is lost, and comes at the first one after it that ``comes_at`` names."""

    cli: CliWorld
    file: str
    which: str
    comes_at: str
    loses: bool
    lost: list[Request] = field(default_factory=list)
    #: The statuses of what came late.
    came: list[int] = field(default_factory=list)

    def run(self, *words: str, stdin: bytes) -> Ran:
        with proxy.running(files_world.port(self.cli), self.decide) as between:
            return files_world.through(self.cli, between.port).call(*words, "-o", "json", stdin=stdin)

    def decide(self, request: Request) -> Fault:
        more = [request.headers.get(name, "") for name in ("x-ms-lease-action", "x-ms-range")]
        asked = f"{request.method} {request.path} {' '.join(more)}"
        if not self.lost and self.which in asked:
            self.lost.append(request)
            return Fault.RESET
        if not self.lost or self.came or self.comes_at not in asked:
            return Fault.NONE
        self.deliver()
        return Fault.RESET if self.loses else Fault.NONE

    def deliver(self) -> None:
        self.came.append(self._send(self.lost[0]))

    def _send(self, late: Request) -> int:
        client, lease = files_world.client(self.cli, self.file), late.headers["x-ms-lease-id"]
        try:
            if "comp=properties" in late.path:
                client.resize_file(int(late.headers["x-ms-content-length"]), lease=lease)
            elif "comp=range" in late.path:
                client.upload_range(b"b" * _PIECE, 0, _PIECE, lease=lease)
            else:
                stamped = {key.removeprefix(_META): each for key, each in late.headers.items() if key.startswith(_META)}
                client.set_file_metadata(stamped, lease=lease)
        except HttpResponseError as error:
            return error.status_code or 0
        return 200


@pytest.mark.parametrize("story", AFTER_THE_RECORD)
def test_a_record_of_the_holder_that_comes_late(files_cli: CliWorld, story: str) -> None:
    words, comes_at, loses = AFTER_THE_RECORD[story]
    file = files_world.make(files_cli, b"old")
    etag = files_cli.call("file", "show", file).json["etag"]
    late = Late(files_cli, file, "comp=metadata", comes_at, loses)
    ran = late.run(*(word.format(file=file) for word in words), "--etag", etag, stdin=b"new")
    shown = files_cli.call("file", "show", file).json
    content = files_world.client(files_cli, file).download_file().readall()
    is_set = "metadata" in words
    assert (ran.code, late.came) == (0, [200 if comes_at == " change" else 412])
    assert (content, shown["metadata"]) == ((b"old", {"a": "1"}) if is_set else (b"new", {}))
    assert (shown["lease_state"], shown["etag"]) == ("available", json.loads(ran.stdout)["etag"])
    assert files_cli.call("lease", "list", "--mine", "-o", "json").json == []


@pytest.mark.parametrize("words", [("file", "put", "{file}"), ("safe-update", "file:{file}", "--set", "n=2")])
def test_a_lease_after_its_release_is_ended_by_the_next_write(files_cli: CliWorld, words: tuple[str, ...]) -> None:
    file, lost = files_world.make(files_cli, b'{"n": 1}'), list[Request]()

    def decide(request: Request) -> Fault:
        if request.headers.get("x-ms-lease-action") == "acquire" and not lost:
            lost.append(request)
            return Fault.RESET
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        cli = files_world.through(files_cli, between.port)
        assert cli.call("file", "get", file).code == 0
        asked = [word.format(file=file) for word in words]
        codes = [cli.call(*asked, stdin=b'{"n": 2}').code]
        late = ShareLeaseClient(files_world.client(files_cli, file), lost[0].headers["x-ms-proposed-lease-id"])
        late.acquire()
        codes.append(cli.call("file", "metadata", "set", file, "--metadata", "a=1", "--etag", "@last").code)
    assert (codes, files_world.client(files_cli, file).get_file_properties().lease.state) == ([0, 0], "available")


@pytest.mark.parametrize(
    "words", [("file", "put", "{file}", "--last-writer-wins"), ("safe-update", "file:{file}", "--set", "n=2")]
)
def test_a_temporary_file_created_twice_is_not_emptied(files_cli: CliWorld, words: tuple[str, ...]) -> None:
    file, made = files_world.make(files_cli, b'{"n": 1}'), list[Request]()
    share = file.partition("/")[0]

    def decide(request: Request) -> Fault:
        if "x-ms-type" in request.headers and not made:
            made.append(request)
        elif f"/{file}?comp=rename" in request.path:
            again = files_world.sdk(files_cli, share).get_file_client(made[0].path.rpartition("/")[2])
            again.create_file(int(made[0].headers["x-ms-content-length"]))
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        asked = [word.format(file=file) for word in words]
        ran = files_world.through(files_cli, between.port).call(*asked, stdin=b'{"n": 2}')
    content = files_world.client(files_cli, file).download_file().readall()
    assert (ran.code, content) == (0, b'{"n": 2}')


def test_a_resize_of_the_temporary_file_that_comes_twice_cuts_nothing(files_cli: CliWorld) -> None:
    file, resized = f"{files_world.share(files_cli)}/big", list[Request]()

    def decide(request: Request) -> Fault:
        if "x-ms-content-length" in request.headers and "comp=properties" in request.path:
            resized.append(request)
        elif f"/{file}?comp=rename" in request.path:
            sdk, first = files_world.sdk(files_cli, file.partition("/")[0]), resized[0]
            with suppress(ResourceNotFoundError):
                path = first.path.partition("?")[0].rpartition("/")[2]
                sdk.get_file_client(path).resize_file(int(first.headers["x-ms-content-length"]))
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        ran = files_world.through(files_cli, between.port).call("file", "put", file, stdin=b"a" * (2 * _PIECE + 3))
    found = files_world.client(files_cli, file).get_file_properties().size
    assert (ran.code, len(resized), found) == (0, 3, 2 * _PIECE + 3)


def test_a_resize_that_comes_after_the_record_was_removed_makes_no_other_version(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    late = Late(files_cli, file, "comp=properties", " release", loses=False)
    etag = files_cli.call("file", "show", file).json["etag"]
    ran = late.run("file", "resize", file, "--size", "9", "--etag", etag, stdin=b"")
    shown = files_cli.call("file", "show", file).json
    assert (ran.code, late.came, ran.json["etag"], shown["content_length"]) == (0, [412], shown["etag"], 9)


def test_the_record_of_an_update_that_comes_late_is_refused_under_its_next_lease(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    late = Late(files_cli, file, "comp=metadata", " release", loses=False)
    ran = late.run("safe-update", f"file:{file}", "--metadata", "--set", "a=1", stdin=b"")
    shown = files_cli.call("file", "show", file).json
    assert (ran.code, late.came, shown["metadata"], shown["lease_state"]) == (0, [412], {"a": "1"}, "available")


def test_an_update_of_metadata_is_not_sent_again_under_a_lease_that_lasts(files_cli: CliWorld) -> None:
    """Its late copy could undo what the holder of the lease writes next."""
    file = files_world.make(files_cli)
    lease = files_cli.call("lease", "acquire", f"file:{file}", "--infinite", "-o", "json").json["lease_id"]
    late = Late(files_cli, file, "comp=metadata", "never", loses=False)
    words = ("safe-update", f"file:{file}", "--metadata", "--set", "a=1", "--lease-id", lease)
    assert (late.run(*words, stdin=b"").code, len(late.lost)) == (74, 1)


def test_a_range_that_comes_late_proves_nothing_of_the_next_one(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"a" * (_PIECE + 3))
    etag = files_cli.call("file", "show", file).json["etag"]
    late = Late(files_cli, file, "comp=range", f"bytes={_PIECE}-", loses=True)
    ran = late.run("file", "range", "put", file, "--offset", "0", "--etag", etag, stdin=b"b" * _PIECE + b"new")
    content = files_world.client(files_cli, file).download_file().readall()
    assert (ran.code, late.came, content[-4:]) == (0, [412], b"bnew")


def test_what_a_lock_wrote_on_its_file_and_comes_late_undoes_nothing(files_cli: CliWorld) -> None:
    file, told, go = files_world.make(files_cli), files_cli.root / "lease", files_cli.root / "go"
    late = Late(files_cli, file, "comp=metadata", "never", loses=False)
    script = f"echo $AZGUARD_LEASE_ID $AZGUARD_FENCE > {told}; until test -e {go}; do sleep 0.05; done"
    with (
        proxy.running(files_world.port(files_cli), late.decide) as between,
        files_world.through(files_cli, between.port).begin_fork(
            "lock", "run", f"file:{file}", "--", "sh", "-c", script
        ) as held,
    ):
        until(lambda: told.exists() and told.read_text().endswith("\n"))
        lease, fence = told.read_text().split()
        files_world.client(files_cli, file).set_file_metadata({"a": "1"}, lease=lease)
        late.deliver()
        go.touch()
        assert held.wait() == 0
    found = files_world.client(files_cli, file).get_file_properties()
    assert (fence, late.came, dict(found.metadata), found.lease.state) == ("2", [412], {"a": "1"}, "available")


def test_the_record_of_a_lease_that_comes_late_undoes_nothing(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    late = Late(files_cli, file, "comp=metadata", "never", loses=False)
    ran = late.run("lease", "acquire", f"file:{file}", "--infinite", "--reason", "repair", stdin=b"")
    taken, held = ran.json["lease_id"], files_cli.call("lease", "list", "--mine").json
    files_cli.call("file", "metadata", "set", file, "--metadata", "a=1", "--lease-id", taken, "--last-writer-wins")
    late.deliver()
    shown, lease = files_cli.call("file", "show", file).json, files_cli.call("lease", "show", f"file:{file}").json
    assert (ran.code, [each["lease_id"] for each in held], late.came) == (0, [taken], [412])
    assert (shown["metadata"], lease["owner"]["reason"]) == ({"a": "1"}, "repair")


def test_the_id_of_a_lease_that_was_chosen_stays_and_what_may_come_late_is_told(files_cli: CliWorld) -> None:
    name, chosen = files_world.share(files_cli), str(uuid.uuid4())
    late = Late(files_cli, name, "comp=metadata", "never", loses=False)
    words = ("--infinite", "--reason", "repair", "--proposed-lease-id", chosen)
    ran = late.run("lease", "acquire", f"share:{name}", *words, stdin=b"")
    assert (ran.code, ran.json["lease_id"], "may come late" in ran.err) == (0, chosen, True)


def test_a_write_whose_lease_was_broken_is_refused_under_the_next_one(files_cli: CliWorld) -> None:
    name = files_world.share(files_cli)
    client, met, came = files_world.sdk(files_cli, name), list[Request](), list[int]()

    def break_and_write() -> None:
        found = client.get_share_properties()
        ShareLeaseClient(client).break_lease(lease_break_period=0)
        client.set_share_metadata({"b": "2", KEY: str(Lineage().after(fresh_op(), found.etag))})

    def decide(request: Request) -> Fault:
        if "comp=metadata" in request.path:
            met.append(request)
            return Fault.RESET if len(met) == 1 else Fault.NONE
        if len(met) == 1 and not came:
            came.append(0)
            break_and_write()
        elif len(met) == 2 and request.headers.get("x-ms-lease-action") == "release":
            with pytest.raises(HttpResponseError) as caught:
                client.set_share_metadata({"a": "1"}, lease=met[0].headers["x-ms-lease-id"])
            came.append(caught.value.status_code or 0)
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        words = ("safe-update", f"share:{name}", "--metadata", "--set", "a=1", "-o", "json")
        ran = files_world.through(files_cli, between.port).call(*words)
    shown = files_cli.call("share", "show", name).json
    assert (ran.code, came, shown["metadata"], shown["lease_state"]) == (
        0, [0, 412], {"a": "1", "b": "2"}, "available",
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "run", "file:{file}", "--wait", "20s", "--", "true"),
        ("file", "metadata", "set", "{file}", "--metadata", "a=1", "--etag", "{etag}"),
    ],
)
def test_an_acquire_after_the_release_locks_no_file_for_ever(files_cli: CliWorld, words: tuple[str, ...]) -> None:
    file = files_world.make(files_cli)
    late = Late(files_cli, file, " acquire", "never", loses=False)

    client = files_world.client(files_cli, file)
    with proxy.running(files_world.port(files_cli), late.decide) as between:
        through = files_world.through(files_cli, between.port)

        def run() -> int:
            etag = client.get_file_properties().etag
            return through.fork(*(word.format(file=file, etag=etag) for word in words)).code

        first = run()
        ShareLeaseClient(client, late.lost[0].headers["x-ms-proposed-lease-id"]).acquire()
        codes = [first, run()]
    assert (codes, client.get_file_properties().lease.state) == ([0, 0], "available")


def test_a_rename_that_comes_between_the_two_releases_of_its_lease_leaves_none(files_cli: CliWorld) -> None:
    file, lost, came = files_world.make(files_cli), list[Request](), list[str]()

    def decide(request: Request) -> Fault:
        if "comp=rename" in request.path:
            lost.append(request)
            return Fault.RESET
        if lost and not came and request.headers.get("x-ms-lease-action") == "change":
            lease = lost[0].headers["x-ms-source-lease-id"]
            came.append(files_world.client(files_cli, file).rename_file("new.txt", source_lease=lease).file_name)
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        through = files_world.through(files_cli, between.port)
        ran = through.call("file", "rename", file, f"{file.partition('/')[0]}/new.txt", "--timeout", "3s")
    shown = files_cli.call("file", "show", f"{file.partition('/')[0]}/new.txt").json
    assert (ran.code, len(came), shown["lease_state"]) == (74, 1, "available")


def test_a_lease_that_is_broken_before_its_record_is_written_is_told_as_lost(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    client = files_world.client(files_cli, file)
    etag = client.get_file_properties().etag
    words = ("file", "resize", file, "--size", "9", "--etag", etag)
    ran = files_world.meanwhile(files_cli, "comp=metadata", ShareLeaseClient(client).break_lease, *words)
    assert (ran.code, ran.error["kind"], client.get_file_properties().etag) == (49, "locked", etag)
