// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
)

const (
	// agentImage has the scripted agent as the program of codex, and a shell for what it is told to do.
	agentImage = "platform.ai/test-agent:dev"
	// gitPortOfAgents is another port of this machine from which the controller in testdata/cluster allows repositories.
	gitPortOfAgents = ":9420"
	// modelKey is the key of the Provider that cast makes.
	modelKey = "k-1234567890"
)

// agentImages loads the image of codex into the node, and returns the variables with which the controller is told the images of coding
// agents. That of opencode lacks its program, and the others have none.
func agentImages(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	c.LoadImages(t, imageOfAgent(t))
	return fmt.Sprintf("PLATFORM_ACP_CODEX_RUNTIME_IMAGE=%s PLATFORM_ACP_OPENCODE_RUNTIME_IMAGE=%s", c.Pin(t, agentImage), c.Pin(t, shellImage))
}

// imageOfAgent makes the image, and returns its tarball.
func imageOfAgent(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image.tar")
	built, err := filepath.EvalSymlinks("../../_output/cluster/img")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-name", agentImage, "-certificates", "", "-user", "1000:1000", "-entrypoint", "/usr/local/bin/codex-acp", "-o", image,
		kit.Bin(t, "scriptedagent") + "=/usr/local/bin/codex-acp", filepath.Join(filepath.Dir(built), "busybox", "bin", "busybox") + "=/bin/busybox",
	}
	for name := range strings.FieldsSeq("cat env grep id ls mkdir rm sed setsid sh sleep tr") {
		args = append(args, "@busybox=/bin/"+name)
	}
	if out, err := exec.CommandContext(t.Context(), "../../_output/cluster/bin/images", args...).CombinedOutput(); err != nil {
		t.Fatalf("image: %v\n%s", err, out)
	}
	return image
}

// changes is what an agent does in its container. It prints who it is, what of its worker and of the platform it can read, and where the
// words of a credential are; then it changes its repository.
const changes = `
echo "user $(id -u), home $HOME, in $PWD"; ls -A
for f in /var/run/secrets/platform.ai/token /var/run/secrets/platform.ai/..data/token /proc/1/environ /proc/1/mem /dev/termination-log; do cat $f > /dev/null 2>&1 && echo "OPEN: read $f"; done
for d in /var/run/secrets/platform.ai /spool /baseline /secrets/git /fetched /proc/1/root /proc/1/fd; do ls $d > /dev/null 2>&1 && echo "OPEN: list $d"; done
(echo x > /platform/platform-worker) 2> /dev/null && echo "OPEN: replace the worker"
words='rt-4d3c2b1a[0]9f8e7d6c5b4|pt-6f7a8b9c[0]d1e2f3a4b5c|eyJhbG[c]i'
grep -rlsE "$words" /workspace /tmp /home /artifacts /prepared /secrets /etc | sed 's/^/OPEN: words in /'
env | grep -E "$words|_TOKEN" | sed 's/^/OPEN: /'
echo more >> docs/v; rm old
echo changed`

