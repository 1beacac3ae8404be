#!/usr/bin/env bash
# vm-qemu.sh: prints the path of a qemu that emulates igb. This is the installed qemu or, if that cannot, the one of
# Debian 12's backports. The latter is not installed but unpacked to $DATXDP_VM_CACHE/qemu; it runs with the libraries
# and the firmware of the installed one. If neither works, the script fails and prints the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=bookworm-backports
PACKAGES=(qemu-system-x86 qemu-system-common qemu-system-data)
CACHE=${DATXDP_VM_CACHE:?tools/vm.sh sets it}

# emulates_igb QEMU
emulates_igb() { [[ $("$1" -machine none -device igb,help 2>&1) == "igb options:"* ]]; }

mkdir -p "$CACHE"
exec 9>"$CACHE/qemu.lock"
flock 9
for qemu in "$(command -v qemu-system-x86_64)" "$CACHE/qemu/usr/bin/qemu-system-x86_64"; do
  if [ -x "$qemu" ] && emulates_igb "$qemu"; then echo "$qemu"; exit; fi
done

# This is the first process of a namespace, which ignores signals without a trap.
trap 'exit 130' INT TERM
work=$(mktemp -d "$CACHE/qemu.XXXXXX")
trap 'rm -rf "$work"' EXIT
tools=$PWD/tools log=$work/log
{ "$tools/vm-apt.sh" apt-get -q update || true; } >>"$log" 2>&1
(cd "$work" && "$tools/vm-apt.sh" apt-get -q download "${PACKAGES[@]/%//$SUITE}") >>"$log" 2>&1 </dev/null ||
  { echo "vm-qemu: cannot download the qemu of $SUITE: $(tail -n 1 "$log")" >&2; exit 1; }
for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
emulates_igb "$work/root/usr/bin/qemu-system-x86_64" ||
  { echo "vm-qemu: the qemu of $SUITE does not run here: $("$work/root/usr/bin/qemu-system-x86_64" --version 2>&1 | tail -n 1)" >&2; exit 1; }
rm -rf "$CACHE/qemu"
mv -T "$work/root" "$CACHE/qemu"
echo "$qemu"
