#!/usr/bin/env bash
# Starts the server on ./_data with the demo's agent and runs until Ctrl-C.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
data=${DATA_DIR:-_data}
mkdir -p "$data"
work=$(mktemp -d)
server_pid='' model_pid=''

finish() {
  trap - EXIT
  local pid
  for pid in $server_pid $model_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $server_pid $model_pid; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 0' INT TERM

model "$work"
platform-standalone --data-dir "$data" "$@" >"$work/server.log" 2>&1 &
server_pid=$!
await "$work/server.log" 'ready' "$server_pid"
KUBECONFIG=$(cd "$data" && pwd)/kubeconfig
export KUBECONFIG
manifest artifacts/demo/team.yaml | kubectl apply -f -
providers

say 'The server runs until Ctrl-C. In another shell:'
cat <<TEXT
  export KUBECONFIG=$KUBECONFIG PATH=$bin:\$PATH
  kubectl apply -f artifacts/demo/task.yaml
  kubectl get executionevents --watch
  kubectl get tasks -o wide
  kubectl apply -f artifacts/demo/approval.yaml && platform task watch rotate
  platform task approve rotate      # in a third one
TEXT
tail -n +1 -f "$work/server.log" --pid="$server_pid"
