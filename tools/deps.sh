#!/usr/bin/env bash
# Installs the programs that the tests need and this host does not have. It installs only as root, and only with
# apt-get. Otherwise it lists what the lanes will skip, and why. It never fails: a lane that cannot run reports this
# itself.
set -u
cd "$(dirname "$0")/.." || exit 1

# tool | Debian packages | what is skipped without it
needs() {
  cat <<'END'
gcc|gcc libc6-dev|no -race build: the race detector needs a C compiler
clang|clang|bpf: the committed object is not rebuilt and compared
llvm-strip|llvm|bpf: the committed object is not rebuilt and compared
shellcheck|shellcheck|lint: shell scripts are not checked
tshark|tshark|race: the Wireshark dissector is not tested, nor that Wireshark reads our captures
prometheus||race: the metrics, the dashboard and the alerts are not checked by Prometheus
dapltest|dapl2-utils|provider: Debian's uDAPL test programs do not run
udat.h|libdapl-dev libdapl2|provider: the library for C programs is not built
valgrind|valgrind|provider-memcheck: the provider's part in C is not checked for bad accesses
ip|iproute2|race: commands that datbench doctor gives do not run; documents: commands do not run
bpftool|bpftool|documents: commands that need it do not run
ethtool|ethtool|documents: commands that need it do not run; peers: nothing is measured without offloads
ping|iputils-ping|documents: commands that need it do not run
setcap|libcap2-bin|race: programs with capabilities and without root are not tried
ucx_perftest|ucx-utils|peers: UCX is not measured
fi_pingpong|libfabric-bin|peers: libfabric is not measured
sockperf|sockperf|peers: sockperf is not measured
iperf3|iperf3|peers: iperf3 is not measured
chromium|chromium|race: the page of datbench report is not opened in a browser
nft|nftables|race: connections through NAT and firewalls are not tried
vagrant|vagrant|race: the Vagrantfile is not validated
END
}

have() {
  case $1 in
    udat.h) [ -e /usr/include/dat2/udat.h ] ;;
    prometheus) { command -v prometheus && command -v promtool; } >/dev/null || [ -x bin/prometheus ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# missing prints the rows of needs whose tool is missing.
missing() {
  local tool rest
  needs | while IFS='|' read -r tool rest; do
    have "$tool" || echo "$tool|$rest"
  done
}

# unpack_prometheus unpacks the two programs that the tests need to bin/. It does not install Debian's package, because
# that starts a service, now and at every boot.
unpack_prometheus() {
  local dir
  dir=$(mktemp -d) || return
  (cd "$dir" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb .) &&
    install -m 755 "$dir"/usr/bin/promtool "$dir"/usr/bin/prometheus bin/
  rm -rf "$dir"
}

install_missing() {
  local packages
  mapfile -t packages < <(missing | cut -d'|' -f2 | tr ' ' '\n' | grep .)
  echo "deps: installing $(missing | cut -d'|' -f1 | paste -sd' ')"
  export DEBIAN_FRONTEND=noninteractive # tshark would ask who may capture
  {
    apt-get -qq update &&
      { [ ${#packages[@]} -eq 0 ] || apt-get -qq install -y --no-install-recommends "${packages[@]}"; } &&
      { have prometheus || unpack_prometheus; }
  } >bin/deps.log 2>&1 </dev/null || echo "deps: apt-get failed, its output is in bin/deps.log"
}

[ -z "$(missing)" ] && exit 0
why="only root can install it"
if [ "$(id -u)" -eq 0 ]; then
  why="apt-get could not install it"
  if command -v apt-get >/dev/null; then install_missing; else why="there is no apt-get"; fi
fi
missing | while IFS='|' read -r tool _ without; do
  bin/lane -skip "no $tool and $why: $without" deps
done
