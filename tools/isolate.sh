#!/usr/bin/env bash
# isolate.sh PROGRAM ARG...: runs a test program. As root it runs the program in a new network namespace that has only
# loopback. Tests of other packages, and other programs of this host, then cannot use the same ports.
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null; then exec "$@"; fi
exec unshare --net bash -c 'ip link set lo up && exec "$@"' isolate "$@"
