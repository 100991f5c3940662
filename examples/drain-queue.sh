#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Handle all messages of a queue, then end: from cron, for work that may wait.
#
#   */10 * * * * drain-queue.sh jobs handle.sh
#
# Before the first run: azguard table create Once.
#
# A second run beside one that is still busy does no harm: each message is given to one of them. cron mails what this
# prints, which is nothing as long as all goes well.
set -u
queue=${1:?usage: drain-queue.sh QUEUE CMD [ARG...]}
shift

azguard queue work "$queue" --drain --jobs 4 --stop-after 20 --once-table Once -q -o none -- "$@"
status=$?
if [ "$status" -eq 20 ]; then
    echo "Messages of $queue could not be handled. Some may be tried again; in the poison queue are:"
    azguard queue poison list "$queue" --once-table Once -o table
fi
exit "$status"

# Undo: a message that was handled is gone. Those that failed come back with: azguard queue move "$queue-poison" "$queue"
