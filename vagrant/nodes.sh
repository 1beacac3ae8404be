# shellcheck shell=bash
# Sourced by test.sh and bench.sh: the nodes, how to run something on them, and the new build on each. The nodes are the
# running machines of the Vagrantfile, or the hosts node1, node2, … of an ssh configuration named by DATXDP_SSH_CONFIG.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

NETWORK=192.168.57 # as in the Vagrantfile
LIMIT=${DATXDP_LIMIT:-120} # seconds that one command on a node may take

# skip REASON: what cannot run here is told apart from what failed.
skip() {
  echo "$(basename "$0"): skipped: $1" >&2
  exit 77
}

fail() {
  echo "$(basename "$0"): $1" >&2
  exit 1
}

# address NODE is derived from the number of the node: topology.md.
address() { echo "$NETWORK.$((10 + $1))"; }

# on NODE COMMAND...: as root.
on() {
  local node=$1
  shift
  # shellcheck disable=SC2029 # the words are quoted here to be the same there
  timeout --foreground "$LIMIT" ssh -F "$ssh_config" "node$node" "sudo $(printf '%q ' "$@")"
}

# adapter TRANSPORT NODE: the name datbench has for it on that node.
adapter() {
  case $1 in
  udp) echo "udp:$(address "$2")" ;;
  *) echo "$1:$(on "$2" ip -o -4 address show to "$(address "$2")/32" | awk '{ print $2; exit }')" ;;
  esac
}

find_nodes() {
  command -v ssh >/dev/null || skip "no ssh"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  ssh_config=${DATXDP_SSH_CONFIG-}
  if [ -z "$ssh_config" ]; then
    command -v vagrant >/dev/null || skip "no vagrant, and DATXDP_SSH_CONFIG names no other nodes"
    ssh_config=$work/ssh_config
    vagrant ssh-config >"$ssh_config" 2>/dev/null || skip "no machine runs: vagrant up"
  fi
  mapfile -t NODES < <(sed -n 's/^Host node\([0-9]*\)$/\1/p' "$ssh_config" | sort -n)
  [ ${#NODES[@]} -ge 2 ] || skip "needs two nodes, ${#NODES[@]} run"
}

# build leaves a static binary, for the nodes have no Go.
build() {
  command -v go >/dev/null || skip "no go to build datbench with"
  (cd .. && CGO_ENABLED=0 go build -o bin/datbench ./cmd/datbench)
}

# copy FILE NODE TO: replaces it there at once, also where it runs.
copy() {
  # shellcheck disable=SC2016 # the shell there expands it
  on "$2" sh -c 'cat >"$0.new" && chmod 755 "$0.new" && mv "$0.new" "$0"' "$3" <"$1"
}

deploy() {
  local node
  for node in "${NODES[@]}"; do
    copy ../bin/datbench "$node" /usr/local/bin/datbench
    copy serve.sh "$node" /usr/local/bin/datbench-serve
  done
}

# pairs prints every two nodes, the server first.
pairs() {
  local i j
  for i in "${NODES[@]}"; do
    for j in "${NODES[@]}"; do
      if [ "$i" -lt "$j" ]; then echo "$i $j"; fi
    done
  done
}

# run SERVER LINK CLIENT LINK FILE ARG...: datbench run on the client against the server, each over its link. Prints its
# table; its JSON goes to FILE. Where it fails, what the server said is shown.
run() {
  local server=$1 serving=$2 client=$3 link=$4 file=$5 status=0
  shift 5
  on "$server" datbench-serve start "$(adapter "$serving" "$server")" || return
  on "$client" rm -f /run/datbench.json || return
  on "$client" datbench run "$(address "$server")" --ia "$(adapter "$link" "$client")" --json /run/datbench.json "$@" || status=$?
  on "$client" cat /run/datbench.json >"$file" || status=1
  [ $status -eq 0 ] || on "$server" cat /run/datbench-server.log >&2
  on "$server" datbench-serve stop || status=1
  return $status
}

# results makes a directory for what a script brings back, and prints it.
results() {
  local dir=${DATXDP_RESULTS:-results/$(date -u +%Y%m%dT%H%M%SZ)}
  mkdir -p "$dir"
  (cd "$dir" && pwd)
}

find_nodes
build
deploy
