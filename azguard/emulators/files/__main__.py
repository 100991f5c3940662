"""Run the emulator: ``python -m azguard.emulators.files --port 10004``."""

import argparse
import base64
import binascii
import logging
import os
import signal
import sqlite3
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME

if TYPE_CHECKING:
    from azguard.emulators.files.arbiter import Smb

#: The account of Azurite, and its key, which everyone knows.
ACCOUNT = EMULATOR_NAME
KEY = EMULATOR_KEY
PORT = 10004


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal ends it; return the exit status."""
    options = _build_parser().parse_args(argv)
    try:
        accounts = dict(_read_account(each) for each in options.account or [f"{ACCOUNT}:{KEY}"])
    except (ValueError, binascii.Error):
        _say("error: --account takes NAME:KEY, a name of letters and digits and the key in base64")
        return 2
    logging.basicConfig(
        level=logging.INFO if options.log else logging.WARNING,
        filename=options.log,
        format="%(asctime)s %(message)s",
    )
    try:
        if options.location is not None:
            return _serve(Path(options.location), accounts, options)
        with tempfile.TemporaryDirectory(prefix="azguard-files-") as folder:
            return _serve(Path(folder), accounts, options)
    except KeyboardInterrupt:
        # A signal before it served, or while it ended.
        return 1


def _serve(folder: Path, accounts: dict[str, bytes], options: argparse.Namespace) -> int:
    from azguard.emulators.files import server
    from azguard.emulators.files.samba import PortTaken

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.tied:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    with ExitStack() as ends:
        try:
            smb, line = _start_smb(accounts, options, ends)
            running = server.serve(
                folder,
                accounts,
                options.host,
                options.port,
                retention_days=options.retention_days,
                share_deletion_seconds=options.share_deletion_seconds,
                smb=smb,
            )
        except PortTaken as error:
            _say(f"error: {options.host}:{options.smb_port}: {error}")
            return 1
        except BlockingIOError:
            _say(f"error: {folder} is in use by another emulator")
            return 1
        except OSError as error:
            where = f"{options.host}:{options.port}" if error.filename is None else error.filename
            _say(f"error: {where}: {error.strerror}")
            return 1
        except sqlite3.Error as error:
            _say(f"error: the data in {folder} cannot be used: {error}")
            return 1
        ends.callback(running.stop)
        told_to_end = _make_signals_readable()
        sys.stdout.write(f"Azure Files emulator: http://{options.host}:{running.port}/{next(iter(accounts))}\n{line}")
        sys.stdout.flush()
        os.read(told_to_end, 1)
        # A second Ctrl-C ends what does not end by itself.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return 0


def _make_signals_readable() -> int:
    """Return a file descriptor that a signal can be read from: it is neither missed nor raised between two lines."""
    told, tell = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(tell, b"."))
    return told


def _start_smb(accounts: dict[str, bytes], options: argparse.Namespace, ends: ExitStack) -> "tuple[Smb | None, str]":
    """Start Samba for the first account, if it is wanted; return it, and the line that tells of it."""
    from azguard.emulators.files.arbiter import Smb
    from azguard.emulators.files.samba import PortTaken, Unserved

    if options.smb_port is None:
        return None, ""
    name, key = next(iter(accounts.items()))
    try:
        smb = Smb(name, base64.b64encode(key).decode(), options.host, options.smb_port)
    except PortTaken:
        raise
    except Unserved as error:
        return None, f"SMB: not served: {error}\n"
    ends.callback(smb.stop)
    return smb, f"SMB: {options.host}:{smb.port}\n"


def _end_with_stdin() -> None:
    """End when standard input closes, unless the process that started us has set us free."""
    said = b""
    # Not through sys.stdin: Python cannot end while another thread reads that.
    while said != b"stay" and (piece := os.read(0, 1)):
        said += piece
    if said != b"stay":
        os.kill(os.getpid(), signal.SIGTERM)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _read_account(text: str) -> tuple[str, bytes]:
    name, separator, key = text.partition(":")
    if not separator or not name.isalnum():
        raise ValueError(text)
    return name, base64.b64decode(key, validate=True)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m azguard.emulators.files", description="Emulate Azure Files.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--location", help="the folder to keep shares in; without it they end with the emulator")
    parser.add_argument("--account", action="append", metavar="NAME:KEY", help=f"default: {ACCOUNT} with its known key")
    parser.add_argument(
        "--retention-days", type=int, default=0, metavar="N", help="how long a deleted share can be restored"
    )
    parser.add_argument(
        "--share-deletion-seconds",
        type=float,
        default=0,
        metavar="N",
        help="how long the name of a deleted share stays refused, as the service does for 30 s and more",
    )
    parser.add_argument(
        "--smb-port", type=int, metavar="N", help="serve the shares over SMB, too; needs Samba; 0 takes a free port"
    )
    parser.add_argument("--tied", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--log", metavar="FILE", help="where to write a line for each request")
    return parser


if __name__ == "__main__":
    sys.exit(main())
