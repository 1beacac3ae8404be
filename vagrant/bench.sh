#!/usr/bin/env bash
# bench.sh [ARG...]: builds datbench here, measures between every two nodes over AF_XDP and over UDP, and brings back JSON
# and each node's kernel log. ARGs go to datbench run, all operations and metrics if there are none.
# Exit status: 0 all results are valid, 1 some are not, 77 skipped.
set -euo pipefail
# shellcheck source=vagrant/nodes.sh
. "$(dirname "$0")/nodes.sh"

[ $# -gt 0 ] || set -- --op send,write,read --metric lat,rate,bw
dir=$(results)
failed=0
while read -r -u 3 server client; do
  for link in xdp udp; do
    run "$server" $link "$client" $link "$dir/bench-node$client-node$server-$link.json" "$@" || failed=1
  done
done 3< <(pairs)
for node in "${NODES[@]}"; do
  on "$node" dmesg >"$dir/dmesg-node$node.txt"
done
echo "bench.sh: results are in $dir"
[ $failed -eq 0 ] || fail "not every result is valid"
