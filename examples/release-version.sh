#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Set the released version in a shared JSON configuration, however many pipelines do so at the same time.
#
#   release-version.sh site/config.json 1.4.2
#
# A pipeline that is run again, because this step or a later one failed, changes nothing twice.
set -eu
blob=${1:?usage: release-version.sh CONTAINER/NAME VERSION} version=${2:?which version}
run=${GITHUB_RUN_ID:-${CI_PIPELINE_ID:-${BUILD_BUILDID:?set it to what stays the same when this run is repeated}}}

azguard safe-update "blob:$blob" --set-string "version=$version" --increment releases --op-id "release-$run"

# Undo: run it for another run with the version of before; the count of releases goes on.
