#!/usr/bin/env bash
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Shows in which order a lock is given: five jobs wait for it, and two of them are killed while they wait.
#
#   bash five-waiters.sh [LOCK]
set -euo pipefail

lock=${1:-order-of-service}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Holds the lock until all five wait.
azguard lock run "$lock" -q -- sh -c 'until [ -e "$0/all" ]; do sleep 0.1; done' "$folder" &
until azguard lock show "$lock" --query state -o tsv 2>/dev/null | grep -q held; do sleep 0.1; done

for job in 1 2 3 4 5; do
    azguard lock run "$lock" --wait 5m -- echo "served: job $job" 2>"$folder/$job" &
    pids[job]=$!
    until grep -qs 'in the queue' "$folder/$job"; do sleep 0.1; done
done

kill -9 "${pids[2]}" "${pids[4]}"
touch "$folder/all"
wait 2>/dev/null

# Undo: azguard blob delete "locks/$lock" --last-writer-wins; the same for "locks/$lock!log".
