"""Run a filter command of the user: content on its standard input, new content from its standard output.

The command gets a process group of its own, so that what it starts can be ended with it. If the command is stopped
instead of ending by itself, so is what has left the group: on Linux this process adopts orphans, and finds them all.
The group is not the terminal's foreground group: Ctrl-C reaches only us and is passed on, and a command that reads from
the terminal itself is stopped by the system, until the deadline. POSIX only.

A daemon that the command leaves on purpose, such as a key agent, goes on if the command ended by itself, and is ended
if it was stopped. While several commands run in threads of one process, the daemons of one that was stopped are ended
with the last. Not guaranteed: the end of what runs as another user, and, elsewhere than on Linux, of daemons.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from azguard.errors import GaveUp, TransformFailed, UsageError
from azguard.processes import command_tree, tree
from azguard.processes.child import needs_shell
from azguard.processes.identity import Process
from azguard.processes.signals import hold_back_interruptions
from azguard.processes.tree import Offspring

if TYPE_CHECKING:
    import subprocess
    from selectors import BaseSelector


_POLL_SECONDS = 0.002
# What a command told to stop may take to tidy up before it is killed.
GRACE_SECONDS = 2.0
# Content is held in memory, old and new; `yes` would fill it long before any deadline.
MOST_BYTES = 1 << 30
_CHUNK = 1 << 16
# As much of a command as a message shows.
_LONGEST_LINE = 200
# How soon a failed command is noticed whose output something else holds open. Any other end is seen at once.
_TICK_SECONDS = 0.05


class FilterTree:
    """One command. Make this object before the command is started, and ``close`` it when the command was stopped.

    While several run in threads of one process, an orphan is ended together with the last of them: it may be the work
    of any.
    """

    #: What all that run now have started, and how many they are.
    _shared: Offspring | None = None
    _count = 0
    _sharing = threading.Lock()

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        tree.adopt_orphans()
        with self._sharing:
            FilterTree._count += 1
            FilterTree._shared = FilterTree._shared or Offspring()
            self._offspring = FilterTree._shared
        self._daemons = True

    def close(self) -> None:
        """Forget the command."""
        with self._sharing:
            FilterTree._count -= 1
            if FilterTree._count == 0:
                self._offspring.reap()
                FilterTree._shared = None

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self, signals: Sequence[signal.Signals], grace: float, *, daemons: bool = True) -> None:
        """End the command and its group: by these signals in turn, what is left after their grace by KILL.

        ``daemons`` says whether to end what has left the group, too.
        """
        self._daemons = daemons
        if self.process is None:
            return
        try:
            for number in signals:
                if self._ask(self.process.pid, number):
                    self._await_end(time.monotonic() + grace, all_of_it=number is signals[-1])
        finally:
            if self._has_group():
                command_tree.signal_group(self.process.pid, signal.SIGKILL)
            tree.kill(self._running, grace)
            self._await_end(time.monotonic() + grace, all_of_it=False)

    def _ask(self, group: int, number: int) -> bool:
        """Ask all of it to end; return whether there was something to ask."""
        elsewhere = [each for each in self._running() if each.group != group]
        asked = self._has_group() and command_tree.terminate_group(group, number)
        tree.terminate(elsewhere, number)
        return asked or bool(elsewhere)

    def _await_end(self, until: float, *, all_of_it: bool) -> None:
        # A real clock: these are real processes. What the system does not let us kill, such as a set-user-id
        # command, is not waited for longer; its pipes are closed by now.
        while self._is_there(all_of_it=all_of_it) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)  # the system tells the end of a group by no signal

    def _is_there(self, *, all_of_it: bool) -> bool:
        if self.process is None:
            return False
        if self.process.poll() is None:
            return True
        return all_of_it and (self._has_group() or bool(self._running()))

    def _has_group(self) -> bool:
        """Return whether anything runs in the command's group: once all in it are gone, its number is free again."""
        if self.process is None or self.process.returncode is None:
            return self.process is not None
        if not tree.IS_KNOWN:
            return command_tree.is_group_alive(self.process.pid)
        return any(each.group == self.process.pid for each in tree.find_descendants(os.getpid()))

    def _running(self) -> list[Process]:
        if self.process is None or not self._daemons:
            return []
        if FilterTree._count == 1:
            return self._offspring.running()
        # Once it is reaped, nothing descends from it any more, and its number may be another's.
        return [] if self.process.returncode is not None else tree.find_descendants(self.process.pid)


