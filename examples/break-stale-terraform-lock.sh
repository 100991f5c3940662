#!/bin/sh
# Install:  pipx install .        (in a clone of azguard)
# Account:  export AZURE_STORAGE_CONNECTION_STRING='...'        (or as docs/accounts.md says)
#
# Break the lock that a crashed Terraform left on its state, but only if it is older than any run of yours takes.
#
#   break-stale-terraform-lock.sh tfstate/prod.terraform.tfstate 2h
#
# Terraform's lease on its state is for ever, so a runner that was killed blocks all others. Who holds it, since when and
# for what is shown first. It stays (exit 42) if its holder has written the state since, or another has taken it meanwhile.
# All stale locks of the account: azguard lock list --account --older-than 2h. So that runs leave none behind:
# azguard lock run --terraform "blob:$state" -- terraform apply.
set -eu
state=${1:?usage: break-stale-terraform-lock.sh CONTAINER/NAME AGE} age=${2:?how old, e.g. 2h}

azguard lease show "blob:$state" --query terraform -o table
azguard lease break "blob:$state" --if-older-than "$age" --wait

# Undo: not possible. Terraform takes the lock again by itself at its next run.
