// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/spool"
	"github.com/platform-ai/platform/test/kit"
)

// errBrokeOutage: the outcome of a task does not depend on whether the server was available.
var errBrokeOutage = errors.New("broke Outage - a task ends as its work ended, with its result and artifacts, however long the server is away")

const (
	// longestOutage is reached if there are at least fullOutages rounds; fewer rounds have shorter outages.
	longestOutage = 120 * time.Second
	fullOutages   = 30
	// maxWork is how long the work of a task takes at most.
	maxWork = 2500 * time.Millisecond
)

// outageScript is a model whose answers depend on the prompt alone.
const outageScript = `
models: [scripted-1]
turns:
- name: use a tool
  match: {lastRole: user, contains: "work:"}
  reply:
    text: I work.
    toolCalls: [{name: code_exec, arguments: {language: bash, code: 'echo ran >>ran; sleep {{ .LastWord }}; printf made >"$PLATFORM_ARTIFACTS_DIR/a.txt"; echo worked {{ .LastWord }}'}}]
- name: delegate
  match: {lastRole: user, contains: "hand on:"}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: coder, prompt: "work: for {{ .LastWord }}"}}]}
- name: wait
  match: {lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: answer with what was read
  match: {lastRole: tool, contains: '"completed":true'}
  reply: {text: "{{ range .Results.wait_for_tasks.data.results }}{{ .phase }}: {{ .result }}{{ end }}"}
- name: report
  match: {lastRole: tool, contains: exit_code}
  reply: {text: "It said: {{ .Results.code_exec.data.output }}"}
- name: answer
  match: {lastRole: user}
  reply: {text: "You said {{ .LastWord }}"}
`

// outageTask is a task and the expected outcome of its work.
type outageTask struct {
	name     string
	phase    v1alpha1.TaskPhase
	attempts int32
	// result and message are parts of those; artifact is the content of a.txt.
	result, message, artifact string
	// child is a part of the result of the only task that this one delegates to.
	child string
}

// outages is one run of the test.
type outages struct {
	*testing.T
	ctx    context.Context
	server *kit.Server
	client *client
	random *rand.Rand
	tasks  []outageTask
	// checked counts the tasks that were seen to their end.
	checked int
	killed  int
}

// TestTasksUnderOutages kills the server while tasks of all kinds are resolved,
// work, wait and deliver, and keeps it down for up to two minutes. Now and then it
// also kills a worker that is done and waits for the server.
func TestTasksUnderOutages(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	n := rounds(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*4*time.Minute)
	defer cancel()
	server := kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--keep-run-folders")
	o := &outages{T: t, ctx: ctx, server: server, client: newClient(t, server.Kubeconfig), random: rand.New(rand.NewPCG(seed, 0))}
	o.makeTeam()
	go o.approve(newClient(t, server.Kubeconfig))
	for round, away := range o.lengths(n) {
		before := len(o.tasks)
		o.makeTasks(round)
		pause(ctx, time.Duration(o.random.Int64N(int64(maxWork))))
		server.Kill()
		at := min(away, maxWork)
		pause(ctx, at)
		if o.random.IntN(2) == 0 {
			o.killDelivery()
		}
		pause(ctx, away-at)
		server.Restart(t)
		t.Logf("round %d: away for %v, %d tasks so far", round, away, len(o.tasks))
		o.check(before) // tasks of the last round end during this one's
	}
	o.check(len(o.tasks))
	t.Logf("%d outages, %d tasks ended as their work ended, %d workers were killed before they had delivered", n, o.checked, o.killed)
}

// lengths are the lengths of the outages: from one second to the longest, in random order.
func (o *outages) lengths(n int) []time.Duration {
	longest := longestOutage * time.Duration(min(n, fullOutages)) / fullOutages
	out := make([]time.Duration, n)
	for i, k := range o.random.Perm(n) {
		out[i] = time.Second + (longest-time.Second)*time.Duration(k)/time.Duration(max(1, n-1))
	}
	return out
}

func (o *outages) create(resource string, object any) {
	o.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		o.Fatal(err)
	}
	path := base + resource
	if resource == "secrets" {
		path = "/api/v1/namespaces/default/secrets"
	}
	if err := o.client.insist(o.ctx, http.MethodPost, path, body, nil); err != nil {
		o.Fatalf("%s: %v", resource, err)
	}
}

func object(kind, name string, spec any) map[string]any {
	return map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
}

