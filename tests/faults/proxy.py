"""The fault proxy from a shell: ``python -m tests.faults.proxy --upstream PORT --rule 'PUT blob 1 drop'``.

It prints its port and runs until Ctrl-C. Point a client at that port instead of the emulator's:
``BlobEndpoint=http://127.0.0.1:PORT/devstoreaccount1`` in the connection string.
"""

import argparse
import random
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from tests.faults import truth
from tests.faults.rules import EVERY_FAULT, Rule, at_random, by_rules
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Decide, Fault

_FAULTS = ", ".join(fault.value for fault in Fault)


def main(argv: Sequence[str]) -> int:
    """Run the proxy until it is interrupted or terminated."""
    asked = _parser().parse_args(argv)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with ExitStack() as stack:
        log = stack.enter_context(open(asked.log, "a", encoding="utf-8")) if asked.log else None
        record = None if log is None else truth.into(log)
        running = stack.enter_context(proxy.running(asked.upstream, _decide(asked), port=asked.port, record=record))
        sys.stdout.write(f"{running.port}\n")
        sys.stdout.flush()
        try:
            while not stop.wait(1.0):  # in turns, so that Ctrl-C is heard on every system
                pass
        except KeyboardInterrupt:
            pass
    return 0


def _decide(asked: argparse.Namespace) -> Decide:
    if asked.share is None:
        return by_rules(asked.rule)
    seed = random.SystemRandom().randrange(1_000_000) if asked.seed is None else asked.seed
    sys.stderr.write(f"seed {seed}\n")
    return at_random(seed, asked.share, asked.weights, reads=asked.reads)


def _weights(text: str) -> Mapping[Fault, float]:
    """Read ``drop=3,zombie=1``."""
    pairs = (each.partition("=") for each in text.split(","))
    return {Fault(name): float(weight or 1) for name, _, weight in pairs}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.faults.proxy", description=__doc__, epilog=f"Faults: {_FAULTS}.")
    parser.add_argument("--upstream", type=int, required=True, metavar="PORT", help="the emulator's blob port")
    parser.add_argument("--port", type=int, default=0, help="listen here; any free port by default")
    parser.add_argument("--log", metavar="FILE", help="append the truth as JSON lines")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rule", type=Rule.parse, action="append", default=[], metavar="'METHOD WHAT NTH FAULT'")
    which.add_argument("--share", type=float, help="spoil this share of the writes at random, e.g. 0.25")
    parser.add_argument("--seed", type=int, help="with --share: repeat what that seed did")
    parser.add_argument("--weights", type=_weights, default=EVERY_FAULT, metavar="FAULT=N,...", help="with --share")
    parser.add_argument("--reads", action="store_true", help="with --share: spoil reads too")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
