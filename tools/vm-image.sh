#!/usr/bin/env bash
# vm-image.sh: builds what the machines of make vm boot, once for each change of its inputs, and prints its directory:
#   vmlinuz   Debian's kernel, unpacked, not installed
#   initrd    a minimal Debian with sshd, the kernel's virtio modules, and vm-init as /init
#   id        the key that its root user accepts
# Needs root, a Debian 12 mirror, and debootstrap, cpio, ssh-keygen. Some 50 s.
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=bookworm
MIRROR=${DATXDP_MIRROR:-http://deb.debian.org/debian}
PACKAGES=iproute2,ethtool,kmod,openssh-server,sudo
MODULES=(virtio_pci virtio_net veth)
CACHE=bin/vm

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
[ -n "$kernel" ] || { echo "vm-image: apt knows no linux-image-cloud-amd64: apt-get update" >&2; exit 1; }
version=$(apt-cache show --no-all-versions "$kernel" | awk '/^Version:/ { print $2 }')
key=$(cat "$0" tools/vm-init - <<<"$kernel $version $MIRROR" | sha256sum | cut -c1-16)
image=$CACHE/$key
if [ -e "$image" ]; then echo "$image"; exit; fi

# It is the first process of its namespace, to which a signal without a trap does not come through.
trap 'exit 130' INT TERM
rm -rf "$CACHE"/build.* # of one that was killed
mkdir -p "$CACHE"
work=$(mktemp -d "$CACHE/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
# mktemp's directory is closed to the user that apt drops its privileges to, and to sshd's checks.
chmod 755 "$work"
root=$PWD/$work/root log=$work/log

# run keeps the output of a command to itself, unless it fails.
run() {
  "$@" >>"$log" 2>&1 </dev/null || { tail -n 30 "$log" >&2; echo "vm-image: $1 failed" >&2; exit 1; }
}

make_root() {
  run timeout --foreground 480 debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$root" "$MIRROR"
  rm -rf "$root"/var/{cache,lib}/apt/* "$root"/usr/share/{doc,man,info,locale,zoneinfo} "$root"/usr/lib/x86_64-linux-gnu/gconv
  install -m 755 tools/vm-init "$root/init"
  run ssh-keygen -q -t ed25519 -N "" -C "make vm" -f "$work/id"
  install -D -m 600 "$work/id.pub" "$root/root/.ssh/authorized_keys"
}

# add_kernel puts the kernel beside the root, and into it only the modules that are loaded.
add_kernel() {
  local release=${kernel#linux-image-} modules
  run env -C "$work" apt-get -o APT::Sandbox::User=root download "$kernel"
  run dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
  mv "$work/kernel/boot/vmlinuz-$release" "$work/vmlinuz"
  mv "$work/kernel/lib/modules" "$root/lib/modules"
  run chroot "$root" depmod "$release"
  modules=$(chroot "$root" modprobe -S "$release" --show-depends -a "${MODULES[@]}" | awk '/^insmod/ { print $2 }')
  find "$root/lib/modules" -name '*.ko' -printf '/lib/modules/%P\n' | grep -vxF "$modules" | sed "s|^|$root|" | xargs rm
  run chroot "$root" depmod "$release"
}

make_root
add_kernel
# Not compressed: unpacking takes an emulated processor longer than reading.
(cd "$root" && find . -print0 | cpio --quiet -0 -H newc -o) >"$work/initrd"
rm -rf "$root" "$work/kernel" "$work"/*.deb
mv -T "$work" "$image"
find "$CACHE" -mindepth 1 -maxdepth 1 -type d -regex '.*/[0-9a-f]+' ! -name "$key" -exec rm -r {} +
echo "$image"
