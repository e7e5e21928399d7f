// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
)

// tasksOfTheDemo runs the demo's tasks on a server, up to an approval that a task of the coordinator waits for, and prints a token
// at the end. MODEL_URL is where the scripted model is, and TALK_URL where that of chats is.
const tasksOfTheDemo = `set -euo pipefail
source "$ROOT/hack/lib.sh"
MODEL_TYPE=openai MODEL_KEY=scripted-key MODEL_NAME=scripted-1
manifest "$root/artifacts/demo/team.yaml" | kubectl apply -f -
kubectl wait --for=condition=Ready --timeout=300s agent/coder
kubectl apply -f "$root/artifacts/demo/task.yaml" -f "$root/artifacts/demo/approval.yaml"
kubectl wait --for=condition=Succeeded --timeout=300s task/primes
kubectl wait --for=condition=WaitingForApproval --timeout=300s task/rotate
platform task approve rotate --yes --reason 'go on'
kubectl wait --for=condition=Succeeded --timeout=300s task/rotate
kubectl apply -f "$root/artifacts/demo/coordinator.yaml"
exec 3< <(exec timeout 300 platform task watch report --tree --type ApprovalRequested)
grep -q -m 1 ApprovalRequested <&3
kill $!
kubectl create --raw /apis/core.platform.ai/v1alpha1/namespaces/default/tasks/primes/fork -f - <<'F'
{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskFork","spec":{"afterSeq":3,"newTaskName":"primes-again","prompt":"Find the first ten primes once more."}}
F
kubectl wait --for=condition=Succeeded --timeout=300s task/primes-again
kubectl apply -f - <<P
{"apiVersion":"core.platform.ai/v1alpha1","kind":"Provider","metadata":{"name":"talk"},"spec":{"type":"openai","baseURL":"$TALK_URL","defaultModel":"scripted-1","secretRef":{"name":"model-key","key":"api-key"}}}
P
echo "took: $(platform task describe primes | sed -n 's/^Duration: *//p') $(platform task tree primes | awk '$1 == "primes" {print $5}') $(platform task list --text primes --sort-by name | grep -Eo '^primes .*' | grep -Eo '<1s|[0-9]+(m[0-9]+)?s' | head -n 1)"
kubectl create serviceaccount ann
kubectl create rolebinding ann --clusterrole=platform-operator --serviceaccount=default:ann
echo "token: $(kubectl create token ann)"
`

// talk is a model for chats. The task that it waits for waits for a person.
const talk = `
models: [scripted-1]
turns:
- match: {lastRole: user, contains: wait for it}
  reply: {text: I wait., toolCalls: [{name: wait_for_task, arguments: {name: report, timeout: 60}}]}
- match: {lastRole: user, contains: hello}
  reply: {text: Hello to you.}
`

// The views of real runs: a tree, traces, results, comparisons, and what models were used for. A turn of a chat is sent, goes on
// without the page, is found again and cancelled.
func TestRuns(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	server := kit.StartServer(t, t.TempDir())
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(server.Await(t, "  REST  "))
	script := filepath.Join(t.TempDir(), "talk.yaml")
	if err := os.WriteFile(script, []byte(talk), 0o600); err != nil {
		t.Fatal(err)
	}
	urls := ""
	for name, path := range map[string]string{"MODEL_URL": root + "/test/scriptedmodel/scripts/demo.yaml", "TALK_URL": script} {
		line := kit.Start(t, nil, kit.Bin(t, "scriptedmodel"), "--listen", "127.0.0.1:0", "--script", path).Await(t, "listening on")
		urls += name + "=" + line[strings.LastIndex(line, " ")+1:] + "\n"
	}
	said := server.MustShell(t, "ROOT="+root+"\n"+urls+tasksOfTheDemo)
	_, token, _ := strings.Cut(strings.TrimSpace(said), "token: ")
	_, took, _ := strings.Cut(said, "took: ")
	took, _, _ = strings.Cut(took, "\n") // what the commands say
	scene.Drive(t, root, "runs.mjs", 3, "BASE="+base, "TOKEN="+token, "TOOK="+took, "SHOTS="+pictures(t))
}
