// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/spool"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

var errBrokeOneEnd = errors.New("broke OneEnd - a coordinator reads one end of each child, the one that the child's stream has, with a reason")

// team is a server with agents that delegate, and the model that they ask, which outlives the server.
type team struct {
	*kit.Server
	api   typed.CoreV1alpha1Interface
	raw   *client
	model *script.Server
}

func newTeam(t *testing.T, text string, agents ...v1alpha1.Agent) *team {
	t.Helper()
	parsed, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(parsed, io.Discard)
	vendor := httptest.NewServer(model)
	t.Cleanup(vendor.Close)
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--keep-run-folders")
	cfg := config(t, "", s.Kubeconfig)
	api, err := typed.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	_, err = k.CoreV1().Secrets("default").Create(t.Context(), key, metav1.CreateOptions{})
	if err == nil {
		_, err = api.Providers("default").Create(t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderOpenAI, BaseURL: vendor.URL + "/v1", DefaultModel: "scripted-1",
			SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
		}}, metav1.CreateOptions{})
	}
	for i := range agents {
		if err == nil {
			agents[i].Spec.ProviderRef = &v1alpha1.NamespacedReference{Name: "model"}
			_, err = api.Agents("default").Create(t.Context(), &agents[i], metav1.CreateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return &team{s, api, newClient(t, s.Kubeconfig), model}
}

// ask creates a task of an agent.
func (p *team) ask(ctx context.Context, name, agent, prompt string) error {
	_, err := p.api.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent},
	}}, metav1.CreateOptions{})
	return err
}

// oneChildScript: a chief delegates once, waits, and answers with what it read. The clerk thinks, runs a command and answers,
// each slowly enough to be killed meanwhile.
const oneChildScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask the clerk}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Work on {{ .LastWord }}"}}]}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: answer
  match: {turn: 3, lastRole: tool, contains: '"completed":true'}
  reply: {text: "{{ range .Results.wait_for_tasks.data.results }}{{ .task }} {{ .phase }}: {{ .result }}\n{{ end }}"}
- name: the clerk works
  match: {turn: 1, lastRole: user, contains: Work on}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: sleep 0.5; echo worked}}]}
  fault: {chunkDelay: 50ms}
- name: the clerk answers
  match: {turn: 2, lastRole: tool, contains: worked}
  reply: {text: heliotrope}
  fault: {chunkDelay: 100ms}
