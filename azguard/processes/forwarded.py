"""The one list of signals that azguard passes on to the command that it runs."""

import signal

#: These ask a program to end.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: All that is passed on.
FORWARDED = (*ENDING, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP)