def run(
    command: Sequence[str],
    content: bytes,
    *,
    environ: Mapping[str, str],
    deadline: float | None,
    clock: Callable[[], float],
    grace: float = GRACE_SECONDS,
    most_bytes: int = MOST_BYTES,
    relay: Callable[[bytes], None] | None = None,
) -> bytes:
    """Return the output of the command, an argument vector without a shell, for the content.

    The output is complete when no process of the command holds it open; with ``relay``, which takes the output as it
    comes, nothing is returned. ``deadline`` is in seconds of ``clock``, or None; ``grace`` is in seconds.

    Raises:
        TransformFailed: the command cannot be started, fails, is ended by a signal or writes more than ``most_bytes``.
        GaveUp: the deadline passed; the command was stopped.
        UsageError: there is no command.
    """
    _check_startable(command, deadline, clock)
    tree = FilterTree()
    by_itself = False
    try:
        with closing(_Exchange(_start_in(tree, command, environ), content, most_bytes, relay)) as exchange:
            output = _finish(command, exchange, deadline, clock)
        by_itself = True
        return output
    except TransformFailed:
        by_itself = tree.has_ended()
        raise
    except KeyboardInterrupt:
        tree.stop((signal.SIGINT, signal.SIGTERM), grace)
        raise
    finally:
        try:
            tree.stop((signal.SIGTERM,), grace, daemons=not by_itself)
        finally:
            tree.close()


def _check_startable(command: Sequence[str], deadline: float | None, clock: Callable[[], float]) -> None:
    if not command or not command[0]:
        raise UsageError("there is no command to run", reason="command_missing")
    if deadline is not None and clock() >= deadline:
        raise GaveUp(f"the deadline passed before {_show(command)} was started")


def _start_in(tree: FilterTree, command: Sequence[str], environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with hold_back_interruptions():
        tree.process = process = _start(command, environ)
    return process


def _start(command: Sequence[str], environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    import subprocess

    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=dict(environ),
            process_group=0,
        )
    except FileNotFoundError:
        raise _not_found(command) from None
    except PermissionError:
        raise TransformFailed(
            f"{_show(command)}: not executable", reason="filter_not_executable", values={"program": command[0]}
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TransformFailed(f"{_show(command)}: cannot be run: {reason}", reason="filter_not_run") from None


def _not_found(command: Sequence[str]) -> TransformFailed:
    if "/" in command[0] and os.path.exists(command[0]):
        return TransformFailed(f"{_show(command)}: its interpreter was not found", reason="interpreter_missing")
    return TransformFailed(
        f"{_show(command[:1])}: command not found",
        reason="command_needs_shell" if needs_shell(command) else "command_not_found",
    )


class _Exchange:
    """The two pipes of a running command, served without blocking on either."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        content: bytes,
        most_bytes: int,
        relay: Callable[[bytes], None] | None,
    ) -> None:
        import selectors

        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.most_bytes = most_bytes
        self.output = bytearray()
        self._keep: Callable[[bytes], None] = self.output.extend if relay is None else relay
        self.reading = True
        self._unwritten = memoryview(content)
        self._stdin, self._stdout = process.stdin, process.stdout
        self._selector: BaseSelector = selectors.DefaultSelector()
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._selector.register(self._stdout, selectors.EVENT_READ)

    def serve(self, seconds: float) -> None:
        """Move what can be moved, waiting at most so long for something to move or the command to end."""
        from subprocess import TimeoutExpired

        if not self._selector.get_map():
            with suppress(TimeoutExpired):
                self.process.wait(seconds)
            return
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._stdin:
                self._write()
            else:
                self._read()

    def _write(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._unwritten[:_CHUNK]) if self._unwritten else 0
        except BlockingIOError:
            return
        except BrokenPipeError:
            # The command does not want the rest; whether that is an error, its exit status says.
            written = len(self._unwritten)
        self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            self._selector.unregister(self._stdin)
            self._stdin.close()

    def _read(self) -> None:
        try:
            chunk = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return
        self._keep(chunk)
        if not chunk:
            self.reading = False
            self._selector.unregister(self._stdout)
            self._stdout.close()

    def close(self) -> None:
        """Close the pipes; bytes that are still in them are lost."""
        self._selector.close()
        self._stdin.close()
        self._stdout.close()


def _finish(command: Sequence[str], exchange: _Exchange, deadline: float | None, clock: Callable[[], float]) -> bytes:
    while True:
        left = _TICK_SECONDS if deadline is None else deadline - clock()
        if left <= 0:
            raise _too_late(command, exchange)
        exchange.serve(min(left, _TICK_SECONDS))
        if len(exchange.output) > exchange.most_bytes:
            raise TransformFailed(f"{_show(command)} wrote more than {exchange.most_bytes} bytes")
        status = exchange.process.poll()
        if status:
            raise _failure(command, status)
        if status == 0 and not exchange.reading:
            return bytes(exchange.output)


def _too_late(command: Sequence[str], exchange: _Exchange) -> GaveUp:
    if exchange.process.returncode is None:
        return GaveUp(f"{_show(command)} did not finish before the deadline and was stopped")
    return GaveUp(
        f"{_show(command)} ended, but something it started held its output open until the deadline",
        reason="output_held_open",
    )


def _failure(command: Sequence[str], status: int) -> TransformFailed:
    if status > 0:
        return TransformFailed(f"{_show(command)} exited with status {status}; nothing was written")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return TransformFailed(f"{_show(command)} was ended by {name}; nothing was written")


def _show(command: Sequence[str]) -> str:
    import shlex

    line = shlex.join(command)
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"
