#!/bin/sh
# Say which of the local copies fetched in this scope are no longer what the storage has; exit 42 if any.
#
#   AZGUARD_SCOPE=deploy stale-copies.sh
azguard status --query "[?file && state != 'unchanged'].[state, file, address]" -o tsv
