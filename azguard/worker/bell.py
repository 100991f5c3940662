"""What wakes a thread that waits: rung by other threads and by signal handlers."""

import os

from azguard.processes.readiness import wait_readable

_MANY = 4096


class Bell:
    """Wakes the one thread that waits for it. Ringing takes no lock, so that a signal handler may do it."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._rung, False)

    def ring(self) -> None:
        """Wake the waiting thread, or let its next wait end at once."""
        try:
            os.write(self._rung, b".")
        except BlockingIOError:
            return  # it was rung many times already

    def wait(self, seconds: float) -> None:
        """Wait until it is rung, at most so long."""
        if wait_readable([self._heard], max(0.0, seconds)):
            os.read(self._heard, _MANY)

    def close(self) -> None:
        """Let it go."""
        os.close(self._heard)
        os.close(self._rung)
