#!/bin/bash
# nics-guest.sh COMMAND...: the commands of make nics inside its machine, where this file is /run/nics. There are pairs
# of NICs; namespace a has one NIC of each pair and namespace b the other, with the same name. The two are connected.
#   setup NAME...           makes the namespaces; in each, the NIC with MAC address ...:P:S gets the P-th NAME
#   set IF MTU QUEUES       sets both ends up, with addresses 10.9.0.1 and 10.9.0.2; QUEUES 0 does not change the queues
#   unset IF                sets both ends down and removes their addresses
#   over KIND IF            adds an interface "over" on both ends of IF; KIND is vlan, bond, bridge, macvlan, ipip or vxlan
#   unover IF               removes that interface
#   open IA IF MTU          opens the adapter in a at this MTU; prints "serving ... mode M" or the error
#   transfer IA [ARG...]    runs a server in a, and datbench with ARGs in b; the last line is datbench's JSON
#   counted IA [ARG...]     like transfer, and then prints the number of system calls of both ends on AF_XDP sockets
#   modules hidden|shown    hides the list of loaded modules, or shows it again
#   rings IF N              sets the slots of the receive and transmit rings
set -uo pipefail

LIMIT=90      # seconds that opening may take: the processor is emulated, and may have to share the host's
RUN=120       # seconds that a run may take; then its goroutines are printed
STOP=10       # seconds that the server may take to end
LOG=/run/server.log
JSON=/run/result.json
server=

# both COMMAND...: runs a command in both namespaces.
both() {
  local ns
  for ns in a b; do ip netns exec "$ns" "$@" || return; done
}

setup() {
  local path mac ns dev name
  modprobe -a igb vmxnet3 e1000e
  ip netns add a && ip netns add b && both ip link set lo up || return
  for path in /sys/class/net/*; do
    IFS=: read -ra mac <"$path/address"
    [ "${mac[3]}" = 57 ] || continue
    name=$((16#${mac[4]}))
    dev=${!name} ns=a
    [ "${mac[5]}" = 00 ] || ns=b
    ip link set "${path##*/}" name "$dev" && ip link set "$dev" netns "$ns" || return
  done
  both sysctl -qw net.ipv6.conf.all.disable_ipv6=1 && modules hidden
}

# queues IF N: sets the number of queues of a NIC that can change it. It does nothing if the number is right, because
# some drivers then return an error.
queues() {
  local now
  now=$(ip netns exec a ethtool -l "$1" 2>/dev/null | awk '/^Combined:/ { n = $2 } END { print n }')
  [ "$now" = "$2" ] || both ethtool -L "$1" combined "$2"
}

addresses() {
  ip -n a address replace 10.9.0.1/24 dev "$1" && ip -n b address replace 10.9.0.2/24 dev "$1"
}

set_up() {
  both ip link set "$1" mtu "$2" up || return
  [ "$3" = 0 ] || queues "$1" "$3" || return
  addresses "$1" && carrier "$1"
}

# carrier IF: waits until both ends have a carrier.
carrier() {
  local n ns
  for ns in a b; do
    for ((n = 0; n < 300; n++)); do
      [ "$(ip netns exec "$ns" cat "/sys/class/net/$1/carrier")" != 1 ] || continue 2
      sleep 0.1
    done
    echo "$1 in $ns gets no carrier"
    return 1
  done
}

unset_it() {
  both ip link set "$1" down && both ip address flush dev "$1"
}

over() {
  local -A mine=([a]=1 [b]=2) peer=([a]=2 [b]=1)
  local ns
  both ip address flush dev "$2"
  for ns in a b; do
    case $1 in
    vlan) ip -n $ns link add link "$2" name over type vlan id 7 ;;
    macvlan)
      # Without arp_ignore the NIC would answer ARP requests for the address of the macvlan, which is in the same
      # namespace.
      ip netns exec $ns sysctl -qw "net.ipv4.conf.$2.arp_ignore=1" && ip -n $ns link add link "$2" name over type macvlan mode bridge
      ;;
    bridge) ip -n $ns link add over type bridge && ip -n $ns link set "$2" master over ;;
    bond)
      ip -n $ns link add over type bond mode active-backup miimon 100 && ip -n $ns link set "$2" down &&
        ip -n $ns link set "$2" master over
      ;;
    *) below "$2" && tunnel "$1" "$2" $ns "${mine[$ns]}" "${peer[$ns]}" ;;
    esac || return
    ip -n $ns link set over up || return
  done
  addresses over
}

# below IF: adds addresses between which a tunnel runs.
below() {
  ip -n a address replace 10.8.0.1/24 dev "$1" && ip -n b address replace 10.8.0.2/24 dev "$1"
}

