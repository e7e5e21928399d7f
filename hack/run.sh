#!/usr/bin/env bash
# Starts the server on ./_data, or on DATA_DIR, with the demo's agent, and runs until Ctrl-C or SIGTERM. Arguments are
# passed to the server.
set -euo pipefail
data=$(realpath -m -- "${DATA_DIR:-$(dirname "${BASH_SOURCE[0]}")/../_data}")
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
mkdir -p "$data"
work=$(mktemp -d)
server_pid='' model_pid='' console_pid='' log_pid=''

finish() {
  local code=$?
  trap - EXIT
  local pid
  for pid in $console_pid $server_pid $model_pid $log_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $console_pid $server_pid $model_pid $log_pid; do wait "$pid" 2>/dev/null || true; done
  # It was started to try things, so what it started ends with it.
  [[ -z $server_pid ]] || platform-standalone runs end --data-dir "$data" || true
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 0' INT TERM

model "$work"
platform-standalone --data-dir "$data" "$@" >"$work/server.log" 2>&1 &
server_pid=$!
await "$work/server.log" "$started" "$server_pid"
export KUBECONFIG=$data/kubeconfig
manifest artifacts/demo/team.yaml | kubectl apply -f -
providers

platform console --no-open >"$work/console.log" 2>&1 &
console_pid=$!
until grep -q 'login#once=' "$work/console.log"; do kill -0 "$console_pid" || { cat "$work/console.log"; exit 1; }; sleep 0.1; done

say 'The server runs until Ctrl-C. In another shell (docs/tour.md goes on from here):'
cat <<TEXT
  cd $root
  export KUBECONFIG=$KUBECONFIG PATH=$bin:\$PATH
  kubectl apply -f artifacts/demo/task.yaml
  platform task watch primes
  kubectl get tasks -o wide
TEXT
say 'All of it in a browser. The link works once, within ten minutes; platform console prints another one:'
grep -o 'http://[^ ]*/console/login#once=[^ ]*' "$work/console.log"
tail -n "+$((shown + 1))" -f "$work/server.log" --pid="$server_pid" &
log_pid=$!
wait "$server_pid" # unlike a program in the foreground, this lets signals be handled at once
