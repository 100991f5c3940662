"""``azguard lease`` against Azurite."""

import base64
import json
import re
import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner
from tests.support import terminal_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Decide, Fault, Request

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
LONG_AGO = datetime.now(UTC) - timedelta(hours=3)


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that the scope ``setup`` has written."""
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, scope="setup", stdin=b"{}").code == 0
    return address


def sdk(cli: CliWorld, address: str) -> Any:
    from azure.storage.blob import BlobClient

    return BlobClient.from_connection_string(str(cli.connection_string), *address.split("/", 1))


def state(cli: CliWorld, address: str) -> str:
    found: str = cli.call("lease", "show", address).json["lease_state"]
    return found


def owner(who: str = "alice", since: datetime = LONG_AGO) -> Owner:
    moment = since.isoformat().replace("+00:00", "Z")
    found = Owner(who=who, host="build1", pid=7, command="./deploy.sh", since=moment, clock=SERVICE_CLOCK)
    return found.tie_to_lease(A, None)


def take(cli: CliWorld, address: str, record: Owner, lease_id: str = A) -> None:
    """Lease a blob as azguard's locks do: with an owner record in its metadata."""
    client = sdk(cli, address)
    client.acquire_lease(-1, lease_id)
    client.set_blob_metadata({OWNER: record.tie_to_lease(lease_id, None).as_metadata()}, lease=lease_id)


def test_a_lease_is_acquired_renewed_changed_and_released(cli: CliWorld, blob: str) -> None:
    address = f"blob:{blob}"
    shown = cli.call("blob", "show", blob).json
    same = {
        "address": address, "etag": shown["etag"], "last_modified": shown["last_modified"], "lease_time": None,
        "attempts": 1, "conflicts": 0, "outcome": "committed",
    }  # fmt: skip
    acquired = cli.call("lease", "acquire", address, "--lease-duration", "30s", "--proposed-lease-id", A)
    renewed = cli.call("lease", "renew", address)
    changed = cli.call("lease", "change", address, "--proposed-lease-id", B)
    released = cli.call("lease", "release", address)
    assert [acquired.json, renewed.json, changed.json, released.json] == [
        {**same, "action": "acquire", "lease_id": A, "duration": 30, "guard": "none"},
        {**same, "action": "renew", "lease_id": A, "duration": 30, "guard": "lease"},
        {**same, "action": "change", "lease_id": B, "duration": 30, "guard": "lease"},
        {**same, "action": "release", "lease_id": B, "duration": None, "guard": "lease"},
    ]
    assert (state(cli, address), cli.call("lease", "list", "--mine").json) == ("available", [])


@pytest.mark.parametrize("kind", ["blob", "container"])
def test_a_lease_keeps_others_out_until_it_is_released(cli: CliWorld, blob: str, kind: str) -> None:
    site = blob.partition("/")[0]
    address = f"blob:{blob}" if kind == "blob" else f"container:{site}"
    delete = ("blob", "delete", blob) if kind == "blob" else ("container", "delete", site, "--with-contents")
    acquired = cli.call("lease", "acquire", address, "--infinite", "-o", "tsv")
    codes = [
        cli.call(*delete, "--last-writer-wins", scope="other").code,
        cli.call("lease", "acquire", address, scope="other").code,
        cli.call("lease", "release", address, scope="other").code,
        cli.call("lease", "release", address, "--lease-id", B, scope="other").code,
        cli.call(*delete, "--lease-id", "@held").code,
        cli.call(*delete, "--lease-id", "@held", "--last-writer-wins").code,
    ]
    assert (len(acquired.out.strip()), acquired.out.count("\t"), codes) == (36, 0, [49, 49, 2, 49, 42, 0])


