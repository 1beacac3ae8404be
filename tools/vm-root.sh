#!/usr/bin/env bash
# vm-root.sh: builds the system that the machines of make vm and make nics boot, once for each change of its inputs, and
# prints its directory:
#   root.cpio  a minimal Debian with sshd and with vm-init as /init; kernel modules are not in it: vm-kernel.sh
#   id         the key that its root user accepts
# Needs root, a Debian 12 mirror, and debootstrap, cpio, ssh-keygen. Some 40 s.
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=bookworm
MIRROR=${DATXDP_MIRROR:-http://deb.debian.org/debian}
PACKAGES=iproute2,ethtool,kmod,openssh-server,sudo,dapl2-utils
CACHE=${DATXDP_VM_CACHE:?tools/vm.sh sets it}/root

key=$(cat "$0" tools/vm-init - <<<"$MIRROR" | sha256sum | cut -c1-16)
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
if [ -e "$CACHE/$key" ]; then
  touch "$CACHE/$key"
  echo "$CACHE/$key"
  exit
fi

# It is the first process of its namespace, to which a signal without a trap does not come through.
trap 'exit 130' INT TERM
# Systems of other inputs, which other checkouts may use, and builds that were killed.
find "$CACHE" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
work=$(mktemp -d "$CACHE/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
# mktemp's directory is closed to the user that apt drops its privileges to, and to sshd's checks.
chmod 755 "$work"
root=$work/root log=$work/log

# run keeps the output of a command to itself, unless it fails.
run() {
  "$@" >>"$log" 2>&1 </dev/null || { tail -n 30 "$log" >&2; echo "vm-root: $1 failed" >&2; exit 1; }
}

run timeout --foreground 480 debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$root" "$MIRROR"
rm -rf "$root"/var/{cache,lib}/apt/* "$root"/usr/share/{doc,man,info,locale,zoneinfo} "$root"/usr/lib/x86_64-linux-gnu/gconv
install -m 755 tools/vm-init "$root/init"
run ssh-keygen -q -t ed25519 -N "" -C "make vm" -f "$work/id"
install -D -m 600 "$work/id.pub" "$root/root/.ssh/authorized_keys"
# Not compressed: unpacking takes an emulated processor longer than reading.
(cd "$root" && find . -print0 | cpio --quiet -0 -H newc -o) >"$work/root.cpio"
rm -rf "$root"
mv -T "$work" "$CACHE/$key"
echo "$CACHE/$key"
