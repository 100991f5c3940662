#!/bin/sh
# Break the lock that a crashed Terraform left on its state, but only if it is older than any run of yours takes.
#
#   break-stale-terraform-lock.sh tfstate/prod.terraform.tfstate 2h
#
# Terraform's lease on its state is for ever, so a runner that was killed blocks everybody. Who holds it, since when and
# for what is shown first; one that is younger stays (exit 42), and so does one that somebody took meanwhile.
set -eu
state=${1:?usage: break-stale-terraform-lock.sh CONTAINER/NAME AGE} age=${2:?how old, e.g. 2h}

azguard lease show "blob:$state" --query terraform -o table
azguard lease break "blob:$state" --if-older-than "$age" --wait
