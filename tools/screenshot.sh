#!/usr/bin/env bash
# Makes the screenshot in docs: runs the main job, writes its report page, and takes a picture of the page in a
# browser. Usage: screenshot.sh PICTURE.png [flags of datbench]; with FROM=RESULT.json it shows an existing result.
set -euo pipefail
cd "$(dirname "$0")/.."
picture=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v chromium >/dev/null || { echo "screenshot: no chromium: apt-get install chromium" >&2; exit 2; }

if [ -n "${FROM:-}" ]; then
  cp "$FROM" "$work/main-job.json"
else
  status=0
  bin/datbench --json "$work/main-job.json" "$@" || status=$?
  [ "$status" -le 1 ] || exit "$status" # 1: rows that are not valid are shown as that
fi
bin/datbench report "$work/main-job.json" -o "$work/main-job.html"
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
  --user-data-dir="$work/browser" --window-size=1180,1850 --screenshot="$work/page.png" "file://$work/main-job.html" 2>"$work/log" ||
  { cat "$work/log" >&2; exit 1; }
mv "$work/page.png" "$picture"
echo "$picture: $(($(stat -c %s "$picture") / 1024)) KiB"