// makeTeam makes what the ai tasks refer to.
func (o *outages) makeTeam() {
	script := filepath.Join(o.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte(outageScript), 0o600); err != nil {
		o.Fatal(err)
	}
	model := kit.Start(o, nil, kit.Bin(o, "scriptedmodel"), "--script", script)
	line := model.Await(o, "listening on")
	o.create("secrets", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key"}, "stringData": map[string]any{"api-key": "k-0123456789"},
	})
	o.create("providers", object("Provider", "model", map[string]any{
		"type": "openai", "baseURL": line[strings.LastIndex(line, " ")+1:], "defaultModel": "scripted-1", "secretRef": map[string]any{"name": "key", "key": "api-key"},
	}))
	o.create("skills", object("Skill", "careful", map[string]any{"description": "d", "content": map[string]any{"inline": "Check before you claim."}}))
	agent := map[string]any{
		"providerRef": map[string]any{"name": "model"}, "skills": []any{map[string]any{"name": "careful"}},
		"systemPrompt": map[string]any{"inline": "You work."}, "tools": []any{map[string]any{"name": "code_exec"}},
	}
	o.create("agents", object("Agent", "coder", agent))
	agent["coordination"] = map[string]any{"approvalRequiredTools": []string{"code_exec"}}
	o.create("agents", object("Agent", "gated", agent))
	o.create("agents", object("Agent", "chief", map[string]any{
		"providerRef": map[string]any{"name": "model"}, "systemPrompt": map[string]any{"inline": "You delegate."}, "coordination": map[string]any{"enabled": true, "allowedAgents": []any{map[string]any{"name": "*"}}},
	}))
	o.create("sessions", object("Session", "talk", map[string]any{}))
}

// makeTasks makes a task of each kind.
func (o *outages) makeTasks(round int) {
	name := func(kind string) string { return fmt.Sprintf("%s-%d", kind, round) }
	seconds := func() string { return fmt.Sprintf("%.2f", o.random.Float64()*maxWork.Seconds()) }
	command := func(kind, script string, more map[string]any) {
		spec := map[string]any{"type": "container", "command": []string{"sh", "-c", "echo ran >>ran; sleep " + seconds() + "; " + script}}
		maps.Copy(spec, more)
		o.create("tasks", object("Task", name(kind), spec))
	}
	ai := func(kind, agent, prompt string, more map[string]any) {
		spec := map[string]any{"type": "ai", "agentRef": map[string]any{"name": agent}, "prompt": prompt, "timeout": "15m"}
		maps.Copy(spec, more)
		o.create("tasks", object("Task", name(kind), spec))
	}
	const ok, failed = v1alpha1.TaskSucceeded, v1alpha1.TaskFailed
	add := func(t outageTask) { o.tasks = append(o.tasks, t) }

	command("command", `printf made >"$PLATFORM_ARTIFACTS_DIR/a.txt"; echo "`+name("command")+` worked"`, nil)
	add(outageTask{name: name("command"), phase: ok, attempts: 1, result: name("command") + " worked", artifact: "made"})
	command("failing", `echo "`+name("failing")+` worked"; exit 3`, nil)
	add(outageTask{name: name("failing"), phase: failed, attempts: 1, result: name("failing") + " worked", message: "exit code 3"})
	command("retried", `echo "attempt $PLATFORM_TASK_ATTEMPT"; test "$PLATFORM_TASK_ATTEMPT" = 2`, map[string]any{"retryPolicy": map[string]any{"maxRetries": 2, "initialDelay": "10ms"}})
	add(outageTask{name: name("retried"), phase: ok, attempts: 2, result: "attempt 2"})
	work := seconds()
	ai("tool", "coder", "work: for "+work, nil)
	add(outageTask{name: name("tool"), phase: ok, attempts: 1, result: "It said: worked " + work, artifact: "made"})
	ai("approved", "gated", "work: for "+work, nil)
	add(outageTask{name: name("approved"), phase: ok, attempts: 1, result: "It said: worked " + work, artifact: "made"})
	ai("delegated", "chief", "hand on: "+work, nil)
	add(outageTask{name: name("delegated"), phase: ok, attempts: 1, result: "Succeeded: It said: worked " + work, child: "It said: worked " + work})
	ai("talk", "coder", "say: "+name("talk"), map[string]any{"sessionRef": map[string]any{"name": "talk"}})
	add(outageTask{name: name("talk"), phase: ok, attempts: 1, result: "You said " + name("talk")})
	if round > 0 {
		source := fmt.Sprintf("talk-%d", round-1)
		o.create("tasks/"+source+"/fork", map[string]any{
			"apiVersion": "core.platform.ai/v1alpha1", "kind": "TaskFork", "spec": map[string]any{"newTaskName": name("fork"), "prompt": "say: " + name("fork")},
		})
		add(outageTask{name: name("fork"), phase: ok, attempts: 1, result: "You said " + name("fork")})
	}
}

