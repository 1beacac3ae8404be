#!/usr/bin/env bash
# vm-kernel.sh SUITE...: fetches the newest kernel of each of Debian's suites and prints a line for each: the suite and the
# directory, or the suite, "-" and why it is unavailable. A directory has
#   vmlinuz      the kernel, unpacked, not installed
#   modules.cpio the modules of emulated NICs, of what lies over them, and all that they depend on
#   release      what uname -r will say
# The files stay in $DATXDP_VM_CACHE/kernels. They are fetched again only if DATXDP_VM_FRESH is set. The script needs root,
# cpio, kmod, dpkg-deb and xz. A kernel takes about 10 s and 100 MB.
set -euo pipefail
cd "$(dirname "$0")/.."

MODULES=(virtio_pci virtio_net igb vmxnet3 e1000e veth 8021q bonding bridge macvlan ipip vxlan wireguard)
CACHE=${DATXDP_VM_CACHE:?tools/vm.sh sets it}/kernels

# It is the first process of its namespace, to which a signal without a trap does not come through.
trap 'exit 130' INT TERM
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
work=$(mktemp -d "$CACHE/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
key=$(cat "$0" tools/vm-apt.sh - <<<"${DATXDP_MIRROR-}" | sha256sum | cut -c1-16)
log=$work/log tools=$PWD/tools

apt() { "$tools/vm-apt.sh" "$@" 2>>"$log" </dev/null; }

# newest SUITE: the release of its kernel, which the metapackage names.
newest() {
  local version
  version=$(apt apt-cache madison linux-image-amd64 | awk -v suite="$1/main" '$6 == suite && !n++ { print $3 }')
  [ -n "$version" ] || return 1
  apt apt-cache show "linux-image-amd64=$version" | sed -n 's/^Depends:.* linux-image-\([0-9][^ ]*-amd64\) (=.*/\1/p'
}

# packages RELEASE: what has the kernel and its modules. Since Linux 7 linux-image is a metapackage.
packages() {
  if apt apt-cache show "linux-binary-$1" >/dev/null; then
    echo "linux-binary-$1 linux-modules-$1"
  else
    echo "linux-image-$1"
  fi
}

# needed RELEASE ROOT: the paths of MODULES and of what they depend on.
needed() {
  local module
  for module in "${MODULES[@]}"; do modprobe -d "$2" -S "$1" --show-depends "$module"; done |
    awk '/^insmod/ { print $2 }' | sort -u
}

# strip RELEASE ROOT: leaves in ROOT, which has all modules, those that are needed, not compressed.
strip() {
  depmod -b "$2" "$1" && needed "$1" "$2" >"$2/needed" && [ -s "$2/needed" ] || return
  find "$2/lib/modules/" -name '*.ko*' | grep -vxFf "$2/needed" | xargs rm
  find "$2/lib/modules/" -name '*.ko.xz' -exec xz -d {} +
  find "$2/lib/modules/" -type d -empty -delete
  depmod -b "$2" "$1"
}

# fetch SUITE DIR: prints why it cannot.
fetch() {
  local release root=$2/root list
  release=$(newest "$1") || { echo "no linux-image-amd64 in $1"; return 1; }
  read -ra list < <(packages "$release")
  mkdir -p "$root/usr/lib" "$2/deb"
  ln -s usr/lib "$root/lib" # as in the system that it is unpacked over; the link itself stays out
  (cd "$2/deb" && apt apt-get -q download "${list[@]}") >>"$log" ||
    { echo "cannot download ${list[*]}: $(tail -n 1 "$log")"; return 1; }
  for deb in "$2"/deb/*.deb; do dpkg-deb -x "$deb" "$2/unpacked"; done
  find "$2/unpacked" -type f -name 'vmlinuz*' -exec mv {} "$2/vmlinuz" \; -quit
  find "$2/unpacked" -path '*/lib/modules' -exec mv {} "$root/usr/lib/" \; -quit
  strip "$release" "$root" >>"$log" 2>&1 || { echo "$release lacks a module: $(tail -n 1 "$log")"; return 1; }
  (cd "$root" && find usr -print0 | cpio --quiet -0 -H newc -o) >"$2/modules.cpio"
  echo "$release" >"$2/release"
  rm -rf "$root" "$2/deb" "$2/unpacked"
}

updated=
for suite in "$@"; do
  dir=$CACHE/$suite/$key
  if [ ! -e "$dir" ] || [ -n "${DATXDP_VM_FRESH-}" ]; then
    [ -n "$updated" ] || apt apt-get -q update >>"$log" || true # what it lacks is seen below
    updated=yes
    mkdir "$work/$suite"
    if ! why=$(fetch "$suite" "$work/$suite"); then
      echo "$suite - $why"
      continue
    fi
    mkdir -p "$CACHE/$suite"
    # Of other inputs, which other checkouts may use.
    find "$CACHE/$suite" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
    rm -rf "$dir"
    mv "$work/$suite" "$dir"
  fi
  touch "$dir"
  echo "$suite $dir"
done