// TestCodingAgentsOfPods: a coding agent runs in the image that the operator named for its type. It reads a repository and answers,
// changes one and its branch is verified, and ends with its cancelled task. Neither credentials nor what belongs to its worker is in its
// reach. An image without the program, and an agent without an image, are refused with what to do.
func TestCodingAgentsOfPods(t *testing.T) {
	t.Parallel()
	if err := sandbox.Probe().Check(); err != nil {
		t.Skip(err)
	}
	p := newTeam(t)
	const pushToken = "pt-6f7a8b9c0d1e2f3a4b5c"
	h := githost.At(t, p.Address()+gitPortOfAgents, repositoryToken)
	h.PushToken = pushToken
	h.Create(t, "r")
	start := h.Commit(t, "r", "main", map[string]string{"docs/v": "first commit\n", "old": "1"})
	p.MustShell(t, "kubectl create secret generic reader --from-literal=token="+repositoryToken)
	p.MustShell(t, "kubectl create secret generic pusher --from-literal=token="+pushToken)
	for name, kind := range map[string]v1alpha1.AgentRuntimeType{"coder": v1alpha1.RuntimeCodex, "lacking": v1alpha1.RuntimeOpenCode, "unnamed": v1alpha1.RuntimeClaude} {
		apply(t, p, map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Agent", "metadata": map[string]any{"name": name}, "spec": map[string]any{"runtime": map[string]any{"type": kind}}})
	}
	code := func(name, agent, prompt string, more ...string) {
		workspace := map[string]any{"gitRepo": h.Location("r"), "readCredentialRef": map[string]any{"name": "reader"}}
		if len(more) > 0 {
			workspace["intent"], workspace["publicationReadCredentialRef"], workspace["publicationCredentialRef"] = more[0], workspace["readCredentialRef"], map[string]any{"name": "pusher"}
		}
		apply(t, p, map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"type": "agent", "agentRef": map[string]any{"name": agent}, "prompt": prompt, "workspace": workspace,
		}})
	}
	code("reads", "coder", "do: read docs/v")
	code("writes", "coder", "do: write new.txt fresh\ndo: shell "+strings.ReplaceAll(changes, "\n", `\n`), "write")
	code("waits", "coder", "do: shell setsid sleep 1000 > /dev/null 2>&1 &\ndo: await-cancel waiting")
	model := cast(t, p, "models: [scripted-1]\nturns:\n- reply: {text: forty-two}", nil)
	apply(t, p, map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Agent", "metadata": map[string]any{"name": "asker"}, "spec": map[string]any{
		"runtime": map[string]any{"type": v1alpha1.RuntimeCodex}, "model": map[string]any{"provider": "openai"},
	}})
	code("asks", "asker", "do: ask What is it?\ndo: shell env; cat /proc/*/environ")
	code("lacks", "lacking", "hello")
	code("refused", "unnamed", "hello")

	task, result, _ := ended(t, p, "reads")
	if d := task.Status.Delivery; task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, `"first commit\n"`) || d == nil || d.StartingSHA != start {
		t.Errorf("reads: %s: %s: %s, %+v", task.Status.Phase, task.Status.Message, result, d)
	}
	p.beganIn(t, "reads", agentImage)
	p.published(t, h, start)
	task, result, _ = ended(t, p, "asks")
	if u := task.Status.Usage; task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, "forty-two") || strings.Contains(result, modelKey) || u == nil || u.ModelRequests != 1 || len(model.Exchanges()) != 1 {
		t.Errorf("asks: %s: %s: %s, %+v", task.Status.Phase, task.Status.Message, result, u)
	}
	awaitEvent(t, p, "waits", v1alpha1.EventAgentRuntimeCommandStarted)
	cancelTask(t, p, "waits")
	if task, _, _ := ended(t, p, "waits"); task.Status.Phase != v1alpha1.TaskCancelled {
		t.Errorf("waits: %s: %s", task.Status.Phase, task.Status.Message)
	}
	p.MustShell(t, "kubectl wait --for=delete pods --selector platform.ai/task=waits --timeout=120s")
	failedBecause(t, p, "lacks", "the image "+p.cluster.Pin(t, shellImage)+" lacks the program opencode", v1alpha1.ReasonRuntimeNotAvailable)
	failedBecause(t, p, "lacks", "npm install -g opencode-ai, and name that one with the controller's --acp-opencode-runtime-image", v1alpha1.ReasonRuntimeNotAvailable)
	failedBecause(t, p, "refused", "name it with the controller's --acp-claude-runtime-image", v1alpha1.ReasonRuntimeNotAvailable)
	if got := p.MustShell(t, "kubectl get jobs --selector platform.ai/task=refused -o name"); got != "" {
		t.Errorf("a refused task has %s", got)
	}
	for where, text := range p.Records(t) {
		for _, word := range []string{repositoryToken, pushToken, modelKey} {
			if strings.Contains(text, word) {
				t.Errorf("%q is in %s", word, where)
			}
		}
	}
}

// beganIn checks the image and the account of a task's Pod, and what the agent said when it began.
func (p team) beganIn(t *testing.T, task, image string) {
	t.Helper()
	want := p.cluster.Pin(t, image) + " " + v1alpha1.ServiceAccountAgentWorker
	if got := p.MustShell(t, "kubectl get pods --selector platform.ai/task="+task+" -o jsonpath='{.items[0].spec.containers[0].image} {.items[0].spec.serviceAccountName}'"); got != want {
		t.Errorf("%s ran in %s, want %s", task, got, want)
	}
	var events v1alpha1.ExecutionEventList
	getJSON(t, p, "executionevents --field-selector taskName="+task+",type="+string(v1alpha1.EventAgentRuntimeStarted), &events)
	var content struct{ Runtime, Program, Sandbox, Agent string }
	if len(events.Items) != 1 || json.Unmarshal(events.Items[0].Content.Raw, &content) != nil {
		t.Fatalf("%d agents began", len(events.Items))
	}
	if content.Runtime != "codex" || content.Program != "codex-acp" || content.Agent != "scriptedagent" || !strings.HasPrefix(content.Sandbox, "Landlock ") {
		t.Errorf("%+v began", content)
	}
}

// published checks what the task "writes" found and what became of its changes.
func (p team) published(t *testing.T, h *githost.Host, start string) {
	t.Helper()
	task, result, _ := ended(t, p, "writes")
	d := task.Status.Delivery
	if task.Status.Phase != v1alpha1.TaskSucceeded || d == nil || d.State != v1alpha1.DeliveryVerifiedExact || d.StartingSHA != start {
		t.Fatalf("writes: %s: %s: %+v", task.Status.Phase, task.Status.Message, d)
	}
	if got := h.Git(t, "r", "", "diff", "--name-status", "main", d.Branch); got != "M\tdocs/v\nA\tnew.txt\nD\told" {
		t.Errorf("changed: %q", got)
	}
	if strings.Contains(result, "OPEN") || !strings.Contains(result, `user 1000, home /tmp/agent, in /workspace\ndocs\nnew.txt\nold\nchanged\n`) {
		t.Errorf("the agent found %s", result)
	}
}
