#!/usr/bin/env bash
# Compares datbench with UCX, libfabric, sockperf, iperf3, Go's net, TLS, quic-go and gRPC in the same network
# namespaces, and prints one table. The command services compares gRPC, HTTP, redis and raft over kernel TCP with the same over
# streams. Options: bench/peers.sh --help, bench/peers.sh services --help. Needs root.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# If the checkout belongs to another user, git refuses, and go cannot stamp the programs with the revision.
git -C "$root" rev-parse HEAD >/dev/null 2>&1 || export GOFLAGS="${GOFLAGS-} -buildvcs=false"
mkdir -p "$root/bin"
go -C "$root" build -o bin/datbench ./cmd/datbench
go -C "$root/bench/peers" build -o ../../bin/peers .
bin=$root/bin
if [ "$PWD" = "$root" ]; then bin=bin; fi # commands that are printed are shorter then
if [ "${1-}" = services ]; then exec "$bin/peers" "$@"; fi
exec "$bin/peers" --datbench "$bin/datbench" "$@"
