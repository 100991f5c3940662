#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Delete what `azguard queue work --once-table` keeps of keys that were done long ago, from cron once a day:
#
#   30 3 * * * forget-done-keys.sh Once jobs 8
#
# A key that is forgotten is new again. Keep it for longer than a message with it can come: messages live for 7 days,
# unless they were put for longer. Only rows that are done go; nothing writes those any more.
set -eu
table=${1:?usage: forget-done-keys.sh TABLE QUEUE [DAYS]}
queue=${2:?usage: forget-done-keys.sh TABLE QUEUE [DAYS]}
before=$(date -u -d "${3:-8} days ago" +%Y-%m-%dT%H:%M:%SZ)
lines=$(mktemp)
trap 'rm -f "$lines" "$lines.keys"' EXIT

while
    azguard entity query "$table" --num-results 100 --select state --query '[].RowKey' -o tsv \
        --filter "PartitionKey eq @queue and state eq 'done' and Timestamp lt @before" \
        --param "queue=$queue" --param "before:datetime=$before" > "$lines.keys" || exit
    sed "s|.*|{\"op\": \"delete\", \"address\": \"$table/$queue/&\", \"last_writer_wins\": true}|" "$lines.keys" > "$lines"
    rm -f "$lines.keys"
    [ -s "$lines" ]
do
    azguard entity transaction "$lines" -o none
done

# Undo: not possible; a key that was forgotten is new.
