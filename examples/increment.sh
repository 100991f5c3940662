#!/bin/sh
# Raise a number in a JSON blob, however many jobs do the same at the same time.
set -eu
azguard safe-update "blob:${1:?usage: increment.sh CONTAINER/NAME PATH}" --increment "${2:?a path such as replicas}"
