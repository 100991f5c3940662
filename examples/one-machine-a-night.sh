#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Run a job on one machine only, from the same crontab on all of them: the first to come runs it, the others leave.
#
#   0 3 * * * one-machine-a-night.sh nightly-report /usr/local/bin/nightly-report
#
# If that machine dies, the lock ends within a minute. The job is run again the next night, not at once.
set -eu
lock=${1:?usage: one-machine-a-night.sh LOCK COMMAND...}
shift

# Exit status 0 for "another machine runs it", so that cron stays quiet; the job's own failures come through.
azguard lock run "blob:locks/$lock" --no-wait -E 0 -q -- "$@"

# Undo: take the line out of cron. The lock's blob and its history stay.