@pytest.mark.parametrize("verb", ["acquire", "change"])
def test_tsv_is_the_id_alone_unless_a_query_chooses(cli: CliWorld, blob: str, verb: str) -> None:
    address = f"blob:{blob}"
    cli.call("lease", "acquire", address, "--proposed-lease-id", B)
    words = ("lease", verb, address, "--proposed-lease-id", A if verb == "change" else B, "-o", "tsv")
    assert cli.call(*words).out == (A if verb == "change" else B) + "\n"
    again = ("lease", "acquire", address, "--proposed-lease-id", A if verb == "change" else B, "-o", "tsv")
    assert cli.call(*again, "--query", "[action, duration]").out == "acquire\n60\n"


def test_held_is_of_the_scope_and_works_for_writes(cli: CliWorld, blob: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}").code == 0
    assert [
        cli.call("blob", "put", blob, "--lease-id", "@held", stdin=b"new").code,
        cli.call("blob", "put", blob, "--lease-id", "@held", "--last-writer-wins", stdin=b"new").code,
        cli.call("blob", "put", blob, "--lease-id", "@held", stdin=b"new", scope="other").code,
        cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"new", scope="other").code,
        cli.call("safe-update", f"blob:{blob}", "--lease-id", "@held", "--append", "er").code,
        cli.call("lease", "show", f"blob:{blob}", "--lease-id", "@held").code,
        cli.call("lease", "show", f"blob:{blob}", "--lease-id", B).code,
    ] == [45, 0, 2, 49, 0, 0, 49]


def test_what_does_not_exist_is_neither_waited_for_nor_recorded(cli: CliWorld) -> None:
    """The other verbs are played by tests/azurite/conditions."""
    site = cli.container()
    missing = (f"blob:{site}/nosuch", f"blob:nosuch{site}/a", f"container:nosuch{site}")
    codes = {cli.call("lease", verb, address).code for verb in ("acquire", "wait") for address in missing}
    assert (codes, cli.call("lease", "list", "--mine").json) == ({44}, [])


@pytest.mark.parametrize("verb", ["acquire", "renew", "change", "release", "break"])
def test_the_last_version_is_one_that_the_scope_has_read(cli: CliWorld, blob: str, verb: str) -> None:
    """The other conditions are played by tests/azurite/conditions."""
    address = f"blob:{blob}"
    if verb != "acquire":
        assert cli.call("lease", "acquire", address).code == 0
    words = ("lease", verb, address, "--if-match", "@last", *(("--yes",) if verb == "break" else ()))
    unread = (cli.call(*words).code, state(cli, address))
    assert cli.call("blob", "get", blob).code == 0
    after = {"acquire": "leased", "renew": "leased", "change": "leased", "release": "available", "break": "breaking"}
    before = "available" if verb == "acquire" else "leased"
    assert (unread, cli.call(*words).code, state(cli, address)) == ((42, before), 0, after[verb])


