"""Measure what ``azguard lock run`` costs: its start, the hand-over to who waits, and the waiting.

    python -m benchmarks.locks [--runs N] [--hand-overs N] [--waiters N...] [--waiting SECONDS]

The two commands of a pair run in turn, A B A B …, so that a busy machine slows both. It measures the azguard that is
installed beside this Python. The figures are printed as Markdown.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed import AZGUARD, HERE, world
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

RUNS, HAND_OVERS, WAITERS, WAITING_SECONDS = 30, 20, (1, 4, 8), 60.0
LOCK = ("lock", "run", "blob:speed/lock", "--wait", "1h")
# Long enough for all others to be waiting when it ends; a busy machine starts them slowly.
HOLD_SECONDS = 1.5


@dataclass(frozen=True)
class Ran:
    """One run: how long until its command began, and how long it took in all, in seconds."""

    began: float
    took: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each of the two that are compared")
    parser.add_argument("--hand-overs", type=int, default=HAND_OVERS, help="for each number of waiters")
    parser.add_argument("--waiters", type=int, nargs="+", default=list(WAITERS), help="how many wait at once")
    parser.add_argument("--waiting", type=float, default=WAITING_SECONDS, help="how long one is watched, in seconds")
    parser.add_argument("--hold", type=float, default=HOLD_SECONDS, help="how long each holds it, in seconds")
    asked = parser.parse_args()
    with world() as (environ, folder):
        subprocess.run(
            [AZGUARD, "blob", "put", "speed/lock", "--allow-empty", "-o", "none"], env=environ, input=b"", check=True
        )
        lines = [*_starts(environ, folder, asked.runs), ""]
        with _through_a_proxy(environ) as (between, proxied):
            lines += [*_requests(proxied, between), ""]
            lines += [*_hand_overs(proxied, between, asked), ""]
            lines += _waiting(proxied, between, folder, asked.waiting, asked.waiters)
    sys.stdout.write("\n".join(lines) + "\n")


@contextmanager
def _through_a_proxy(environ: Mapping[str, str]) -> Iterator[tuple[proxy.Proxy, Mapping[str, str]]]:
    """Yield a proxy that does nothing but note the requests, and the environment for commands that go through it."""
    account = environ["AZURE_STORAGE_CONNECTION_STRING"]
    port = account.split("BlobEndpoint=http://127.0.0.1:")[1].split("/")[0]

    def decide(request: Request) -> Fault:
        return Fault.NONE

    with proxy.running(int(port), decide) as between:
        yield between, {**environ, "AZURE_STORAGE_CONNECTION_STRING": account.replace(f":{port}/", f":{between.port}/")}


def _starts(environ: Mapping[str, str], folder: Path, runs: int) -> list[str]:
    """Compare a run of a free lock with the smallest script that does the same."""
    pair = ((AZGUARD, *LOCK, "--"), (sys.executable, str(HERE / "sdk_lock.py")))
    for command in pair:
        _ran(command, environ, folder)  # compiles modules, fills the system's file cache
    found = [tuple(_ran(command, environ, folder) for command in pair) for _ in range(runs)]
    rows: tuple[tuple[str, Callable[[Ran], float]], ...] = (
        ("until the command begins", lambda ran: ran.began),
        ("in all", lambda ran: ran.took),
    )
    lines = [f"| a free lock, {runs} runs each | azguard lock run | SDK script | ratio |", "|---|---|---|---|"]
    for name, value in rows:
        ours, least = ([value(pair[side]) for pair in found] for side in (0, 1))
        ratio = statistics.median(mine / other for mine, other in zip(ours, least, strict=True))
        best = f"min {min(ours) * 1000:.0f} ms", f"min {min(least) * 1000:.0f} ms", f"min {min(ours) / min(least):.2f}"
        lines.append(
            f"| {name} | {statistics.median(ours) * 1000:.0f} ms, {best[0]} "
            f"| {statistics.median(least) * 1000:.0f} ms, {best[1]} | {ratio:.2f}, {best[2]} |"
        )
    return lines


def _ran(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Ran:
    """Run a command under a lock; it notes when it begins by touching a file."""
    mark = folder / "began"
    mark.unlink(missing_ok=True)
    clock, begun = time.time(), time.perf_counter()
    subprocess.run([*command, "touch", str(mark)], env=environ, stdin=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - begun
    return Ran(mark.stat().st_mtime - clock, took)


def _requests(environ: Mapping[str, str], between: proxy.Proxy) -> list[str]:
    """Count the requests of a run whose lock is there and free, before its command begins and after it has ended."""
    with tempfile.TemporaryDirectory() as name:
        first = len(between.log)
        _ran((AZGUARD, *LOCK, "--"), environ, Path(name))
        began = (Path(name) / "began").stat().st_mtime
    sent = [answer.sent or 0.0 for answer in between.log[first:]]
    before = sum(at < began for at in sent)
    return ["| requests | before the command | after it |", "|---|---|---|", f"| | {before} | {len(sent) - before} |"]


def _hand_overs(environ: Mapping[str, str], between: proxy.Proxy, asked: argparse.Namespace) -> list[str]:
    count = asked.hand_overs
    lines = [
        f"| from a release to the start of the next command, {count} each | p50 | p90 | longest |", "|---|---|---|---|",
    ]  # fmt: skip
    for number in asked.waiters:
        found = sorted(_handed_over(environ, between, asked, number))
        p50, p90 = (found[min(len(found) - 1, int(len(found) * share))] for share in (0.5, 0.9))
        lines.append(f"| {number} waiting | {p50:.2f} s | {p90:.2f} s | {found[-1]:.2f} s |")
        sys.stderr.write(f"{number} waiting: done\n")
    return lines


def _handed_over(
    environ: Mapping[str, str], between: proxy.Proxy, asked: argparse.Namespace, waiters: int
) -> list[float]:
    """Let a lock go from hand to hand, with so many waiting each time; return the seconds that each took."""
    count = asked.hand_overs
    with tempfile.TemporaryDirectory() as name:
        hold = f'touch "$0/$AZGUARD_FENCE"; sleep {asked.hold}'
        command = [AZGUARD, *LOCK, "-q", "--", "sh", "-c", hold, name]
        first, running = len(between.log), [_begun(command, environ) for _ in range(waiters + 1)]
        try:
            # Who is through asks again, and is waiting again long before the next one is.
            while len(os.listdir(name)) <= count:
                running = [each if each.poll() is None else _begun(command, environ) for each in running]
                time.sleep(0.02)  # a process tells its end by no event
        finally:
            _end(running)
        begun = sorted(each.stat().st_mtime for each in Path(name).iterdir())
    released = sorted(
        answer.answered or 0.0
        for answer in between.log[first:]
        if answer.committed and answer.request.headers.get("x-ms-lease-action") == "release"
    )
    return [next(at for at in begun if at > free) - free for free in released if free < begun[-1]][:count]


def _waiting(
    environ: Mapping[str, str], between: proxy.Proxy, folder: Path, seconds: float, waiters: Sequence[int]
) -> list[str]:
    """Watch those that wait for a lock that another holds."""
    lines = [
        f"| waiting, watched for {seconds:g} s | requests/s of each | azguard's memory | its guardian's "
        "| processor time |",
        "|---|---|---|---|---|",
    ]
    for number in waiters:
        mark = folder / "held"
        mark.unlink(missing_ok=True)
        command = ["sh", "-c", f'touch "$0"; exec sleep {seconds + 60}', str(mark)]
        holder = _begun([AZGUARD, *LOCK, "--", *command], environ)
        _until(mark.exists)
        running = [_begun([AZGUARD, *LOCK, "-q", "--", "true"], environ) for _ in range(number)]
        try:
            time.sleep(5 + 2 * number)  # until they have started
            first, memory = _asked_by_waiters(between), _memory(running[0].pid)
            time.sleep(seconds)  # the time over which requests are counted
            asked, later = _asked_by_waiters(between) - first, _memory(running[0].pid)
            ticks = sum(_processor(pid) for pid in (running[0].pid, *_children(running[0].pid)))
        finally:
            _end([*running, holder])
        lines.append(
            f"| {number} waiting | {asked / seconds / number:.2f} | {memory[0]:.0f} MiB, then {later[0]:.0f} MiB "
            f"| {later[1]:.0f} MiB | {ticks:.1f} s, start included |"
        )
    return lines


def _asked_by_waiters(between: proxy.Proxy) -> int:
    """Count the requests, without those by which the holder renews the lease on the lock itself."""
    return sum(
        answer.request.headers.get("x-ms-lease-action") != "renew" or "%21" in answer.request.path
        for answer in between.log
    )


def _memory(pid: int) -> tuple[float, float]:
    """Return the private memory of azguard and of its guardian in MiB: what is shared counts once."""
    own, *others = (_proportional(each) for each in (pid, *_children(pid)))
    return own, sum(others)


def _proportional(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _begun(command: Sequence[str], environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _end(running: Sequence["subprocess.Popen[bytes]"]) -> None:
    for each in running:
        each.terminate()
    for each in running:
        each.wait()


def _until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("it never happened")
        time.sleep(0.02)  # another process tells this by no event


if __name__ == "__main__":
    main()