tunnel() {
  case $1 in
  ipip) ip -n "$3" link add over type ipip local "10.8.0.$4" remote "10.8.0.$5" ;;
  vxlan) ip -n "$3" link add over type vxlan id 7 dstport 4789 local "10.8.0.$4" remote "10.8.0.$5" ;;
  *) echo "over: no kind is called $1"; return 1 ;;
  esac
}

unover() {
  both ip link delete over
  both ip link set "$1" up
  both ip address flush dev "$1"
}

# serve IA: starts the server and waits until it serves or has ended.
serve() {
  local n
  ip netns exec a datbench server --ia "$1" >$LOG 2>&1 </dev/null &
  server=$!
  trap stop EXIT
  for ((n = 0; n < LIMIT * 10; n++)); do
    if grep -q '^serving on' $LOG; then return; fi
    [ -e /proc/$server ] || break
    sleep 0.1
  done
  return 1
}

stop() {
  local n
  kill "$server" 2>/dev/null
  for ((n = 0; n < STOP * 10; n++)); do
    [ -e /proc/$server ] || return
    sleep 0.1
  done
  kill -QUIT "$server" # its goroutines are at the end of what is printed
  sleep 1
  tail -n 100 $LOG
  kill -KILL "$server"
}

open() {
  ip -n a link set "$2" mtu "$3" || return
  serve "$1"
  grep -m1 -e '^serving on' -e '^datbench: ' $LOG || cat $LOG
}

# counters: prints what the drivers counted, in one line for each interface.
counters() {
  local ns dev
  for ns in a b; do
    for dev in $(ip -n $ns -o link show up | awk -F '[:@ ]+' '{ print $2 }'); do
      ip netns exec $ns ethtool -S "$dev" 2>/dev/null |
        awk -v line="counters of $dev in $ns:" 'NF > 1 && $NF > 0 { line = line " " $1 $NF } END { print line }'
    done
  done
}

transfer() {
  local ia=$1 status=0
  shift
  serve "$ia" || { grep '^datbench: ' $LOG || cat $LOG; return 1; }
  rm -f $JSON
  timeout -s QUIT -k $STOP $RUN ip netns exec b datbench run 10.9.0.1 --ia "$ia" --json $JSON "$@" 2>&1 </dev/null || status=$?
  [ $status -eq 0 ] || { cat $LOG; counters; }
  [ -s $JSON ] && tr -d '\n' <$JSON
  return $status
}

modules() {
  if [ "$1" = hidden ]; then mount --bind /dev/null /proc/modules; else umount /proc/modules; fi
}

rings() {
  both ethtool -G "$1" rx "$2" tx "$2" && carrier "$1"
}

# CALLS are the functions of the kernel that serve the system calls on an AF_XDP socket, each of which can make the
# driver look at its rings: sendto, recvfrom, and all kinds of poll. Calls on other descriptors do not come to them.
CALLS=(xsk_sendmsg xsk_recvmsg xsk_poll)
TRACING=/sys/kernel/tracing
BY_PROGRAM=hist:keys=common_pid.execname

# count_calls: begins to count the calls, by the name of the program, with histograms of the kernel's kprobe events.
count_calls() {
  local call
  mount -t tracefs tracefs $TRACING 2>/dev/null # fails if it is mounted
  stop_counting 2>/dev/null # if a run has not come to its end
  for call in "${CALLS[@]}"; do
    echo "p:datxdp/$call $call" >>$TRACING/kprobe_events && echo $BY_PROGRAM >"$TRACING/events/datxdp/$call/trigger" || return
  done
}

stop_counting() {
  local call
  for call in "${CALLS[@]}"; do
    echo "!$BY_PROGRAM" >"$TRACING/events/datxdp/$call/trigger"
    echo "-:datxdp/$call" >>$TRACING/kprobe_events
  done
}

# calls_made: prints the number of calls by datbench.
calls_made() {
  cat $TRACING/events/datxdp/*/hist |
    awk '/common_pid: datbench/ { for (i = 1; i < NF; i++) if ($i == "hitcount:") n += $(i + 1) } END { print n + 0 }'
}

counted() {
  local status=0
  count_calls || return
  transfer "$@" || status=$?
  echo
  echo "calls $(calls_made)"
  stop_counting
  return $status
}

case "${1-}" in
setup) setup "${@:2}" ;;
set) set_up "${@:2}" ;;
unset) unset_it "$2" ;;
over) over "${@:2}" ;;
unover) unover "$2" ;;
open) open "${@:2}" ;;
transfer) transfer "${@:2}" ;;
modules) modules "$2" ;;
rings) rings "${@:2}" ;;
counted) counted "${@:2}" ;;
*) echo "nics-guest: no command ${1-}" >&2; exit 2 ;;
esac
