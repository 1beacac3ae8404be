#!/usr/bin/env bash
# Installs what the tests need and this host lacks: only as root, only on a system with apt-get.
# Otherwise names what will be skipped, and why. Never fails: a lane that cannot go on says so itself.
set -u
cd "$(dirname "$0")/.." || exit 1

missing=()
declare -A without=(
  [gcc]="no -race build: the race detector needs a C compiler"
  [clang]="bpf: the committed object is not rebuilt and compared"
  [llvm-strip]="bpf: the committed object is not rebuilt and compared"
  [shellcheck]="lint: shell scripts are not checked"
  [dapltest]="provider: Debian's uDAPL test programs do not run"
  [udat.h]="provider: the library for C programs is not built"
  [chromium]="unit: the page of datbench report is not opened in a browser"
  [tshark]="unit: the Wireshark dissector is not tested, nor that Wireshark reads our captures"
)
declare -A package=([gcc]="gcc libc6-dev" [clang]=clang [llvm-strip]=llvm [shellcheck]=shellcheck
  [dapltest]=dapl2-utils [udat.h]="libdapl-dev libdapl2"
  [chromium]=chromium [tshark]=tshark) # brings capinfos along

look() {
  missing=()
  for tool in gcc clang llvm-strip shellcheck tshark chromium dapltest; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ -e /usr/include/dat2/udat.h ] || missing+=(udat.h)
}

install() {
  local packages=() tool
  for tool in "${missing[@]}"; do
    # shellcheck disable=SC2206 # one tool may be two packages
    packages+=(${package[$tool]})
  done
  echo "deps: installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive # tshark would ask who may capture
  { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${packages[@]}"; } >bin/deps.log 2>&1 </dev/null ||
    echo "deps: apt-get failed, its output is in bin/deps.log"
}

look
[ ${#missing[@]} -eq 0 ] && exit 0
why="only root can install it"
if [ "$(id -u)" -eq 0 ]; then
  why="apt-get could not install it"
  if command -v apt-get >/dev/null; then install; else why="there is no apt-get"; fi
fi
look
for tool in "${missing[@]}"; do
  bin/lane -skip "no $tool and $why: ${without[$tool]}" deps
done
