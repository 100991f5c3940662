#!/bin/sh
# Add one to a number in a blob with the Azure CLI, as carefully as it can be done: only over the version that was read,
# and again if another writer was first.
until
    etag=$(az storage blob show -c same -n config.json --query properties.etag -o tsv) &&
    az storage blob download -c same -n config.json -f old.json --if-match "$etag" --no-progress -o none &&
    jq '.replicas += 1' old.json > new.json &&
    az storage blob upload -c same -n config.json -f new.json --overwrite --if-match "$etag" --no-progress -o none
do
    sleep 1
done
