#!/usr/bin/env bash
# Try the image where there is no container engine: debootstrap makes its root, chroot runs its commands.
# As root, with debootstrap, an azguard on PATH and an emulator that `azguard emulator env` tells of:
#   examples/image/try-without-engine.sh FOLDER
# It ends with 0 if all holds. To undo it: rm -r FOLDER.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd) recipe=$checkout/examples/image/Containerfile
build=$folder/build root=$folder/root
of_recipe() { sed -n "s/^$1 //p" "$recipe"; }

# The stage `build`, by its own commands.
[ -e "$build/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$build" >"$folder/debootstrap.log"
cp /etc/resolv.conf "$build/etc/"
mkdir -p "$build/src"
# Beside the certificates of the package, which the first command installs.
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$build/src.crt"
git -C "$checkout" archive HEAD | tar x -C "$build/src"
rm -rf "$build/opt/azguard" "$build/cache"
of_recipe RUN | while read -r command; do
    REQUESTS_CA_BUNDLE=/src.crt chroot "$build" sh -c "cd /src && $command" >"$folder/build.log" 2>&1 </dev/null ||
        { printf 'failed: %s\n' "$command" && tail -n 5 "$folder/build.log" && exit 1; } >&2
done
# The last stage: Python, azguard and no shell.
rm -rf "$root"
cp -a "$build" "$root"
rm -rf "$root"/src{,.crt} "$root"/bin/{sh,bash,dash} "$root/usr/lib/python3/dist-packages/pip"

# Runs azguard as process 1 in a read-only root, with the variables, the user and the entry point of the recipe.
image() {
    root=$root variables=$(of_recipe ENV) user=$(of_recipe USER) entry=$(of_recipe ENTRYPOINT | tr -d '[],"') \
        unshare --mount --pid --fork --kill-child=KILL bash -c '
            mount --bind "$root" "$root" && mount -t tmpfs -o mode=700,uid="${user%:*}" cache "$root/cache"
            mount -t tmpfs tmp "$root/tmp" && mount -t proc proc "$root/proc" && mount -o remount,ro,bind "$root"
            exec chroot --userspec="$user" "$root" /usr/bin/env -i PATH=/usr/bin $variables \
                AZURE_STORAGE_CONNECTION_STRING="$AZURE_STORAGE_CONNECTION_STRING" $entry "$@"' image "$@"
}
expect() { [ "$1" = "$2" ] || { printf 'expected %s, found %s\n' "$1" "$2" >&2; exit 1; }; }
# What ends within three seconds of a signal, with which output and status.
signalled() {
    "$@" >"$folder/said" 2>&1 & local job=$! process
    until grep -qs begun "$folder/said"; do kill -0 "$job" 2>/dev/null && sleep 0.1 || return; done
    process=$(pgrep --parent "$(pgrep --parent "$job")" || pgrep --parent "$job")
    kill -TERM "$process"
    local status=0
    wait "$job" || status=$?
    grep -xE 'begun|told|done' "$folder/said" | tr '\n' ' ' && echo "$status"
}

expect "$(sed -n 's/^__version__ = "\(.*\)"/azguard \1/p' "$checkout/azguard/__init__.py")" "$(image --version)"
expect 65532 "$(image lock run blob:locks/image -- id -u)"
expect 127 "$(image lock run blob:locks/image -- sh -c true 2>/dev/null || echo $?)"
# Process 1 collects a process whose parent has ended: none of them stays as a zombie.
expect "[]" "$(image lock run blob:locks/image -- /usr/bin/python3 -c '
import glob, os, time
if not os.fork():
    if not os.fork():
        time.sleep(0.3)
    os._exit(0)
os.wait()
time.sleep(1)
print([name for name in glob.glob("/proc/[0-9]*/stat") if open(name).read().rpartition(")")[2].split()[0] == "Z"])')"
waits='
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("told", flush=True) or 7))
print("begun", flush=True)
time.sleep(30)'
expect "begun told 7" "$(signalled image lock run blob:locks/image -- /usr/bin/python3 -c "$waits")"
azguard queue create image --if-exists skip -q -o none
azguard message put image one -q -o none
handles='
import time
print("begun", flush=True)
time.sleep(1)
print("done", flush=True)'
expect "begun done 0" "$(signalled image queue work image -o none -- /usr/bin/python3 -c "$handles")"
expect 0 "$(azguard queue show image --query approximate_message_count -o tsv)"
azguard queue delete image --last-writer-wins -q -o none
echo 'process 1 collects, passes signals on, and writes nothing but /cache and /tmp'
