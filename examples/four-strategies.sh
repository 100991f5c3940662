#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Change a blob or an entity in one of the four ways that Microsoft describes for Azure Storage.
#
#   four-strategies.sh optimistic       site/config.json  ./change      exit 42 if another wrote in between
#   four-strategies.sh pessimistic      site/config.json  ./change      others wait; exit 75 if another holds it
#   four-strategies.sh last-writer-wins site/config.json  ./change      what another wrote in between is lost
#   four-strategies.sh table            Orders/eu/1007    ./change      as optimistic, for an entity
#
# The command reads the old content on stdin and writes the new content to stdout.
set -u
strategy=${1:?usage: four-strategies.sh STRATEGY ADDRESS COMMAND} address=${2:?which address} change=${3:?which command}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

change_blob() {
    azguard blob get "$address" -f "$work/old" -o none &&
        "$change" < "$work/old" > "$work/new" &&
        azguard blob put "$address" -f "$work/new" "$@"
}

case $strategy in
optimistic) change_blob ;;
pessimistic)
    azguard lease acquire "blob:$address" --wait 1m -q -o none || exit
    change_blob --lease-id @held
    status=$?
    azguard lease release "blob:$address" -q -o none
    exit $status
    ;;
last-writer-wins) change_blob --last-writer-wins ;;
table)
    azguard entity get "$address" -q -o json > "$work/old" &&
        "$change" < "$work/old" > "$work/new" &&
        azguard entity replace "$address" -f "$work/new"
    ;;
*)
    echo "there is no strategy $strategy" >&2
    exit 2
    ;;
esac

# Undo: keep what is replaced, with --snapshot-first on the put; then: azguard blob restore.
