#!/usr/bin/env bash
# The quick start: a task from `kubectl apply` to its result, an approval, a coding agent that
# changes a git repository, and a fork, with the real programs. Prints each command with its output and leaves nothing running.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
work=$(mktemp -d)
server_pid='' model_pid='' watch_pid='' repository_pid=''

finish() {
  local code=$?
  trap - EXIT
  local pid
  for pid in $watch_pid $server_pid $model_pid $repository_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $watch_pid $server_pid $model_pid $repository_pid; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

# post PATH BODY: creates a subresource with kubectl and shows the beginning of the answer.
post() {
  told "kubectl create -f - --raw /apis/core.platform.ai/v1alpha1/namespaces/default/$1 <<< $(printf %q "$2")"
  local answer
  answer=$(kubectl create -f - --raw "/apis/core.platform.ai/v1alpha1/namespaces/default/$1" <<<"$2")
  printf '%.240s…\n' "$answer"
}

# codingagent has a coding agent change the repository, up to a branch that was verified, or says why this kernel cannot run it.
codingagent() {
  local file=artifacts/demo/codingagent.yaml reason
  say 'A coding agent mends a git repository. Its program is a scripted stand-in (test/scriptedagent), which does what its prompt says'
  show sed -n '/^kind: Task/,$p' $file
  told "kubectl apply -f $file"
  manifest $file | kubectl apply -f -
  say 'It corrects a file by itself. Before it runs a command, it has to ask a person'
  if ! show platform task approve mend --wait 2m --yes --reason 'go on'; then
    reason=$(kubectl get task mend -o jsonpath='{.status.conditions[?(@.type=="Failed")].reason}')
    [[ $reason == SandboxUnavailable ]] || { platform task describe mend; return 1; }
    show kubectl get task mend -o jsonpath='{.status.message}{"\n"}'
    say 'So no agent ran: this kernel lacks the sandbox for it, Landlock 4 of Linux 6.7 (docs/operations/sandboxes.md)'
    return
  fi
  say 'When it is done, a commit is made of what it changed, and pushed with a token that it never had. The task succeeds when a read has seen the branch'
  show platform task watch mend --type ToolCallCompleted --type DeliveryStateChanged --type TaskSucceeded --type TaskFailed
  show platform task delivery mend
  show platform task diff mend
  say 'The branch in the repository'
  show git --no-pager -C "$work/greeting.git" log --oneline --stat main..mend-greeting
}

model "$work"

say 'A git repository for a coding agent, made of artifacts/demo/greeting and served on this machine'
repository "$work"
authority=${REPOSITORY_URL#http://}

say 'Start the server: API, store, controller, in one process'
flags=(--data-dir "$work/data" --secure-port 0 --agent-runtime "codex=$bin/scriptedagent" ${authority:+--repository-allow "${authority%%/*}"})
told "platform-standalone ${flags[*]}"
platform-standalone "${flags[@]}" --rest-bind-address 127.0.0.1:0 >"$work/server.log" 2>&1 &
server_pid=$!
await "$work/server.log" "$started" "$server_pid"
export KUBECONFIG=$work/data/kubeconfig

say 'A model endpoint, its key, a skill and an agent'
told 'kubectl apply -f artifacts/demo/team.yaml'
manifest "$root/artifacts/demo/team.yaml" | kubectl apply -f -
providers
show kubectl wait --for=condition=Ready --timeout=60s agent/coder

say 'Watch what happens, from another shell'
told 'kubectl get executionevents --watch --field-selector taskName=primes &'
kubectl get executionevents --watch --field-selector taskName=primes &
watch_pid=$!

say 'A task'
show kubectl apply -f "$root/artifacts/demo/task.yaml"
show kubectl wait --for=condition=Succeeded --timeout=300s task/primes
kill "$watch_pid" 2>/dev/null || true
wait "$watch_pid" 2>/dev/null || true
watch_pid=''

say 'What came of it'
show kubectl get tasks
show kubectl get --raw /apis/core.platform.ai/v1alpha1/namespaces/default/tasks/primes/result
echo

say 'What the agent ran, and what that printed'
ran=$(kubectl get executionevents --field-selector taskName=primes -o jsonpath='{range .items[?(@.toolName=="code_exec")]}{.seq}{"\n"}{end}')
for seq in $ran; do show platform task show primes "$seq"; done

say 'A task that asks before it acts: its agent may run commands only when a person agrees'
show kubectl apply -f "$root/artifacts/demo/approval.yaml"
show kubectl wait --for=condition=WaitingForApproval --timeout=300s task/rotate
show kubectl get approvals
id=$(kubectl get approvals --field-selector status.state=pending -o jsonpath='{.items[0].metadata.name}')
say 'Decide with kubectl (or: platform task approve rotate)'
post "approvals/$id/decision" '{"apiVersion":"core.platform.ai/v1alpha1","kind":"ApprovalDecision","spec":{"decision":"approve","reason":"go on"}}'
show kubectl wait --for=condition=Succeeded --timeout=300s task/rotate
show kubectl get approvals -o wide
show platform task trace rotate

if [[ -z $REPOSITORY_URL ]]; then
  say 'Left out: a coding agent that changes a git repository. This machine lacks git-http-backend, which would serve the repository'
else
  codingagent
fi

say 'A coordinator: its agent delegates to the other two, and what one of them wants to do waits for a person'
show kubectl apply -f "$root/artifacts/demo/coordinator.yaml"
until child=$(kubectl get approvals --field-selector spec.rootTask=report,status.state=pending -o jsonpath='{.items[*].spec.taskName}') && [[ -n $child ]] ||
  kubectl wait --for=condition=Complete --timeout=0 task/report >"$work/wait.log" 2>&1; do sleep 0.2; done
show platform task tree report
for child in $child; do show platform task approve "$child" --yes --reason 'go on'; done
say 'One watch follows the whole tree to its end'
show platform task watch report --tree --type TaskSucceeded --type TaskFailed --type ApprovalRequested --type ApprovalApproved
show platform task tree report
show platform task result report

say 'A fork: a new task that continues the first one from its third event (or: platform task fork primes)'
post tasks/primes/fork '{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskFork","spec":{"afterSeq":3,"newTaskName":"primes-again","prompt":"Find the first ten primes once more."}}'
show platform task watch primes-again
show kubectl get tasks
took=$SECONDS
if [[ -n ${CONSOLE:-} ]]; then
  say 'The server stays until Ctrl-C. All of it in a browser:'
  show platform console --no-open
fi
say "Done in $took s. To look at it in a browser: CONSOLE=1 make demo. To keep a server and try more: make run"