// approve approves whatever is requested while the server runs.
func (o *outages) approve(c *client) {
	for ; o.ctx.Err() == nil; pause(o.ctx, 200*time.Millisecond) {
		var list v1alpha1.ApprovalList
		q := url.Values{"fieldSelector": {"status.state=pending"}}
		if c.do(o.ctx, http.MethodGet, base+"approvals?"+q.Encode(), nil, &list) != nil {
			continue
		}
		for _, a := range list.Items {
			body := `{"kind":"ApprovalDecision","apiVersion":"core.platform.ai/v1alpha1","spec":{"decision":"approved"}}`
			_ = c.do(o.ctx, http.MethodPost, base+"approvals/"+a.Name+"/decision", []byte(body), nil) // again in a moment
		}
	}
}

// killDelivery kills a worker, if there is one, whose work is done and whose result
// the server does not have yet.
func (o *outages) killDelivery() {
	dirs, _ := filepath.Glob(filepath.Join(o.server.DataDir, "runs", "*", "*"))
	for _, i := range o.random.Perm(len(dirs)) {
		dir := dirs[i]
		var rec struct {
			PID int
			UID string
		}
		b, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err != nil || json.Unmarshal(b, &rec) != nil || !spool.Ended(filepath.Join(dir, "spool")) || !belongs(rec.PID, rec.UID) {
			continue
		}
		if syscall.Kill(rec.PID, syscall.SIGKILL) == nil {
			o.killed++
			return
		}
	}
}

// check waits for the end of the tasks before n, and checks them.
func (o *outages) check(n int) {
	for ; o.checked < n; o.checked++ {
		want := o.tasks[o.checked]
		if err := o.judge(want); err != nil {
			o.Errorf("task %s: %v", want.name, err)
		}
	}
}

func (o *outages) judge(want outageTask) error {
	task, err := awaitEnd(o.ctx, o.client, want.name)
	if err != nil {
		return err
	}
	var result v1alpha1.TaskResult
	if err := o.client.insist(o.ctx, http.MethodGet, base+"tasks/"+want.name+"/result", nil, &result); err != nil {
		return fmt.Errorf("%w: %s (%s), result: %w", errBrokeOutage, task.Status.Phase, task.Status.Message, err)
	}
	s := task.Status
	if s.Phase != want.phase || s.Attempts != want.attempts || !strings.Contains(result.Result, want.result) || !strings.Contains(s.Message, want.message) {
		return fmt.Errorf("%w: %s after %d attempts (%s), result %q; want %+v", errBrokeOutage, s.Phase, s.Attempts, s.Message, result.Result, want)
	}
	if want.artifact != "" {
		var list v1alpha1.TaskArtifactList
		if err := o.client.insist(o.ctx, http.MethodGet, base+"tasks/"+want.name+"/artifacts", nil, &list); err != nil {
			return err
		}
		if len(list.Artifacts) != 1 || list.Artifacts[0].Size != int64(len(want.artifact)) {
			return fmt.Errorf("%w: artifacts %+v", errBrokeOutage, list.Artifacts)
		}
	}
	return errors.Join(checkEvents(o.ctx, o.client, task), checkOnce(o.server.DataDir, task), checkRest(task), o.judgeChild(want))
}

// judgeChild judges the task to which a task delegated: there is one, which ended as its work ended.
func (o *outages) judgeChild(parent outageTask) error {
	if parent.child == "" {
		return nil
	}
	var list v1alpha1.TaskList
	q := url.Values{"labelSelector": {v1alpha1.LabelParentTask + "=" + parent.name}}
	if err := o.client.insist(o.ctx, http.MethodGet, base+"tasks?"+q.Encode(), nil, &list); err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("%w: it delegated to %d tasks", errBrokeRunOnce, len(list.Items))
	}
	return o.judge(outageTask{name: list.Items[0].Name, phase: v1alpha1.TaskSucceeded, attempts: 1, result: parent.child, artifact: "made"})
}

// checkOnce checks that every attempt has worked at most once.
func checkOnce(dir string, task *v1alpha1.Task) error {
	files, err := filepath.Glob(filepath.Join(dir, "runs", string(task.UID), "*", "work", "ran"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if b, _ := os.ReadFile(file); strings.Count(string(b), "\n") != 1 {
			return fmt.Errorf("%w: %s says %q", errBrokeRunOnce, file, b)
		}
	}
	return nil
}
