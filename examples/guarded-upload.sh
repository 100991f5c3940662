#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Upload a file that was fetched with "azguard blob get CONTAINER/NAME -f FILE" and changed since, but never over
# the change of another: theirs is then put beside it, to be merged.
#
#   guarded-upload.sh site/config.json config.json
set -u
blob=${1:?usage: guarded-upload.sh CONTAINER/NAME FILE} file=${2:?which file}

azguard blob put "$blob" -f "$file"
status=$?
case $status in
42)
    etag=$(azguard blob get "$blob" -f "$file.theirs" --query etag -o tsv) || exit
    echo "theirs is in $file.theirs; merge it into $file, then: azguard blob put $blob -f $file --etag '$etag'" >&2
    ;;
74) echo "the answer was lost; what is there now: azguard blob show $blob" >&2 ;;
esac
exit $status

# Undo: keep what is replaced, with --snapshot-first on the put; then: azguard blob restore.