def test_a_refusal_names_the_holder_and_the_way_out(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    ran = cli.call("lease", "acquire", f"blob:{blob}")
    assert (ran.code, ran.err.splitlines()) == (
        49,
        [
            f"error: {blob} is leased by another holder",
            f"  held by {owner()}",
            f"hint: wait until it is free: azguard lease wait blob:{blob}",
        ],
    )
    error = cli.call("lease", "acquire", f"blob:{blob}", "-o", "json").error
    assert (error["kind"], error["service_code"], error["lease_state"], error["retriable"]) == (
        "locked", "LeaseAlreadyPresent", "leased", True,
    )  # fmt: skip


def test_a_lease_that_is_being_broken_says_so(cli: CliWorld, blob: str) -> None:
    messages = {
        ("renew", "--lease-id", B): f"that lease on {blob} is not held",
        ("release", "--lease-id", B): f"that lease on {blob} is not held",
        ("change", "--lease-id", B): f"that lease on {blob} is not held",
        ("renew", "--lease-id", A): f"the lease on {blob} was broken, and cannot be renewed",
        ("change", "--lease-id", A): f"the lease on {blob} is being broken, and its id cannot be changed any more",
        ("acquire", "--proposed-lease-id", A): f"the lease on {blob} is being broken, so it cannot be acquired",
        ("acquire",): f"{blob} is leased by another holder",
    }
    sdk(cli, blob).acquire_lease(-1, A)
    assert cli.call("lease", "break", f"blob:{blob}", "--yes", "--lease-break-period", "1m").code == 0
    said = {}
    for words in messages:
        error = cli.call("lease", words[0], f"blob:{blob}", *words[1:], "-o", "json").error
        said[words] = (error["exit_code"], error["message"], error["lease_state"])
    assert said == {words: (49, message, "breaking") for words, message in messages.items()}


def test_a_lease_that_was_lost_is_forgotten(cli: CliWorld, blob: str) -> None:
    address = f"blob:{blob}"
    cli.call("lease", "acquire", address, "--infinite")
    cli.call("lease", "break", address, "--yes", scope="operator")
    sdk(cli, blob).acquire_lease(-1, B)
    assert [cli.call("lease", "renew", address).code for _ in range(2)] == [49, 2]
    assert cli.call("lease", "list", "--mine").json == []


def test_the_leases_a_scope_holds_are_listed_without_an_account(cli: CliWorld, blob: str) -> None:
    site = blob.partition("/")[0]
    cli.call("lease", "acquire", f"blob:{blob}", "--lease-duration", "20", "--proposed-lease-id", A)
    cli.call("lease", "acquire", f"container:{site}", "--infinite", "--proposed-lease-id", B)
    anonymous = CliWorld(cli.root)
    infinite, finite = anonymous.call("lease", "list", "--mine").json
    since = datetime.fromisoformat(finite["since"])
    same = {"state": "unknown", "confirmed": True, "action": "lease acquire", "scope": "test", "job": None,
            "account": f"http://127.0.0.1:{cli.port}/devstoreaccount1"}  # fmt: skip
    assert [infinite, finite] == [
        {**same, "address": f"container:{site}", "lease_id": B, "duration": "infinite", "since": infinite["since"],
         "until": None},
        {**same, "address": f"blob:{blob}", "lease_id": A, "duration": 20, "since": finite["since"],
         "until": (since + timedelta(seconds=20)).isoformat().replace("+00:00", "Z")},
    ]  # fmt: skip
    assert anonymous.call("lease", "list", "--mine", scope="other").json == []
    everyone = anonymous.call("lease", "list", "--mine", "--all-scopes", scope="other").json
    assert [each["lease_id"] for each in everyone] == [B, A]


def test_a_renewal_moves_the_end_that_is_remembered(cli: CliWorld, blob: str) -> None:
    cli.call("lease", "acquire", f"blob:{blob}")
    before = cli.call("lease", "list", "--mine").json[0]["until"]
    cli.call("lease", "change", f"blob:{blob}")
    changed = cli.call("lease", "list", "--mine").json[0]["until"]
    cli.call("lease", "renew", f"blob:{blob}")
    after = cli.call("lease", "list", "--mine").json[0]["until"]
    assert (before == changed, before < after) == (True, True)


def test_a_change_to_the_id_that_it_has_keeps_the_lease_known(cli: CliWorld, blob: str) -> None:
    cli.call("lease", "acquire", f"blob:{blob}", "--proposed-lease-id", A)
    again = ("lease", "change", f"blob:{blob}", "--proposed-lease-id", A)
    codes = [cli.call(*again).code, cli.call(*again, "--if-match", '"0x1"').code]
    assert (codes, [each["lease_id"] for each in cli.call("lease", "list", "--mine").json]) == ([0, 42], [A])


def test_what_a_kill_left_behind_is_known_and_can_be_released(cli: CliWorld, blob: str) -> None:
    """The answer is held back, so that the lease is granted when azguard is killed, and azguard does not know."""

    def decide(request: Request) -> Fault:
        return Fault.LATE if "comp=lease" in request.path else Fault.NONE

    with proxy.running(cli.port, decide) as between:
        running = cli.through(between.port).begin_fork("lease", "acquire", f"blob:{blob}", "--infinite")
        until(lambda: state(cli, f"blob:{blob}") == "leased")
        running.kill()
        running.communicate()
        (found,) = cli.call("lease", "list", "--mine").json
        assert (found["confirmed"], found["duration"], found["until"]) == (False, "infinite", None)
        # The cache knows the account by its endpoint, which is the proxy's.
        released = cli.through(between.port).call(
            "lease", "release", f"blob:{blob}", env={"AZGUARD_WRITE_TIMEOUT": "1s"}
        )
    assert (released.code, released.json["lease_id"], state(cli, f"blob:{blob}")) == (
        0, found["lease_id"], "available",
    )  # fmt: skip
    assert cli.call("lease", "list", "--mine").json == []


def test_ctrl_c_gives_back_what_was_being_acquired(cli: CliWorld, blob: str) -> None:
    seen = threading.Event()

    def decide(request: Request) -> Fault:
        if request.headers.get("x-ms-lease-action") != "acquire":
            return Fault.NONE
        seen.set()
        return Fault.LATE

    with proxy.running(cli.port, decide) as between:
        running = cli.through(between.port).begin_fork("lease", "acquire", f"blob:{blob}", "--infinite")
        until(lambda: state(cli, f"blob:{blob}") == "leased")
        running.terminate()
        running.communicate()
    assert (seen.is_set(), running.returncode, state(cli, f"blob:{blob}")) == (True, 143, "available")
    assert cli.call("lease", "list", "--mine").json == []


@pytest.mark.parametrize(
    ("words", "code", "after"),
    [
        (("renew",), 74, "leased"),  # that the lease is held says nothing of its term
        (("change", "--proposed-lease-id", B), 0, "leased"),
        (("release",), 0, "available"),
        (("break", "--yes"), 0, "broken"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_was_done_before_a_signal_came_is_asked_about_and_told(
    cli: CliWorld, blob: str, words: tuple[str, ...], code: int, after: str
) -> None:
    def decide(request: Request) -> Fault:
        return Fault.LATE if request.headers.get("x-ms-lease-action") == words[0] else Fault.NONE

    with proxy.running(cli.port, decide) as between:
        there = cli.through(between.port)
        there.call("lease", "acquire", f"blob:{blob}", "--infinite", "--proposed-lease-id", A)
        running = there.begin_fork("lease", words[0], f"blob:{blob}", *words[1:], "-o", "json")
        until(lambda: any(answer.fault is Fault.LATE for answer in between.log))
        running.terminate()
        out, err = running.communicate(timeout=60)
    told = json.loads(err)["error"]["kind"] if code else json.loads(out)["outcome"]
    assert (running.returncode, told, state(cli, f"blob:{blob}")) == (code, "unknown" if code else "committed", after)


def resetting(action: str) -> Decide:
    """Return a decision that lets no request for an action through."""
    return lambda request: Fault.RESET if request.headers.get("x-ms-lease-action") == action else Fault.NONE


def test_an_acquire_that_may_still_arrive_is_unknown_and_stays_recorded(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, resetting("acquire")) as between:
        there = cli.through(between.port)
        ran = there.call("lease", "acquire", f"blob:{blob}", "--timeout", "3s", "-o", "json")
        (found,) = there.call("lease", "list", "--mine").json
        assert (ran.code, ran.error["hint"], found["confirmed"]) == (
            74, f"release it in case it was granted: azguard lease release blob:{blob}", False,
        )  # fmt: skip
        assert there.call("lease", "release", f"blob:{blob}").code == 0
        assert there.call("lease", "list", "--mine").json == []


def test_a_lease_that_was_held_with_a_term_is_no_proof_that_it_is_held_for_ever(cli: CliWorld, blob: str) -> None:
    words, faults = ("lease", "acquire", f"blob:{blob}", "--proposed-lease-id", A), [Fault.RESET]
    assert cli.call(*words).code == 0
    with proxy.running(
        cli.port, lambda request: faults.pop() if faults and "x-ms-lease-action" in request.headers else Fault.NONE
    ) as between:
        ran = cli.through(between.port).call(*words, "--infinite")
    lease = sdk(cli, blob).get_blob_properties().lease
    assert (ran.code, ran.json["duration"], lease.duration, faults) == (0, "infinite", "infinite", [])


def test_a_change_that_is_unknown_leaves_both_ids_to_release_by(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, resetting("change")) as between:
        there = cli.through(between.port)
        there.call("lease", "acquire", f"blob:{blob}", "--proposed-lease-id", A)
        ran = there.call("lease", "change", f"blob:{blob}", "--proposed-lease-id", B, "--timeout", "3s")
        held = [(each["lease_id"], each["confirmed"]) for each in there.call("lease", "list", "--mine").json]
        released = [there.call("lease", "release", f"blob:{blob}").code for _ in range(2)]
    assert (ran.code, held, released, state(cli, f"blob:{blob}")) == (
        74, [(B, False), (A, True)], [49, 0], "available",
    )  # fmt: skip


# Waiting.


def test_acquire_waits_for_the_holder_and_says_who_that_is(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    running = cli.begin_fork("lease", "acquire", f"blob:{blob}", "--wait", "30s", "-o", "tsv", "--proposed-lease-id", B)
    assert running.stderr is not None
    said = running.stderr.readline().decode()
    sdk(cli, blob).acquire_lease(-1, A).release()
    out, _ = running.communicate(timeout=60)
    assert re.fullmatch(
        rf"waiting: blob:{re.escape(blob)} is leased, infinite, held for 3h(\d+m)? by {re.escape(str(owner()))}\n", said
    )
    assert (running.returncode, out.decode()) == (0, f"{B}\n")


def test_wait_ends_when_the_lease_does(cli: CliWorld, blob: str) -> None:
    lease = sdk(cli, blob).acquire_lease(-1, A)
    running = cli.begin_fork("lease", "wait", f"blob:{blob}")
    assert running.stderr is not None
    said = running.stderr.readline().decode()
    assert said == f"waiting: blob:{blob} is leased, infinite; no record says who holds it\n"
    lease.release()
    out, _ = running.communicate(timeout=60)
    assert (running.returncode, json.loads(out)["lease_state"]) == (0, "available")


# Showing and listing.


def test_show_tells_the_owner_and_keeps_metadata_to_itself(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    found = cli.call("lease", "show", f"blob:{blob}").json
    shown = cli.call("blob", "show", blob).json
    record = {"who": "alice", "host": "build1", "pid": 7, "command": "./deploy.sh", "since": owner().since,
              "run": None, "reason": None, "clock": "service", "until": None}  # fmt: skip
    held = {
        "address": f"blob:{blob}", "state": "held", "held": True, "held_by": "alice@build1", "clock": "service",
        "fence": None, "owner": record, "terraform": None, "last_owner": None, "last_terraform": None,
        "lease_state": "leased", "lease_status": "locked", "lease_duration": "infinite", "etag": shown["etag"],
        "last_modified": shown["last_modified"],
    }  # fmt: skip
    assert (found.pop("age") // 3600, found) == (3, held)
    sdk(cli, blob).acquire_lease(-1, A).release()
    assert cli.call("lease", "show", f"blob:{blob}").json == {
        **held, "state": "free", "held": False, "held_by": None, "age": None, "clock": None, "owner": None,
        "last_owner": record, "lease_state": "available", "lease_status": "unlocked", "lease_duration": None,
    }  # fmt: skip


def test_lock_show_knows_what_lease_show_knows(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    lease, lock = cli.call("lease", "show", f"blob:{blob}").json, cli.call("lock", "show", f"blob:{blob}").json
    assert abs(lease.pop("age") - lock.pop("age")) < 60
    assert {**lease, "sequence": None, "readers": [], "waiters": []} == lock


# As internal/states/statemgr/locker.go marshals it, and internal/backend/remote-state/azure/client.go stores it.
TERRAFORM = {
    "ID": A, "Operation": "OperationTypeApply", "Info": "", "Who": "alice@build1", "Version": "1.9.5",
    "Created": "2026-11-21T07:05:26.123456789Z", "Path": "tfstate/prod.tfstate",
}  # fmt: skip


def lock_as_terraform_does(cli: CliWorld, address: str) -> None:
    client = sdk(cli, address)
    client.acquire_lease(-1, A)
    text = json.dumps(TERRAFORM, separators=(",", ":")).encode()
    client.set_blob_metadata({"terraformlockid": base64.b64encode(text).decode()}, lease=A)


def test_show_tells_who_locked_a_terraform_state(cli: CliWorld, blob: str) -> None:
    lock_as_terraform_does(cli, blob)
    found = cli.call("lease", "show", f"blob:{blob}").json
    assert (found["owner"], found["terraform"]) == (None, {key.lower(): value for key, value in TERRAFORM.items()})
    ran = cli.call("lease", "acquire", f"blob:{blob}")
    assert (
        "held by Terraform 1.9.5, OperationTypeApply by alice@build1, since 2026-11-21T07:05:26.123456789Z" in ran.err
    )


def test_a_container_of_states_lists_what_terraform_and_others_hold(cli: CliWorld, blob: str) -> None:
    site = blob.partition("/")[0]
    lock_as_terraform_does(cli, blob)
    for name in ("free", "other", "run"):
        sdk(cli, f"{site}/{name}").upload_blob(b"")
    sdk(cli, f"{site}/other").acquire_lease(-1, B)
    assert cli.fork("lock", "run", f"blob:{site}/run", "--", "true").code == 0
    found = cli.call("lock", "list", site).json
    facts = [(each["address"], each["state"], each["holder"], each["fence"]) for each in found]
    assert facts == [
        (f"blob:{blob}", "held", "alice@build1", None), (f"blob:{site}/other", "held", None, None),
        (f"blob:{site}/run", "free", None, 1),
    ]  # fmt: skip
    assert [(each["kind"], each["alive"], each["ends"]) for each in found] == [
        ("terraform", "unknown", "never"), ("unknown", "unknown", "never"), ("azguard", None, None),
    ]  # fmt: skip
    held = [each["address"] for each in cli.call("lock", "list", site, "--held").json]
    assert held == [f"blob:{blob}", f"blob:{site}/other"]


def test_a_terraform_lock_is_broken_by_what_it_says(cli: CliWorld, blob: str) -> None:
    guards = {("--if-owner", "bob"): 42, ("--if-older-than", "1m"): 42}
    guards |= {("--if-owner", each): 0 for each in ("alice@build1", "alice", A)}
    said = {}
    for guard in guards:
        if state(cli, f"blob:{blob}") != "leased":
            lock_as_terraform_does(cli, blob)
        said[guard] = (cli.call("lease", "break", f"blob:{blob}", *guard).code, state(cli, f"blob:{blob}"))
    assert said == {guard: (code, "leased" if code else "broken") for guard, code in guards.items()}


def test_leased_blobs_are_found_page_by_page_and_by_state(cli: CliWorld) -> None:
    from azguard import address
    from azguard.accounts import account
    from azguard.accounts.account import Target
    from azguard.leases.state import list_states
    from azguard.requests.deadline import Deadline

    site = cli.container()
    for number in range(12):
        sdk(cli, f"{site}/{number:02}").upload_blob(b"")
    for number in range(0, 12, 2):
        take(cli, f"{site}/{number:02}", owner(f"user{number}"), str(uuid.uuid4()))
    cli.call("lease", "break", f"blob:{site}/02", "--yes")
    cli.call("lease", "break", f"blob:{site}/04", "--yes", "--lease-break-period", "60")
    free = ["01", "03", "05", "07", "09", "11"]

    def names(*words: str) -> list[str]:
        return [each["address"].partition("/")[2] for each in cli.call("lease", "list", site, *words).json]

    assert [
        names(), names("--state", "leased"), names("--state", "breaking"), names("--state", "broken,available"),
        names("--num-results", "2"), names("--prefix", "1"), names("--state", "expired"),
    ] == [
        ["00", "04", "06", "08", "10"], ["00", "06", "08", "10"], ["04"], sorted(["02", *free]),
        ["00", "04"], ["10"], [],
    ]  # fmt: skip
    (first, *_) = cli.call("lease", "list", site).json
    shown = cli.call("blob", "show", f"{site}/00").json
    assert first == {
        "address": f"blob:{site}/00", "state": "held", "holder": "user0@build1", "since": owner("user0").since,
        "reason": owner("user0").command, "fence": None, "alive": "unknown", "ends": "never", "kind": "azguard",
        "age": first["age"], "clock": "service", "run": owner("user0").run, "lease_state": "leased",
        "lease_status": "locked", "lease_duration": "infinite", "etag": shown["etag"],
        "last_modified": shown["last_modified"],
    }  # fmt: skip
    assert first["age"] // 3600 == 3
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        there = account.emulator({"blob": between.port})
        target = Target(there, address.parse(f"container:{site}").address)
        found = list_states(target, Deadline(), None, page=5)
        assert next(found).address == f"blob:{site}/00"
        assert len(between.log) == 1  # the next page is asked for when it is needed
        assert (len(list(found)), len(between.log)) == (11, 3)


# Breaking.


_HITS = (
    ("--yes",), ("--if-owner", "alice"), ("--if-owner", "build1"), ("--if-owner", "alice@build1"),
    ("--if-older-than", "2h"), ("--if-older-than", "2h", "--if-owner", "alice"), ("--if-match", "{etag}"),
    ("--if-match", "{etag}", "--if-owner", "alice"), ("--etag", "{etag}"),
)  # fmt: skip
_MISSES = (
    ("--if-owner", "bob"), ("--if-older-than", "4h"), ("--yes", "--if-owner", "bob"), ("--if-match", "0x1"),
    ("--if-match", "0x1", "--if-owner", "alice"), ("--if-older-than", "2h", "--if-owner", "bob"),
)  # fmt: skip


def test_a_break_says_that_it_is_meant_and_of_whom(cli: CliWorld, blob: str) -> None:
    shown = rf"^{re.escape(blob)} is leased, infinite, held for 3h(\d+m)? by {re.escape(str(owner()))}$"
    said, expected = {}, {}
    for words in ((), *_MISSES, *_HITS):
        if words in ((), *_HITS):
            take(cli, blob, owner())
        etag = cli.call("blob", "show", blob).json["etag"]
        ran = cli.call("lease", "break", f"blob:{blob}", *(word.format(etag=etag) for word in words))
        told = [ran.json[name] for name in ("lease_time", "guard", "etag")] if ran.code == 0 else []
        is_shown = re.search(shown, ran.err, re.MULTILINE) is not None
        said[words] = (ran.code, state(cli, f"blob:{blob}"), is_shown, told)
        hit = (0, "broken", True, [0, "if-match", etag])
        expected[words] = hit if words in _HITS else (42 if words else 2, "leased", words != (), [])
    assert said == expected


@pytest.mark.parametrize(("how", "remains"), [((), (55, 60)), (("--lease-break-period", "5s"), (5, 5))])
def test_a_break_tells_what_is_left(cli: CliWorld, blob: str, how: tuple[str, ...], remains: tuple[int, int]) -> None:
    cli.call("lease", "acquire", f"blob:{blob}")
    ran = cli.call("lease", "break", f"blob:{blob}", "--yes", *how)
    assert remains[0] <= ran.json["lease_time"] <= remains[1]
    assert (f"{blob} stays taken for up to " in ran.err) is bool(ran.json["lease_time"])


def test_a_break_can_be_waited_for(cli: CliWorld, blob: str) -> None:
    cli.call("lease", "acquire", f"blob:{blob}")
    words = ("lease", "break", f"blob:{blob}", "--yes", "--lease-break-period")
    assert cli.call(*words, "60", "--wait", "1s").code == 75
    ran = cli.call(*words, "1", "--wait")
    assert (ran.code, ran.json["lease_time"], state(cli, f"blob:{blob}")) == (0, 1, "broken")


def between(cli: CliWorld, address: str, meanwhile: Any, *words: str, times: int = 1) -> tuple[Any, int]:
    """Break a lease while another acts between the look and the break; return what it said, and how many breaks."""
    done: list[int] = []

    def decide(request: Request) -> Fault:
        if request.headers.get("x-ms-lease-action") == "break" and len(done) < times:
            done.append(1)
            meanwhile(sdk(cli, address))
        return Fault.NONE

    with proxy.running(cli.port, decide) as running:
        ran = cli.through(running.port).call("lease", "break", f"blob:{address}", *words, "-o", "json")
        return ran, sum(each.request.headers.get("x-ms-lease-action") == "break" for each in running.log)


def test_a_holder_that_writes_meanwhile_is_still_the_one_that_was_shown(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    record = {OWNER: owner().as_metadata()}
    ran, breaks = between(cli, blob, lambda client: client.set_blob_metadata(record, lease=A), "--if-owner", "alice")
    assert (ran.code, breaks, state(cli, f"blob:{blob}")) == (0, 2, "broken")


def test_a_lease_that_another_operator_breaks_meanwhile_is_still_the_shown_one(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())

    def break_first(client: Any) -> None:
        from azure.storage.blob import BlobLeaseClient

        client.set_blob_metadata({OWNER: owner().as_metadata()}, lease=A)
        BlobLeaseClient(client).break_lease(60)

    ran, breaks = between(cli, blob, break_first, "--yes", "--lease-break-period", "0")
    hit = ran.json["broken"]
    assert (ran.code, breaks, hit["lease_state"], hit["held_by"], state(cli, f"blob:{blob}")) == (
        0, 2, "breaking", "alice@build1", "broken",
    )  # fmt: skip


def test_the_result_of_a_break_says_who_was_hit(cli: CliWorld, blob: str) -> None:
    take(cli, blob, owner())
    found = cli.call("lease", "break", f"blob:{blob}", "--yes").json["broken"]
    record = cli.call("lease", "show", f"blob:{blob}").json["last_owner"]
    assert (found.pop("age") // 3600, found) == (
        3,
        {"held_by": "alice@build1", "clock": "service", "fence": None, "owner": record, "terraform": None,
         "lease_state": "leased", "lease_duration": "infinite"},
    )  # fmt: skip


def test_a_break_without_a_record_says_so(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).acquire_lease(-1, A)
    ran = cli.call("lease", "break", f"blob:{blob}", "--yes")
    assert (ran.code, ran.json["broken"]["held_by"], ran.json["broken"]["owner"], ran.err.splitlines()) == (
        0, None, None,
        [f"{blob} is leased, infinite; no record says who holds it",
         "warning: no record says who held it: whether it was still the lease that was shown cannot be told"],
    )  # fmt: skip


@pytest.mark.parametrize("words", [("--yes",), ("--if-owner", "alice"), ("--if-older-than", "2h")])
def test_the_next_holder_is_never_hit(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    take(cli, blob, owner())

    def hand_over(client: Any) -> None:
        from azure.storage.blob import BlobLeaseClient

        BlobLeaseClient(client, A).release()
        take(cli, blob, owner("bob", datetime.now(UTC)), B)

    ran, breaks = between(cli, blob, hand_over, *words)
    assert (ran.code, breaks, state(cli, f"blob:{blob}")) == (42, 1, "leased")
    assert ran.error["message"] == f"another holds the lease on {blob} now"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 130), ("", 130)])
def test_on_a_terminal_a_break_asks(cli: CliWorld, blob: str, answer: str, code: int) -> None:
    take(cli, blob, owner())
    status, said = terminal_world.answer(cli, answer, "lease", "break", f"blob:{blob}")
    told = (str(owner()) in said, "break it? [y/N] " in said, "nothing was broken" in said, "error" in said)
    assert (status, told, state(cli, f"blob:{blob}")) == (
        code, (True, True, bool(code), False), "leased" if code else "broken",
    )  # fmt: skip
