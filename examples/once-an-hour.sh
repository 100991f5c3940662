#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Write one line to a shared log each hour, from cron on several machines: the first to come writes it, the others
# find it done.
#
#   0 * * * * once-an-hour.sh ops/hours.txt
#
# Each machine writes another line under the key of the hour: the first one counts (--op-id-any-change). The blob remembers
# its last 128 keys.
set -eu
log=${1:?usage: once-an-hour.sh CONTAINER/NAME}
hour=$(date -u +%Y-%m-%dT%HZ)

azguard safe-update "blob:$log" --append "$hour $(uname -n)
" --create --op-id "hour-$hour" --op-id-any-change

# Undo: take the line out of cron. What was appended stays.
