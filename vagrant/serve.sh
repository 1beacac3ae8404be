#!/usr/bin/env bash
# serve.sh start ADAPTER | stop: the one datbench server of this node, as root. It is started in a session of its own, so
# that it outlives the shell, and start returns when it serves. Its log is /run/datbench-server.log.
set -euo pipefail

PID=/run/datbench-server.pid
LOG=/run/datbench-server.log
LIMIT=30 # seconds that it may take to start or to stop

# running says whether the process that was started is there, and still is datbench.
running() {
  [ -e $PID ] && [ "$(readlink "/proc/$(<$PID)/exe")" = "$(command -v datbench)" ]
}

# await COMMAND: until it succeeds.
await() {
  local end=$((SECONDS + LIMIT))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

stopped() { ! running; }
settled() { stopped || grep -q '^serving on' $LOG; }

stop() {
  if running; then
    kill "$(<$PID)"
    await stopped || kill -9 "$(<$PID)"
  fi
  rm -f $PID
}

start() {
  stop
  setsid datbench server --ia "$1" >$LOG 2>&1 </dev/null &
  echo $! >$PID
  if ! { await settled && running; }; then
    cat $LOG >&2
    stop
    exit 1
  fi
  cat $LOG
}

case "${1-} $#" in
"start 2") start "$2" ;;
"stop 1") stop ;;
*) echo "usage: serve.sh start ADAPTER | stop" >&2; exit 2 ;;
esac
