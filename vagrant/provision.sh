#!/usr/bin/env bash
# provision.sh NODE ADDRESS SERVER QUEUES: installs the datbench that was copied to /tmp, then serves (node 1)
# or measures against node 1 (every other node). May be run again at any time: vagrant provision.
set -euo pipefail

if [ $# -ne 4 ]; then
  echo "usage: provision.sh NODE ADDRESS SERVER QUEUES" >&2
  exit 2
fi
node=$1 address=$2 server=$3 queues=$4

install_tools() {
  command -v ethtool >/dev/null && return
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends ethtool >/dev/null
}

# The interface that carries the private network.
interface() {
  ip -o -4 address show to "$address/32" | awk '{ print $2; exit }'
}

set_queues() {
  local max
  max=$(ethtool -l "$1" 2>/dev/null | awk '/^Combined:/ { print $2; exit }') || true
  if [ "${max:-1}" = 1 ] || [ "$max" = n/a ]; then
    echo "$1 has one queue"
    return
  fi
  if [ "$queues" -gt "$max" ]; then queues=$max; fi
  # Asking for the number it has is an error to some drivers.
  ethtool -L "$1" combined "$queues" 2>/dev/null || echo "$1 keeps its queues"
}

serve() {
  systemctl stop datbench-server 2>/dev/null || true
  systemctl reset-failed datbench-server 2>/dev/null || true
  systemd-run --quiet --unit=datbench-server /usr/local/bin/datbench server --ia "auto:$1"
  sleep 1
  systemctl is-active --quiet datbench-server || {
    journalctl --no-pager -n 20 -u datbench-server >&2
    exit 1
  }
  echo "serving on auto:$1, $address"
}

measure() {
  /usr/local/bin/datbench run "$server" --ia "auto:$1" --op send,write,read --metric lat,rate,bw
}

install_tools
if [ -e /tmp/datbench ]; then install -m 755 /tmp/datbench /usr/local/bin/datbench; fi
dev=$(interface)
[ -n "$dev" ] || { echo "no interface has the address $address" >&2; exit 1; }
set_queues "$dev"
if [ "$node" -eq 1 ]; then serve "$dev"; else measure "$dev"; fi
