#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Keep one leader among several machines: start this on each of them. One leads, the others wait.
#
#   leader.sh cluster ./lead.sh
#
# If the machine of the leader dies, its lock ends within a minute, and another machine leads. A leader that was paused may
# write once more: let lead.sh give --fence "$AZGUARD_FENCE" with what it writes.
set -u
lock=${1:?usage: leader.sh LOCK COMMAND...}
shift

while :; do
    # Statuses of azguard that the command does not use: its own 75 would look like "another leads".
    azguard lock run "$lock" --wait 1h -E 98 --lost-exit-code 99 -q -- "$@"
    status=$?
    case $status in
    98) ;;                                                         # another leads: wait again
    99) echo "lost the lead" >&2 ;;                                # another may lead now: wait again
    0 | 2 | 78 | 126 | 127 | 130 | 143) exit $status ;;            # done, wrong usage, or told to end
    *) echo "the leader ended with status $status" >&2 ;;
    esac
    sleep "${PAUSE:-5}"                                            # so that another machine can lead
done

# Undo: send TERM to it on each machine. The lock is then free, and its blob and its history stay.
