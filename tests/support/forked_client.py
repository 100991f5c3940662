"""The client of ``forked``: ``python -I -S forked_client.py SOCKET ARGUMENT...``. It imports as little as it can."""

import _socket
import marshal
import os
import struct
import sys

_NAMED = "/dev/fd/"


def main() -> None:
    """Pass on what a process has, wait, and end as the fork ended."""
    # A shell's ``>(…)`` is a word like ``/dev/fd/63``.
    named = [int(word[len(_NAMED) :]) for word in sys.argv[2:] if word.startswith(_NAMED)]
    opened = [number for number in (0, 1, 2, *named) if _is_open(number)]
    umask = os.umask(0)
    words = [b"-m", b"azguard", *map(os.fsencode, sys.argv[2:])]
    facts = words, dict(os.environb), os.getcwdb(), umask, opened
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(sys.argv[1])
    content = marshal.dumps(facts)
    rights = struct.pack(f"{len(opened)}i", *opened)
    count = server.sendmsg([content], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    server.sendall(content[count:])
    server.shutdown(_socket.SHUT_WR)
    # What reads and writes at the other end is the fork alone.
    for number in opened:
        os.close(number)
    said = b""
    while piece := server.recv(64):
        said += piece
    # The pid, and then how it ended.
    status = int(said.partition(b" ")[2] or 255)
    if status < 0:
        import signal

        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
