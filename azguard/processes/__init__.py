"""Processes that run a user's command, and end it when told. Knows nothing of Azure.

``guardian``          azguard's side: start the guarded command, hear how it ended
``guardian_process``  the guardian itself, which ends the command in time
``command_place``     a place where guarded commands run, one after another
``signals``           signals to azguard while its command runs, the terminal that some come from, files that are
                      waited for so that none is missed, and the folder that none leaves behind
``child``             a command with our own input and output; a fork that does one piece of work, such as one that
                      outlives the command that started it, and the messages to and from it
``filter_command``    a command as a filter: content in, content out
``file_command``      a command that edits a file, and the user's editor: the content in a private copy
``tree``              every process that a process started, and those that are ours to end
``command_tree``      the processes of the guarded command: descent, process group, control group
``identity``          processes known by pid and start: the one reader of /proc and ps
``locked_file``       a file that one process at a time locks, and such files as notes of what a process has under way,
                      which outlive a kill
"""
