#!/usr/bin/env bash
# The quick start: one task from `kubectl apply` to its result, through the real
# path. Prints each command with its output and leaves nothing running.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
work=$(mktemp -d)
server_pid='' model_pid='' watch_pid=''

finish() {
  local code=$?
  trap - EXIT
  local pid
  for pid in $watch_pid $server_pid $model_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $watch_pid $server_pid $model_pid; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

model "$work"

say 'Start the server: API, store, controller, in one process'
printf '\033[36m$ platform-standalone --data-dir %s --secure-port 0\033[0m\n' "$work/data"
platform-standalone --data-dir "$work/data" --secure-port 0 --rest-bind-address 127.0.0.1:0 >"$work/server.log" 2>&1 &
server_pid=$!
await "$work/server.log" 'ready' "$server_pid"
export KUBECONFIG=$work/data/kubeconfig

say 'A model endpoint, its key, a skill and an agent'
printf '\033[36m$ kubectl apply -f artifacts/demo/team.yaml\033[0m\n'
manifest "$root/artifacts/demo/team.yaml" | kubectl apply -f -
show kubectl wait --for=condition=Ready --timeout=60s agent/coder

say 'Watch what happens, from another shell'
printf '\033[36m$ kubectl get executionevents --watch --field-selector taskName=primes &\033[0m\n'
kubectl get executionevents --watch --field-selector taskName=primes &
watch_pid=$!

say 'A task'
show kubectl apply -f "$root/artifacts/demo/task.yaml"
show kubectl wait --for=condition=Complete --timeout=300s task/primes
kill "$watch_pid" 2>/dev/null || true
wait "$watch_pid" 2>/dev/null || true
watch_pid=''

say 'What came of it'
show kubectl get tasks
show kubectl get --raw /apis/core.platform.ai/v1alpha1/namespaces/default/tasks/primes/result
echo
phase=$(kubectl get task primes -o jsonpath='{.status.phase}')
[[ $phase == Succeeded ]] || { echo "the task is $phase" >&2; exit 1; }
say "Done in ${SECONDS} s. To keep a server and try more: make run"
