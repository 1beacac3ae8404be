#!/usr/bin/env bash
# plain.sh run|packages|benchmarks: prints the tests or the packages of make plain, or the packages with benchmarks. Its
# tests are in files with "//go:build !race": the race detector would spoil them, or they are long and use one
# goroutine. The packages are in reverse order, because wire takes the longest.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(grep -rlE '^//go:build .*!race' --include='*_test.go' .)
case $1 in
  run) printf '^(%s)$\n' "$(grep -hoE '^func Test[A-Za-z0-9_]+' "${files[@]}" | sed 's/^func //' | paste -sd'|')" ;;
  packages) printf '%s\n' "${files[@]}" | xargs -n1 dirname | sort -ru ;;
  benchmarks) grep -rlE '^func Benchmark' --include='*_test.go' . | grep -vE '^./(bench/peers|examples/services)/' | xargs -n1 dirname | sort -ru ;;
esac
