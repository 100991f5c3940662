#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Give a blob to a command while no other reader is at it, and no writer.
#
#   exclusive-read.sh site/config.json ./report        (the content on stdin)
#
# The service lets any reader in who names no lease. So all readers have to use this script, or name the lease as it does.
# The lease lasts 60 seconds: for longer work use azguard lock run.
set -eu
blob=${1:?usage: exclusive-read.sh CONTAINER/NAME COMMAND...}
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

azguard lease acquire "blob:$blob" --wait 1m -q -o none
trap 'azguard lease release "blob:$blob" -q -o none; rm -rf "$work"' EXIT
azguard blob get "$blob" -f "$work/content" --lease-id @held -o none
"$@" < "$work/content"

# Undo: nothing is left. If it was killed, the lease ends by itself within 60 s.
