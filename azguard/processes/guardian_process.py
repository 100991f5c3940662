"""The guardian itself: a process of one thread and few modules, which runs the command and ends it in time.

It ends the command, with all that it started, when azguard says that the lock is lost, when azguard is gone
(``kill -9``), and when azguard falls silent (SIGSTOP, a hung network) until shortly before the lease ends. When the
command ends by an ending signal that azguard passed on, by Ctrl-C or with its terminal, the guardian ends what it
started, too. If the guardian itself is killed or stopped, azguard does the same. The two have different names, so that
one ``pkill`` does not hit both.

Not guaranteed: what runs as another user is beyond reach and, elsewhere than on Linux, what leaves the command's
process group; and, where no control group can be made (see ``command_tree``), that a command which forks all the time
ends. If azguard and the guardian are killed at the same moment, Linux kills the command, but not what it has started. A
machine that is suspended, or a guardian that is stopped together with azguard, ends the command late.
"""

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from azguard import times
from azguard.processes import command_tree, tree
from azguard.processes.child import Channel, redirect
from azguard.processes.command_tree import NAME, CommandTree, ControlGroup
from azguard.processes.signals import ENDING, FORWARDED, Terminal, wait_readable

# What is left to the system to end a killed group, before the lease ends.
MARGIN_SECONDS = 1.0
# How late a suspended machine's wake-up may be noticed: select's clock stands still during suspend.
_TICK_SECONDS = 0.25
# How often to look whether the last of what is being ended has gone.
_ENDING_SECONDS = 0.02
# What the system does not let us kill, such as a set-user-id command, is not waited for longer.
_UNKILLABLE_SECONDS = 5.0
# Meant for azguard, which passes them on; a group-wide kill must not end the guardian first.
# The last two come from the terminal, to which a process in the background may not write.
_IGNORED_SIGNALS = (*FORWARDED, signal.SIGTTIN, signal.SIGTTOU)


def serve(channel: Channel, terminal: Terminal | None, *, stays: bool) -> None:
    """Be the guardian, until the command has ended or azguard has gone before it began.

    One that ``stays`` guards one command after another, as long as each leaves nothing behind.
    """
    os.setpgid(0, 0)
    tree.rename(NAME)
    tree.adopt_orphans()
    # What azguard was started to ignore (nohup, a background job), its command ignores too.
    ignored = frozenset(number for number in _IGNORED_SIGNALS if signal.getsignal(number) is signal.SIG_IGN)
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _Guardian(channel, terminal, ignored, stays=stays).run()


