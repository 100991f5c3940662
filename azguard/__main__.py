"""``python -m azguard`` and the ``azguard`` script."""

try:
    import atexit
    import gc
    import os
    import signal
    import sys
except KeyboardInterrupt:  # Ctrl-C, before anything could be done about it: end without a traceback.
    raise SystemExit(130) from None

# The modules of a command are some 30,000 objects that live as long as the process. Python's own threshold of 700 walks
# them over and over while they load, 10 ms of 220; this one waits until there can be real garbage.
_OBJECTS_BEFORE_COLLECTING = 100_000
# The exit status of Ctrl-C, as shells have it.
_CTRL_C = 130
# The status of azguard.errors.ConfigError, which Windows cannot import.
_UNSUPPORTED = 78


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.platform == "win32":
        sys.stderr.write(
            "error: azguard runs on Linux and macOS\n"
            "hint: on Windows, run it in the Windows Subsystem for Linux (WSL) or in a container\n"
        )
        sys.exit(_UNSUPPORTED)
    # Until the command line is read there is nothing to undo: Ctrl-C just ends, without a traceback.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Registered first, so that it runs last.
    atexit.register(_ignore_signals)
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    from azguard.cli.app import run

    status = run(sys.argv[1:])
    if status in (129, _CTRL_C, 143):
        # What was interrupted is settled and told; threads that still wait for an answer are not waited for.
        _end(status)
    # Exit handlers and files are seen to as ever; only the search for cycles among what the system is about to
    # take back anyway is left out: 35 ms of 220.
    gc.freeze()
    sys.exit(status)


def _ignore_signals() -> None:
    """Let nothing change the exit status while Python takes itself apart, when it can run no handler any more."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)):
        if number is not None:
            signal.signal(number, signal.SIG_IGN)


def _end(status: int) -> None:
    from azguard.cli import signals

    signals.discard_unfinished()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # The reader has gone.
    if status == _CTRL_C and not signals.state.declined:
        _end_by_ctrl_c()
    os._exit(status)


def _end_by_ctrl_c() -> None:
    """End as Ctrl-C ends any other program: a script goes on after a command that only says 130."""
    from azguard.processes.signals import in_foreground

    if in_foreground():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
