#!/usr/bin/env bash
# Lists the files that gofmt would change, and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(find . -name '.?*' -prune -o -name '*.go' -exec gofmt -l {} +)
[ -z "$files" ] || { printf 'not gofmt clean:\n%s\n' "$files"; exit 1; }