class _Guardian:
    def __init__(self, channel: Channel, terminal: Terminal | None, ignored: frozenset[int], *, stays: bool) -> None:
        self._channel, self._terminal, self._ignored, self._stays = channel, terminal, ignored, stays
        self._group = command_tree.make_control_group()
        self._forget()
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        # Any handler of Python's makes the end of the command be written to the pipe.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker)
        import subprocess  # noqa: F401  # while azguard is busy elsewhere; the command shall not wait for it

    def _forget(self) -> None:
        """Know of no command, whatever was known of one before."""
        self._command = 0
        self._tree = CommandTree(0)
        self._ends = self._grace = 0.0
        self._on_lost = "term"
        self._kill_at: float | None = None  # set while the command is being ended
        self._alone = self._nested = self._paused = False
        self._is_lost = False  # a command that is not there yet is not started then
        self._typed = False  # whether the command had the terminal when it ended
        self._early: list[int] = []  # signals that came before the command was there
        self._passed_on: set[int] = set()

    def run(self) -> None:
        self._guard()
        while self._stays:
            self._forget()
            self._guard()
        if self._group is not None:
            self._group.remove()

    def _guard(self) -> None:
        """Guard one command to its end."""
        while not self._is_over():
            watched: list[Any] = [self._woken] if self._alone else [self._woken, self._channel]
            ready = wait_readable(watched, self._patience())
            if self._woken in ready:
                os.read(self._woken, 4096)
            if self._command:
                self._look_at_command()
            if self._channel in ready:
                self._hear()
            self._act_in_time()
        # One that was told to end may have left what cannot be ended, such as a set-user-id command.
        self._stays = self._stays and bool(self._command) and self._kill_at is None and self._tree.is_gone()
        if self._command:
            self._report()

    def _is_over(self) -> bool:
        if not self._command:
            return self._alone
        if self._kill_at is not None:
            return self._tree.is_gone() or times.read_boot_clock() > self._kill_at + _UNKILLABLE_SECONDS
        # A command that ends by itself may leave daemons running, as under any other runner.
        return self._tree.status is not None

    def _patience(self) -> float | None:
        if not self._command:
            return None
        return _TICK_SECONDS if self._kill_at is None else _ENDING_SECONDS

    def _hear(self) -> None:
        messages = self._channel.receive()
        if messages is None:
            self._alone = True
            if self._nested:
                self._grace = 0.0  # the lock run around us has waited for it already
            if self._command:
                self._end()
            return
        handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "start": self._start,
            "extend": self._extend,
            "signal": self._pass_on,
            "continue": lambda message: self._continue(),
            "lost": lambda message: self._lose(),
            "ping": lambda message: self._channel.send(**{"is": "here"}),
        }
        for message in messages:
            handlers[message["do"]](message)

    def _start(self, message: dict[str, Any]) -> None:
        from subprocess import Popen

        self._ends, self._grace, self._on_lost = message["ends"], message["grace"], message["on_lost"]
        self._nested = message["nested"]
        if self._is_lost or self._is_late():
            self._channel.send(**{"is": "late"})
            return
        prologue = _prologue(self._terminal, self._ignored, self._group, message["stdin"])
        try:
            # Files that we were handed open are for the command; our own are not inherited.
            process = Popen(
                message["command"],
                env=message["environ"],
                process_group=0,
                close_fds=False,
                preexec_fn=prologue,  # noqa: PLW1509  # this process has one thread
            )
        except OSError as error:
            status = 127 if isinstance(error, FileNotFoundError) else 126
            self._channel.send(**{"is": "failed"}, status=status, why=f"{message['command'][0]}: {error.strerror}")
            return
        self._command = process.pid
        self._tree = CommandTree(process.pid, self._group)
        process.returncode = 0  # reaped below, by its pid
        self._channel.send(**{"is": "started"}, pid=process.pid)
        for number in self._early:
            self._signal(number)

    def _extend(self, message: dict[str, Any]) -> None:
        self._ends = message["ends"]

    def _pass_on(self, message: dict[str, Any]) -> None:
        if self._command:
            self._signal(message["number"])
        else:
            self._early.append(message["number"])

    def _signal(self, number: int) -> None:
        if self._paused and self._is_late():
            self._end()  # it shall not go on without the lock, not even to end
            return
        self._passed_on.add(number)
        # A stopped command that is asked to end needs no SIGCONT of its own first.
        if number in (signal.SIGTERM, signal.SIGHUP):
            self._tree.ask_to_end(number)
        else:
            self._tree.send(number)

    def _continue(self) -> None:
        self._paused = False
        self._act_in_time()
        if self._kill_at is not None:
            return
        if self._terminal is not None:
            self._terminal.move(self._terminal.group, self._command)
        self._tree.go_on()

    def _lose(self) -> None:
        self._is_lost = True
        if self._command and self._on_lost != "continue":
            self._end()

    def _end(self) -> None:
        """Begin to end the command with all that it started; for the rest see ``_act_in_time``."""
        if self._is_first_end(0.0 if self._on_lost == "kill" else self._grace):
            self._tree.terminate()

    def _end_rest(self) -> None:
        """Begin to end what an ended command has started: it was told to end, so none of it may outlive the lock."""
        # What got TERM with the command is not asked twice: a second TERM makes some programs give up tidying.
        if self._is_first_end(self._grace):
            self._tree.terminate(with_group=signal.SIGTERM not in self._passed_on)

    def _is_first_end(self, grace: float) -> bool:
        """Set the time to kill, at most ``grace`` seconds from now; return whether the processes are still to be asked.

        A time that was set before is only ever moved forward.
        """
        now = times.read_boot_clock()
        kill_at = min(now + grace, max(now, self._ends - MARGIN_SECONDS))
        is_first = self._kill_at is None
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        return is_first and kill_at > now

    def _act_in_time(self) -> None:
        if not self._command:
            return
        if self._kill_at is not None:
            if times.read_boot_clock() >= self._kill_at:
                self._tree.kill()
            return
        if self._tree.status is not None or self._on_lost == "continue" or not self._is_late():
            return
        if self._paused:
            # Stopped it does no harm, and goes on if azguard finds that no other has had the lock meanwhile.
            self._tree.freeze()
        else:
            self._channel.send(**{"is": "late"})
            self._end()

    def _is_late(self) -> bool:
        """Return whether it is time to end the command, so that it is gone when the lease ends."""
        grace = self._grace if self._on_lost == "term" else 0.0
        return times.read_boot_clock() >= self._ends - grace - MARGIN_SECONDS

    def _look_at_command(self) -> None:
        for status in self._tree.reap():
            self._paused = os.WIFSTOPPED(status)
            if self._paused and self._kill_at is None and not self._lend_terminal(os.WSTOPSIG(status)):
                self._take_terminal_back()
                self._channel.send(**{"is": "stopped"}, terminal=self._terminal is not None)
        if self._tree.status is not None:
            self._typed = self._take_terminal_back() or self._typed
            if self._kill_at is None and self._was_told_to_end(self._tree.status):
                self._end_rest()

    def _was_told_to_end(self, status: int) -> bool:
        """Return whether the command ended because it was told to, and not by itself."""
        if self._passed_on.intersection(ENDING):
            return True
        # SIGQUIT, for example, makes some programs print their threads and go on: it has ended those that died of it.
        deadly = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        # The end of a terminal, like Ctrl-C, is told to the group in its foreground, and perhaps not to azguard.
        is_hung_up = deadly == signal.SIGHUP and self._terminal is not None and self._terminal.is_gone()
        return deadly in self._passed_on or is_hung_up or (deadly == signal.SIGINT and self._typed)

    def _lend_terminal(self, number: int) -> bool:
        """Put the command in the foreground if it was stopped for want of that; return whether it goes on."""
        if number not in (signal.SIGTTIN, signal.SIGTTOU) or self._terminal is None:
            return False
        if not self._terminal.move(self._terminal.group, self._command):
            return False
        self._paused = False
        self._tree.send(signal.SIGCONT)
        return True

    def _take_terminal_back(self) -> bool:
        """Give the terminal back to azguard; return whether the command had it."""
        return self._terminal is not None and self._terminal.move(self._command, self._terminal.group)

    def _report(self) -> None:
        # None is a command that the system does not let us kill.
        code = -signal.SIGKILL if self._tree.status is None else os.waitstatus_to_exitcode(self._tree.status)
        self._channel.send(
            **{"is": "ended"},
            status=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            typed=self._typed,
            left=[] if self._kill_at is None else self._tree.find_running(),
            stays=self._stays,
        )


def _prologue(
    terminal: Terminal | None, ignored: frozenset[int], group: ControlGroup | None, stdin: str | None
) -> Callable[[], None]:
    """Return the function that the command's process runs before the process becomes the command."""
    dies_with_parent = tree.bind_to_parent()
    ours = os.getpid()
    # In a pipeline another program, such as a pager, may need the terminal; a command is lent it once it asks.
    at_once = os.isatty(0) and os.isatty(1)

    def prologue() -> None:
        if terminal is not None and at_once:
            terminal.move(terminal.group, os.getpid())
        for number in _IGNORED_SIGNALS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        if stdin is not None:
            redirect(stdin)
        if group is not None:
            group.join()
        dies_with_parent()
        if os.getppid() != ours:
            os._exit(128 + signal.SIGKILL)

    return prologue
