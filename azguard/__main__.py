"""``python -m azguard`` and the ``azguard`` script."""

import gc
import os
import signal
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    # Until the command line is read there is nothing to undo: Ctrl-C just ends, without a traceback.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    # One short-lived process: collecting garbage while modules load costs 5 % of a run and frees nothing.
    gc.disable()
    from azguard.cli.app import run

    signal.signal(signal.SIGINT, handler)
    status = run(sys.argv[1:])
    if status in (130, 143):
        # What was interrupted is settled and told; threads that still wait for an answer are not waited for.
        _end(status)
    sys.exit(status)


def _end(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # Nobody is listening.
    os._exit(status)


if __name__ == "__main__":
    main()
