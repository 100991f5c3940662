#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Let at most three test runs use the shared environment at the same time; the others wait their turn.
#
#   share-test-environment.sh pytest tests/system
#
# All users of the environment must say the same number of slots; another number is refused.
set -eu
: "${1:?usage: share-test-environment.sh COMMAND...}"

azguard lock run blob:locks/test-environment --slots 3 --wait 30m -- "$@"

# Undo: nothing is left but the blobs of the slots, locks/test-environment*, which need no care.
