#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for TIME, as many targets at a time as there are processors. Go
# writes a failing input to testdata/fuzz beside its test: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cache=$(go env GOCACHE)/fuzz

# time_was_up tests for a log in which only the time limit was reached. Before Go 1.27 this sometimes counts as a
# failure (go.dev/issue/75804).
time_was_up() {
  grep -qx ' *context deadline exceeded' "$1" && ! grep -q 'Failing input\|panic\|_test.go:\|fuzzing process' "$1"
}

# fuzz PROGRAM DIR TARGET TIME: runs one target.
fuzz() {
  local log=$1.$3.log
  (cd "$2" && "$1" -test.run '^$' -test.fuzz "^$3\$" -test.fuzzminimizetime 10x -test.fuzztime "$4" -test.parallel 1 \
    -test.fuzzcachedir "$cache/github.com/datxdp/datxdp/$2") >"$log" 2>&1 || time_was_up "$log" || { cat "$log"; return 255; }
  printf 'ok  \t%s\t%s: %s\n' "$2" "$3" "$(grep -o 'execs: .*' "$log" | tail -1)"
}

# build DIR: builds the program of a package's targets, and prints the arguments of fuzz for each target.
build() {
  local program=$bin/${1//\//_}.test
  go test -vet=off -c -fuzz . -o "$program" "$1" || return 255
  (cd "$1" && "$program" -test.list '^Fuzz') | sed "s|^|$program ${1#./} |"
}
export -f build fuzz time_was_up
export bin cache

grep -rlE '^func Fuzz' --include='*_test.go' . | grep -vE '^./(bench/peers|examples/services)/' | xargs -r -n1 dirname | sort -u |
  xargs -r -n1 -P "$(nproc)" bash -c 'build "$@"' build >"$bin/targets"
xargs -a "$bin/targets" -P "$(nproc)" -L 1 bash -c 'fuzz "$@" '"$1" fuzz
echo "$(wc -l <"$bin/targets") fuzz targets, $1 each"
