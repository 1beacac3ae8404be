#!/usr/bin/env bash
# Builds everything for linux/arm64. For macOS it checks the packages that must run on any system, with their tests.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
GOARCH=arm64 go build ./...
GOARCH=arm64 go -C bench/peers build ./...
GOARCH=arm64 go -C examples/services build ./...

portable=()
for dir in link wire wire/internal/* udplink internal/simlink internal/identity dat examples examples/*; do
  if compgen -G "$dir/*.go" >/dev/null; then portable+=("./$dir"); fi
done
GOOS=darwin go vet "${portable[@]}"
