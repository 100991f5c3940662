#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Say which of the local copies fetched in this scope are no longer what the storage has; exit 42 if any.
#
#   AZGUARD_SCOPE=deploy stale-copies.sh
azguard status --query "[?file && state != 'unchanged'].[state, file, address]" -o tsv

# Undo: it changes nothing.
