#!/bin/sh
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
