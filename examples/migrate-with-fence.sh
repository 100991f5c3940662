#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Migrate a configuration under a lock, in such a way that a migration that lost its lock cannot overwrite what the next
# one has written, however late its write arrives.
#
#   migrate-with-fence.sh site/config.json ./migrate-config     (reads the old one on stdin, writes the new one to stdout)
#
# The lock keeps two migrations from running at the same time. The fence is for the one that was paused, or cut off,
# just before its write: the storage itself refuses it (exit 77).
set -eu
blob=${1:?usage: migrate-with-fence.sh CONTAINER/NAME COMMAND} migrate=${2:?which command}

if [ "${AZGUARD_LOCK:-}" != "blob:locks/migrate" ]; then
    exec azguard lock run blob:locks/migrate --wait 10m -- "$0" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
azguard blob get "$blob" -f "$work/old" -o none
"$migrate" < "$work/old" > "$work/new"
azguard blob put "$blob" -f "$work/new" --fence "$AZGUARD_FENCE"

# Undo: take a snapshot before it, azguard blob snapshot CONTAINER/NAME; then: azguard blob restore.
