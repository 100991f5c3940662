"""azguard's side of the guardian: fork it, tell it what to run and until when, hear how it ended."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from azguard import times
from azguard.errors import AzguardError, CommandNotFound, LockLost, NotExecutable
from azguard.frozen import frozen
from azguard.processes import command_tree, guardian_process, tree
from azguard.processes.child import Channel, Forked, fork
from azguard.processes.command_tree import drop_other_locks
from azguard.processes.guardian_process import MARGIN_SECONDS
from azguard.processes.identity import Process
from azguard.processes.signals import ENDING, Terminal, wait_readable
from azguard.processes.tree import Offspring

_STARTING = {126: NotExecutable, 127: CommandNotFound}
# What the system does not let us kill, such as a set-user-id command, is not waited for longer.
_UNKILLABLE_SECONDS = 5.0
# How often the guardian is asked whether it still watches. All silence is counted in these: a clock would count the
# time too in which we were stopped ourselves.
_ASKING_SECONDS = 0.5
# A guardian that was stopped goes on after so many unanswered questions, and is given up after so many more: a frozen
# one, or one under a debugger. Less time is left when the lock is lost.
_CONTINUED_AFTER = 2
_GIVEN_UP_AFTER = 20
_GIVEN_UP_AFTER_LOSS = 4
_POLL_SECONDS = 0.01


@frozen
class Ended:
    """How a command ended."""

    #: Its exit status, 128 + N if signal N ended it.
    status: int
    #: The signal that ended it.
    signal: int | None = None
    #: Whether it had the terminal, where Ctrl-C reaches it alone.
    typed: bool = False
    #: The processes that were to be ended and could not be, for people.
    left: tuple[str, ...] = ()


class Guardian:
    """The process that runs the command. Fork it before any thread is started, and while few modules are loaded."""

    def __init__(self, process: Forked, offspring: Offspring | None = None) -> None:
        self._descendants = offspring or Offspring()
        self._process, self._channel = process, process.channel
        self._is_lost = False
        self._ends, self._grace, self._on_lost = float("inf"), 0.0, "term"
        # One for all readers: the command may have ended by the time we hear that it was started.
        self._incoming = self._messages()
        self._others: dict[Channel, Callable[[], bool]] = {}
        self.command: int | None = None
        #: Whether the command was told to end by a signal that was passed on to it.
        self.was_told_to_end = False
        #: Whether it waits for another command, and nothing is left of the one before.
        self.stays = False

    @classmethod
    def fork(cls, *, stays: bool = False) -> "Guardian":
        """Start the process; it waits for what to run, and ends if we do. One that ``stays`` runs several commands."""
        # If SIGCHLD stayed ignored, as it may be, an ended process would be forgotten at once, with its pid.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        offspring = Offspring()
        terminal = Terminal.of_this_process()
        return cls(fork(lambda theirs: guardian_process.serve(theirs, terminal, stays=stays)), offspring)

    def start(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        ends: float,
        grace: float,
        on_lost: str,
        nested: bool = False,
        stdin: str | None = None,
    ) -> None:
        """Run a command, an argument vector without a shell, in a process group of its own.

        ``ends`` is when the lock ends unless it is renewed, on ``times.read_boot_clock``; ``grace`` is in seconds;
        ``on_lost`` is ``term``, ``kill`` or ``continue``. ``nested`` says that we run under a lock ourselves: if we
        are killed, it is because that one was lost, and the command has no grace left. ``stdin`` is the path of what it
        reads, if that is not what we read.

        Raises:
            CommandNotFound, NotExecutable: it could not be started.
            LockLost: the lock is lost, or is about to end already, as after azguard was stopped for long.
        """
        # What the guardian leaves behind if it is killed is ours to end.
        tree.adopt_orphans()
        self._ends, self._grace, self._on_lost = ends, grace, on_lost
        self.command, self.stays = None, False
        self._channel.send(
            do="start", command=list(command), environ=dict(environ), ends=ends, grace=grace, on_lost=on_lost,
            nested=nested, stdin=stdin,
        )  # fmt: skip
        self._await_start()

    def _await_start(self) -> None:
        for message in self._incoming:
            if message["is"] == "failed":
                raise _STARTING[message["status"]](message["why"])
            if message["is"] == "late":
                why = "was lost before the command was started" if self._is_lost else "could not be renewed in time"
                raise LockLost(f"the lock {why}", reason="lock_lost_before_start")
            if message["is"] == "started":
                self.command = message["pid"]
                return
        self._kill_all()
        raise AzguardError("the process that was to run the command was killed")

    def extend(self, ends: float) -> None:
        self._ends = ends
        self._channel.send(do="extend", ends=ends)

    def hear_also(self, other: Channel, hear: Callable[[], bool]) -> None:
        """Call ``hear`` whenever this channel has something while the command runs, until it returns False."""
        self._others[other] = hear

    def keep_open(self, descriptor: int) -> None:
        """Have the guardian keep a file open until the command has ended, whatever happens to us meanwhile.

        To be called before ``start``, while no other thread uses the guardian.
        """
        self._channel.hand_over(descriptor)

    def pass_on(self, number: int) -> None:
        """Send a signal to the command and all that is in its group."""
        self.was_told_to_end = self.was_told_to_end or number in ENDING
        self._channel.send(do="signal", number=number)

    def continue_(self) -> None:
        """Let a command that was stopped go on, in the foreground if we are."""
        self._channel.send(do="continue")

    def lost(self) -> None:
        """Say that the lock is lost: the command is to be ended."""
        self._is_lost = True
        self._channel.send(do="lost")

    def wait(self, tell: Callable[[dict[str, Any]], None]) -> Ended:
        """Wait for the end of the command; whatever else the guardian reports goes to ``tell``.

        ``silent`` is reported of a guardian that does not answer, and ``killed`` of one that is gone. Then all that
        the command started is ended from here.
        """
        for message in self._incoming:
            if message["is"] == "ended":
                # What came too late to end this command would end the next.
                self.stays = message["stays"] and not self._is_lost
                return Ended(message["status"], message["signal"], message["typed"], tuple(message["left"]))
            tell(message)
        left = self._kill_all()
        return Ended(128 + signal.SIGKILL, signal.SIGKILL, left=tuple(map(str, left)))

    def close(self) -> None:
        """Let it go; a command that still runs is ended."""
        if not self._process.let_go(self._grace + 2 * _UNKILLABLE_SECONDS):
            self._kill_all()

    def awaits_command(self) -> bool:
        """Return whether it waits for another command. Whatever has ended is collected, also what one left running."""
        return not self._process.reap_all() and self.stays

    def find_left_running(self) -> list[str]:
        """Return the processes that the command left running when it ended, for people; ask after ``close``."""
        try:
            return list(map(str, self._offspring()))
        except OSError:
            return []  # The machine has no room to open a file, and this is but to be told.

    def _messages(self) -> Iterator[dict[str, Any]]:
        unanswered = 0
        while not self._is_given_up(unanswered):
            ready = wait_readable([self._channel, *self._others], _ASKING_SECONDS)
            for other in [each for each in self._others if each in ready]:
                if not self._others[other]():
                    del self._others[other]
            if self._channel not in ready:
                if ready:
                    continue
                unanswered += 1
                if unanswered == 1:
                    self._channel.send(do="ping")
                if unanswered > _CONTINUED_AFTER:
                    self._process.resume()
                continue
            unanswered = 0
            messages = self._channel.receive()
            if messages is None:
                yield {"is": "killed"}
                return
            yield from (message for message in messages if message["is"] != "here")
        yield {"is": "silent"}
        self._ask_all_to_end()

    def _is_given_up(self, unanswered: int) -> bool:
        if self._on_lost == "continue":
            return False
        grace = self._grace if self._on_lost == "term" else 0.0
        is_late = times.read_boot_clock() >= self._ends - grace - MARGIN_SECONDS
        return unanswered >= (_GIVEN_UP_AFTER_LOSS if self._is_lost or is_late else _GIVEN_UP_AFTER)

    def _ask_all_to_end(self) -> None:
        """End the processes as the guardian does when a lock is lost, up to the end of the grace."""
        if self._on_lost == "kill":
            return
        tree.terminate(drop_other_locks(self._offspring()))
        kill_at = min(times.read_boot_clock() + self._grace, self._ends - MARGIN_SECONDS)
        while self._offspring() and times.read_boot_clock() < kill_at:
            time.sleep(_POLL_SECONDS)  # the system tells the end of another's child by no signal

    def _kill_all(self) -> list[Process]:
        """Kill the guardian and every process of the command; return the processes that could not be killed."""
        self._process.kill()
        if self.command is not None and not tree.IS_KNOWN:
            command_tree.kill_group(self.command, _UNKILLABLE_SECONDS)
        command_tree.kill_control_group_of(self._process.pid)
        return tree.kill(self._offspring, _UNKILLABLE_SECONDS)

    def _offspring(self) -> list[Process]:
        return self._descendants.running(but=self._process.pid)
