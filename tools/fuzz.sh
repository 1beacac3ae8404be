#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for TIME, one after the other.
# A failing input stays in testdata/fuzz beside its test: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The time was up and nothing else: before Go 1.27 that is now and then taken for a failure (go.dev/issue/75804).
time_was_up() {
  grep -qx ' *context deadline exceeded' "$log" && ! grep -q 'Failing input\|panic\|_test.go:\|fuzzing process' "$log"
}

count=0
mapfile -t dirs < <(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -r -n1 dirname | sort -u)
for dir in "${dirs[@]}"; do
  listed=$(go test -vet=off -list '^Fuzz' "$dir") || { echo "$listed"; exit 1; }
  mapfile -t targets < <(grep '^Fuzz' <<<"$listed")
  for target in "${targets[@]}"; do
    if ! go test -vet=off -run '^$' -fuzz "^$target\$" -fuzzminimizetime 10x -fuzztime "$1" "$dir" >"$log" 2>&1 && ! time_was_up; then
      cat "$log"
      exit 1
    fi
    printf '%s %s\n' "$(grep '^ok' "$log" || echo "ok  	$dir")" "$target"
    count=$((count + 1))
  done
done
echo "$count fuzz targets, $1 each"
