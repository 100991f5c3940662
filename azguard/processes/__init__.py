"""Processes that run a user's command, and end it when told. Knows nothing of Azure.

``guardian``          azguard's side: start the guarded command, hear how it ended
``guardian_process``  the guardian itself, which ends the command in time
``channel``           the messages between the two
``background``        a process that outlives the command that started it
``command_place``     azguard's side of a place where guarded commands run, one after another
``place_process``     the place itself, which gives each command a guardian
``forwarded``         the signals that are passed on to a command
``signals``           signals to azguard while its command runs
``readiness``         which of several files can be read
``interruptible``     a pipe that is read so that no signal is missed
``clock``             the clock that terms are counted on
``child``             a command with our own input and output
``filter_command``    a command as a filter: content in, content out
``editor``            the user's editor on a file
``file_command``      a command that edits a file: the content in a private copy
``scratch``           a private file for a command to edit
``temporary_folder``  a temporary folder that a signal does not leave behind
``groups``            process groups
``cgroup``            a control group of one command, where one can be made
``tree``              every process that a process started
``offspring``         the processes that are ours to end
``command_tree``      the processes of the guarded command
``filter_tree``       the processes of a filter
``terminal``          the terminal's foreground group
``identity``          processes known by pid and start: the one reader of /proc and ps
``spare_file``        a file in reserve, so that ``/proc`` can be read where no more files can be opened
``memory``            when memory is given back to the system
``locked_file``       a lock file that one process at a time holds
``notes``             notes of what a process has under way, which outlive a kill
"""
