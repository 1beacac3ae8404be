#!/usr/bin/env bash
# test.sh [ARG...]: sends, RDMA writes and RDMA reads between every two nodes, over AF_XDP, over UDP, and from one to the
# other; what arrives has the SHA-256 of what left. ARGs go to datbench run, --bytes 64MiB if there are none.
# Exit status: 0 all did, 1 some did not, 77 skipped.
set -euo pipefail
# shellcheck source=vagrant/nodes.sh
. "$(dirname "$0")/nodes.sh"

[ $# -gt 0 ] || set -- --bytes 64MiB
dir=$(results)
failed=0
while read -r -u 3 server client; do
  for links in "xdp xdp" "udp udp" "xdp udp"; do
    read -r serving link <<<"$links"
    run "$server" "$serving" "$client" "$link" "$dir/test-node$client-$link-node$server-$serving.json" \
      --op send,write,read --metric sha256 "$@" || failed=1
  done
done 3< <(pairs)
[ $failed -eq 0 ] || fail "not everything arrived as it left"
echo "test.sh: passed; results are in $dir"
