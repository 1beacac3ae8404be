#!/bin/bash
# memory-guest.sh TRIES: compares a program that waits by reading its memory with one that polls for completions. Both
# ends run in this machine, in two namespaces that it makes. For each try it prints two round trips in microseconds:
#   send N  the median of datbench's sends
#   dtest N the mean of dtest -W
# Needs datbench, and the provider in /run/libdatxdp.so. The exit status is 1 if dtest did not pass.
set -uo pipefail

ROUNDS=200 # round trips of dtest; on a busy host each takes some 10 ms
LIMIT=60   # seconds that a program may take
RENDEZVOUS=:15828
JSON=/run/memory.json
export DAT_OVERRIDE=/run/dat.conf

# in_a is for the background: exec, so that a signal for the job comes to the program.
in_a() { exec ip netns exec memory-a timeout -k 1 $LIMIT "$@"; }
in_b() { ip netns exec memory-b timeout -k 1 $LIMIT "$@"; }

set_up() {
  local ns
  local -A host=([a]=1 [b]=2)
  for ns in a b; do ip netns add memory-$ns && ip -n memory-$ns link set lo up || return; done
  ip link add veth0 netns memory-a type veth peer name veth0 netns memory-b || return
  for ns in a b; do
    ip netns exec memory-$ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n memory-$ns address add "10.73.0.${host[$ns]}/24" dev veth0 && ip -n memory-$ns link set veth0 up || return
  done
  echo 'ia u2.0 nonthreadsafe default /run/libdatxdp.so datxdp.2.0 "xdp:veth0" ""' >$DAT_OVERRIDE
}

# await COMMAND...: waits until the command succeeds, but not longer than the server runs.
await() { until "$@"; do kill -0 $server 2>/dev/null || return; sleep 0.05; done; }
serving() { grep -q "serving on" /run/memory.log; }
listening() { ip netns exec memory-a ss -tlnH | grep -q "$RENDEZVOUS"; }

measure_send() {
  in_a datbench server --ia xdp:veth0 >/run/memory.log 2>&1 &
  server=$!
  await serving
  in_b datbench run 10.73.0.1 --ia xdp:veth0 --op send --metric lat --size 64 --duration 300ms --json $JSON >/dev/null 2>&1
  kill $server
  wait $server
  echo "send $(grep -oP '"p50_us": *\K[0-9.]+' $JSON | head -n 1)"
}

# measure_dtest prints twice the latency of dtest, which is half a round trip.
measure_dtest() {
  local out
  in_a dtest -P ia -W -B $ROUNDS >/run/memory.log 2>&1 &
  server=$!
  await listening
  out=$(in_b dtest -P ia -h 10.73.0.1 -W -B $ROUNDS 2>&1)
  wait $server
  if [[ $out != *PASSED* ]] || ! grep -q PASSED /run/memory.log; then
    echo "$out"
    cat /run/memory.log
    return 1
  fi
  echo "dtest $(grep -oP 'latency \K[0-9.]+' <<<"$out" | awk '{ print 2 * $1 }')"
}

set_up || exit
for ((try = 0; try < $1; try++)); do
  measure_send
  measure_dtest || exit
done