`

// What is killed.
const (
	theServer = "the server"
	theWorker = "the worker"
	// both: the server during the last model request, and then the worker once its work is done and cannot be delivered.
	both = "the server, then the worker"
)

// TestChildKilledAtEachPoint kills the server or the child's worker at ten points of the child's life. The coordinator
// reads one end of it, the true one, with a reason if it is not success.
func TestChildKilledAtEachPoint(t *testing.T) {
	p := newTeam(t, oneChildScript,
		v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "chief"}, Spec: v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: v1alpha1.AnyAgent}}}}},
		v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "clerk"}, Spec: v1alpha1.AgentSpec{Tools: []v1alpha1.AgentTool{{Name: "code_exec"}}}},
	)
	in := func(phase v1alpha1.TaskPhase) func(*v1alpha1.Task) bool {
		return func(t *v1alpha1.Task) bool { return t.Status.Phase == phase }
	}
	for i, point := range []struct {
		name   string
		task   func(*v1alpha1.Task) bool // the child's state at which it is killed, or
		event  v1alpha1.EventType        // its event
		victim string
		want   v1alpha1.TaskPhase
	}{
		{"before admission", func(*v1alpha1.Task) bool { return true }, "", theServer, v1alpha1.TaskSucceeded},
		{"created", nil, v1alpha1.EventTaskCreated, theServer, v1alpha1.TaskSucceeded},
		{"Running was written", in(v1alpha1.TaskRunning), "", theServer, v1alpha1.TaskSucceeded},
		{"worker started", nil, v1alpha1.EventWorkerStarted, theWorker, v1alpha1.TaskFailed},
		{"in a model request", nil, v1alpha1.EventModelRequestStarted, theWorker, v1alpha1.TaskFailed},
		{"in a tool call", nil, v1alpha1.EventToolCallStarted, theWorker, v1alpha1.TaskFailed},
		{"between work and upload", nil, v1alpha1.EventToolCallStarted, both, v1alpha1.TaskSucceeded},
		{"after the result", nil, v1alpha1.EventResultSubmitted, theServer, v1alpha1.TaskSucceeded},
		{"at the terminal event", nil, v1alpha1.EventTaskSucceeded, theServer, v1alpha1.TaskSucceeded},
		{"after the end", in(v1alpha1.TaskSucceeded), "", theServer, v1alpha1.TaskSucceeded},
	} {
		parent := fmt.Sprintf("parent-%d", i)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		err := p.ask(ctx, parent, "chief", fmt.Sprintf("Ask the clerk about case-%d.", i))
		var child *v1alpha1.Task
		if err == nil {
			child, err = p.awaitChild(ctx, parent, point.task, point.event)
		}
		if err == nil {
			err = p.strike(ctx, t, child, point.victim)
		}
		if err == nil {
			err = p.checkOneEnd(ctx, parent, child.Name, point.want)
		}
		if err != nil {
			t.Errorf("%s, %s is killed: %v", point.name, point.victim, err)
		}
		cancel()
	}
}

// awaitChild returns the child of a task when it is in a state, or has an event.
func (p *team) awaitChild(ctx context.Context, parent string, state func(*v1alpha1.Task) bool, event v1alpha1.EventType) (*v1alpha1.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var w watch.Interface
	var err error
	if state != nil {
		w, err = p.api.Tasks("default").Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelParentTask + "=" + parent})
	} else {
		w, err = p.api.ExecutionEvents("default").Watch(ctx, metav1.ListOptions{FieldSelector: "rootTask=" + parent + ",type=" + string(event)})
	}
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		switch o := e.Object.(type) {
		case *v1alpha1.Task:
			if state(o) {
				return o, nil
			}
		case *v1alpha1.ExecutionEvent:
			if o.TaskName != parent {
				return p.api.Tasks("default").Get(ctx, o.TaskName, metav1.GetOptions{})
			}
		}
	}
	return nil, fmt.Errorf("the watch of the child ended: %w", context.Cause(ctx))
}

// strike kills what a point says, and starts the server again if it was killed.
func (p *team) strike(ctx context.Context, t *testing.T, child *v1alpha1.Task, victim string) error {
	t.Helper()
	if victim == theWorker {
		return killWorkerOf(p.DataDir, child)
	}
	if victim == both {
		if err := p.awaitAnswer(ctx, child); err != nil {
			return err
		}
	}
	p.Kill()
	defer p.Restart(t)
	if victim == theServer {
		return nil
	}
	for !spool.Ended(filepath.Join(runFolder(p.DataDir, child), "spool")) {
		if ctx.Err() != nil {
			return fmt.Errorf("the work does not end: %w", ctx.Err())
		}
		pause(ctx, 10*time.Millisecond)
	}
	return killWorkerOf(p.DataDir, child)
}

// awaitAnswer waits until the model was asked for the answer of a child.
func (p *team) awaitAnswer(ctx context.Context, child *v1alpha1.Task) error {
	for ; ctx.Err() == nil; pause(ctx, 5*time.Millisecond) {
		for _, e := range p.model.Exchanges() {
			if e.Turn == "the clerk answers" && strings.Contains(string(e.Request.Body), child.Spec.Prompt) {
				return nil
			}
		}
	}
	return fmt.Errorf("the model is not asked for an answer: %w", ctx.Err())
}

// runFolder is the folder of a task's first attempt.
func runFolder(dir string, task *v1alpha1.Task) string {
	return filepath.Join(dir, "runs", string(task.UID), "1")
}

// killWorkerOf kills the worker of a task's first attempt.
func killWorkerOf(dir string, task *v1alpha1.Task) error {
	rec, err := readRun(filepath.Join(runFolder(dir, task), "run.json"))
	if err != nil {
		return err
	}
	if !belongs(rec.PID, rec.UID) {
		return fmt.Errorf("process %d is not the worker of %s: %w", rec.PID, task.Name, os.ErrProcessDone)
	}
	return syscall.Kill(rec.PID, syscall.SIGKILL)
}

// checkOneEnd waits for the end of a parent and compares what it read with the only child's stream and status.
func (p *team) checkOneEnd(ctx context.Context, parent, name string, want v1alpha1.TaskPhase) error {
	above, err := awaitEnd(ctx, p.raw, parent)
	if err != nil {
		return err
	}
	list, err := p.api.Tasks("default").List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelParentTask + "=" + parent})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Name != name {
		return fmt.Errorf("%w: it has %d children", errBrokeOneEnd, len(list.Items))
	}
	child := &list.Items[0]
	if child.Status.Phase != want {
		return fmt.Errorf("%w: the child is %s (%s), want %s", errBrokeOneEnd, child.Status.Phase, child.Status.Message, want)
	}
	reason := child.Status.Message
	if want == v1alpha1.TaskSucceeded {
		reason = "heliotrope"
	}
	var read v1alpha1.TaskResult
	if err := p.raw.insist(ctx, "GET", base+"tasks/"+parent+"/result", nil, &read); err != nil {
		return fmt.Errorf("%w; the parent is %s: %s", err, above.Status.Phase, above.Status.Message)
	}
	if got := strings.TrimSpace(read.Result); reason == "" || got != fmt.Sprintf("%s %s: %s", name, want, reason) {
		return fmt.Errorf("%w: the parent read %q of a child with %q", errBrokeOneEnd, got, reason)
	}
	return errors.Join(checkEvents(ctx, p.raw, child), checkEvents(ctx, p.raw, above), checkRest(child), checkRest(above))
}
