#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Save an entity and put a message about it into a queue: readers see the message only if the entity is saved.
#
#   outbox.sh Orders eu jobs 1007 '{"state": "new"}'
#   outbox.sh Orders eu jobs          (shows the messages that an earlier run has left hidden; for cron)
#
# The message is put hidden. Its id and receipt are saved together with the entity, in one transaction, as a row of an
# outbox. Then the message is shown, and the row is deleted. A hidden message whose row was never saved ends unseen,
# after 7 days. So show what is left within that time.
set -eu
table=${1:?usage: outbox.sh TABLE PARTITION QUEUE [ROW JSON]} partition=${2:?which partition} queue=${3:?which queue}

if [ $# -gt 3 ]; then
  row=$4 entity=${5:?the entity, as JSON}
  message=$(azguard message put "$queue" --content "$row" --hidden --query "join(' ', [id, pop_receipt])" -o tsv)
  azguard entity transaction - -o none <<END
{"op": "insert", "address": "$table/$partition/$row", "entity": $entity}
{"op": "insert", "address": "$table/$partition/~outbox~${message% *}", "entity": {"receipt": "${message#* }"}}
END
fi

outbox="PartitionKey eq @partition and RowKey ge '~outbox~' and RowKey lt '~outbox~~'"
rows=$(azguard entity query "$table" --filter "$outbox" --param "partition=$partition" \
  --query '[].[RowKey, receipt]' -o tsv)
[ -z "$rows" ] || printf '%s\n' "$rows" |
  while read -r row receipt; do
    status=0
    azguard message update "$queue/${row#"~outbox~"}" --visible --pop-receipt "$receipt" -o none || status=$?
    case $status in
      0 | 42) ;;            # 42: an earlier run has shown it
      *) exit "$status" ;;  # 74: perhaps shown; the next run finds out
    esac
    status=0
    azguard entity delete "$table/$partition/$row" --last-writer-wins -o none || status=$?
    case $status in
      0 | 44) ;;            # 44: another run has deleted it
      *) exit "$status" ;;
    esac
  done

# Undo: azguard entity delete TABLE/PARTITION/ROW. A message that is shown may have been read already.
