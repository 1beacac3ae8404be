#!/usr/bin/env bash
# vm.sh: runs the scripts of vagrant/ on two machines with Debian's kernel, emulated by qemu without KVM and joined by a
# bridge: make vm. As root on Debian 12 it installs what it needs. Everything lives in process, mount and network
# namespaces of its own, which the kernel ends with their first process: nothing is left, however this ends.
# Exit status: 0 passed, 1 failed, 77 skipped: this host cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

MACHINES=2
QUEUES=4 # of each machine's virtio interface: two processors' own, and as many for XDP
LIMIT=6m

skip() {
  echo "vm: skipped: $1" >&2
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
	ssh openssh-client
	ip iproute2
	END
}

install_tools() {
  local packages
  mapfile -t packages < <(needs)
  [ ${#packages[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || skip "missing ${packages[*]}, and there is no apt-get"
  echo "vm: installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq -o DPkg::Lock::Timeout=60 install -y --no-install-recommends "${packages[@]}"; } \
    >bin/vm.log 2>&1 </dev/null || skip "apt-get cannot install ${packages[*]}: bin/vm.log"
}

# join makes the bridge between the machines. IPv6 is off: what crosses is theirs.
join() {
  ip link set lo up
  ip link add nodes type bridge
  ip link set nodes up
  for ((node = 1; node <= MACHINES; node++)); do
    ip tuntap add "node$node" mode tap multi_queue
    ip link set "node$node" master nodes up
  done
}

# contained UNSHARE-ARG... COMMAND...: runs it so that it ends with this script, which a signal ends at once.
contained() {
  setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc "$@" &
  child=$!
  wait $child
}

if [ "${1-}" = inside ]; then
  join
  mkdir -p bin/vm/tmp
  mount -t tmpfs tmpfs bin/vm/tmp # it goes with the namespace
  export TMPDIR=$PWD/bin/vm/tmp
  cd internal/vm
  exec ../../bin/vm/vm.test -test.v -test.run '^TestMachines$' -test.timeout "$LIMIT"
fi

[ "$(id -u)" -eq 0 ] || skip "needs root: sudo make vm"
[ "$(uname -m)" = x86_64 ] || skip "the machines are x86_64, this host is $(uname -m)"
child=
trap 'exit 130' INT TERM HUP
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true' EXIT
mkdir -p bin/vm
install_tools
started=$SECONDS
contained tools/vm-image.sh >bin/vm/image
DATXDP_VM_IMAGE=$PWD/$(<bin/vm/image)
echo "vm: the image took $((SECONDS - started)) s"
export DATXDP_VM_IMAGE DATXDP_VM_QUEUES=$QUEUES
export CGO_ENABLED=0 # the machines have no C library of ours
go test -c -o bin/vm/vm.test ./internal/vm
go test -c -o bin/vm/bpf.test ./bpf
go build -o bin/datbench ./cmd/datbench
contained --net tools/vm.sh inside
