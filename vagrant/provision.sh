#!/usr/bin/env bash
# provision.sh ADDRESS QUEUES MTU: sets a node up for datbench: tools, the program if it was copied to /tmp/datbench, and
# the queues and the MTU of the interface that has ADDRESS; more queues than QUEUES where AF_XDP needs them. Starts no server and no measurement. May be run again at any
# time, as root.
set -euo pipefail

if [ $# -ne 3 ]; then
  echo "usage: provision.sh ADDRESS QUEUES MTU" >&2
  exit 2
fi
address=$1 queues=$2 mtu=$3

fail() {
  echo "provision: $1" >&2
  exit 1
}

install_tools() {
  local missing=()
  command -v ip >/dev/null || missing+=(iproute2)
  command -v ethtool >/dev/null || missing+=(ethtool)
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null; } ||
    fail "missing ${missing[*]}, and apt-get cannot install it"
}

install_program() {
  if [ -e /tmp/datbench ]; then install -m 755 /tmp/datbench /usr/local/bin/datbench; fi
  command -v datbench >/dev/null || fail "no datbench: build it and copy it to /tmp/datbench"
}

# The interface that carries the network between the nodes.
interface() {
  ip -o -4 address show to "$address/32" | awk '{ print $2; exit }'
}

# channels NUMBER: the n-th "Combined:" of ethtool -l; the first is the most there can be, the second what there is.
channels() {
  ethtool -l "$dev" 2>/dev/null | awk -v n="$1" '/^Combined:/ && ++i == n { print $2 }'
}

# spare MOST: with so many queues or fewer, virtio_net finds room to add one a processor when an XDP program comes, and those that
# it adds do not transmit for AF_XDP. Other drivers add none.
spare() {
  [ "$(basename "$(readlink -f "/sys/class/net/$dev/device/driver")")" = virtio_net ] || { echo 0; return; }
  echo $(($1 - $(nproc --all)))
}

# Asking for the number it has is an error to some drivers.
set_queues() {
  local most now room
  most=$(channels 1) now=$(channels 2)
  if [[ ! $most =~ ^[0-9]+$ ]]; then
    echo "$dev: this driver has no queues to set"
    return
  fi
  room=$(spare "$most")
  if [ "$queues" -le "$room" ]; then queues=$((room + 1)); fi
  if [ "$queues" -gt "$most" ]; then queues=$most; fi
  if [ "$queues" -ne "$now" ]; then ethtool -L "$dev" combined "$queues"; fi
  echo "$dev: $queues of $most queues"
}

[ "$(id -u)" -eq 0 ] || fail "needs root"
install_tools
dev=$(interface)
[ -n "$dev" ] || fail "no interface has the address $address"
ip link set "$dev" mtu "$mtu" up
set_queues
install_program
echo "$dev: $address, MTU $mtu, $(readlink -f "/sys/class/net/$dev/device/driver" | xargs -r basename), Linux $(uname -r)"
