#!/usr/bin/env bash
# Fails and names the files that gofmt would change.
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 -r gofmt -l)
[ -z "$files" ] || { printf 'not gofmt clean:\n%s\n' "$files"; exit 1; }
