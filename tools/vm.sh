#!/usr/bin/env bash
# vm.sh: runs the tests of internal/checks/vm on machines with Debian's kernels, emulated by qemu without KVM:
#   vm.sh machines   make vm: tests the scripts of vagrant/ on two machines that are joined by a bridge
#   vm.sh nics       make nics: tests emulated NICs under several kernels, in one machine; writes docs/DRIVERS.md
#   vm.sh nics all   make nics-all: the whole matrix
#   vm.sh fetch      make vm-fetch: only downloads what the machines boot
# As root on Debian 12 it installs the tools that it needs. Kernels, a minimal system and a newer qemu are not
# installed but unpacked to $DATXDP_VM_CACHE, which all checkouts of a user share. Everything runs in new process,
# mount and network namespaces. The kernel removes them with their first process, so nothing is left behind, however
# the script ends. Exit status: 0 passed, 1 failed, 77 skipped (this host cannot run it).
set -euo pipefail
cd "$(dirname "$0")/.."

MACHINES=2
QUEUES=4 # of each machine's virtio interface: room for queues that the driver adds for XDP, unless provision.sh leaves none
RELEASES=(bookworm trixie trixie-backports)
export DATXDP_VM_CACHE=${DATXDP_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/datxdp/vm}
declare -A LIMIT=([machines]=15m [nics]=40m [nics-all]=3h)

skip() {
  echo "$lane: skipped: $1" >&2
  exit 77
}

# needs prints the packages of the tools that are missing.
needs() {
  local tool package
  while read -r tool package; do
    command -v "$tool" >/dev/null || echo "$package"
  done <<-END
	qemu-system-x86_64 qemu-system-x86
	debootstrap debootstrap
	cpio cpio
	modprobe kmod
	xz xz-utils
	ssh openssh-client
	ip iproute2
	END
}

install_tools() {
  local packages
  mapfile -t packages < <(needs)
  [ ${#packages[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || skip "missing ${packages[*]}, and there is no apt-get"
  echo "$lane: installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq -o DPkg::Lock::Timeout=60 install -y --no-install-recommends "${packages[@]}"; } \
    >bin/vm.log 2>&1 </dev/null || skip "apt-get cannot install ${packages[*]}: bin/vm.log"
}

# join makes the bridge between the machines. IPv6 is off, so that only packets of the machines cross it.
join() {
  ip link add nodes type bridge
  ip link set nodes up
  for ((node = 1; node <= MACHINES; node++)); do
    ip tuntap add "node$node" mode tap multi_queue
    ip link set "node$node" master nodes up
  done
}

# contained UNSHARE-ARG... COMMAND...: runs a command that is killed when this script ends. A signal ends the script at
# once.
contained() {
  setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc "$@" &
  child=$!
  wait $child
}

# prepare SUITE...: builds what the machines boot, and exports its paths to the tests.
prepare() {
  local started=$SECONDS
  contained tools/vm-root.sh >bin/vm/root.out
  contained tools/vm-kernel.sh "$@" >bin/vm/kernels.out
  DATXDP_VM_ROOT=$(<bin/vm/root.out)
  DATXDP_VM_KERNELS=$PWD/bin/vm/kernels.out
  export DATXDP_VM_ROOT DATXDP_VM_KERNELS DATXDP_VM_QUEUES=$QUEUES
  echo "$lane: system and kernels took $((SECONDS - started)) s"
}

# build compiles the programs for the machines. They are static, because the machines do not have this host's C
# library.
build() {
  export CGO_ENABLED=0
  go test -c -o bin/vm/vm.test ./internal/checks/vm
  go test -c -o bin/vm/bpf.test ./bpf
  go test -c -ldflags='-s -w' -o bin/vm/udplink.test ./udplink
  go test -c -ldflags='-s -w' -o bin/vm/dat.test ./dat
  go test -c -ldflags='-s -w' -o bin/vm/doctor.test ./internal/doctor
  go build -o bin/vm/datbench ./cmd/datbench
}

# provider builds the library for C programs and its tests, or leaves none if this host cannot. They are linked with the C
# library and libdat2 of Debian 12, which the machines have too.
provider() {
  rm -f bin/vm/libdatxdp.{so,test}
  [ -e /usr/include/dat2/udat.h ] && command -v gcc >/dev/null || return 0
  CGO_ENABLED=1 go test -c -tags datprovider -ldflags='-s -w' -o bin/vm/libdatxdp.test ./cmd/libdatxdp
  make -s provider && cp bin/libdatxdp.so bin/vm/
}

machines() {
  prepare bookworm
  grep -q ' - ' bin/vm/kernels.out && skip "$(<bin/vm/kernels.out)"
  build
  provider
  cp bin/vm/datbench bin/datbench
  contained --net "$0" inside machines TestMachines
}

fetch() {
  prepare "${RELEASES[@]}"
  contained tools/vm-qemu.sh >bin/vm/qemu.out || skip "no qemu emulates igb"
  cat bin/vm/{root,kernels,qemu}.out
}

nics() {
  fetch
  DATXDP_VM_QEMU=$(<bin/vm/qemu.out)
  export DATXDP_VM_QEMU DATXDP_VM_DRIVERS=$PWD/docs/DRIVERS.md DATXDP_VM_ALL="${1-}"
  build
  contained --net "$0" inside "$lane" TestNICs
}

inside() {
  lane=$1
  ip link set lo up
  [ "$lane" != machines ] || join
  mkdir -p bin/vm/tmp
  mount -t tmpfs tmpfs bin/vm/tmp # it goes with the namespace
  export TMPDIR=$PWD/bin/vm/tmp
  cd internal/checks/vm
  exec ../../../bin/vm/vm.test -test.v -test.run "^$2\$" -test.timeout "${LIMIT[$lane]}"
}

if [ "${1-}" = inside ]; then inside "$2" "$3"; fi

case "$*" in
machines | nics | fetch) lane=$1 ;;
"nics all") lane=nics-all ;;
*) echo "usage: vm.sh machines | nics [all] | fetch" >&2; exit 2 ;;
esac
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "the machines are x86_64, this host is $(uname -m)"
child=
trap 'exit 130' INT TERM HUP
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true' EXIT
mkdir -p bin/vm
install_tools
"$@"
