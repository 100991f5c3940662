#!/bin/sh
# The same with azguard.
azguard safe-update blob:same/config.json --increment replicas
