#!/usr/bin/env bash
# isolate.sh PROGRAM ARG...: runs a test program. As root it runs in a network namespace of its own that has nothing but
# loopback, so that packages that are tested at the same time, and other programs of this host, cannot take each other's ports.
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null; then exec "$@"; fi
exec unshare --net bash -c 'ip link set lo up && exec "$@"' isolate "$@"
