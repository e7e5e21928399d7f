// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// heard collects the warnings of a server.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

// take returns the warnings since the last call.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list
}

// warned checks that each warning begins as wanted.
func warned(t *testing.T, h *heard, want ...string) {
	t.Helper()
	got := h.take()
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// listening returns the administrator's client, and the warnings that it gets.
func listening(t *testing.T, s *standalone.Server) (typed.CoreV1alpha1Interface, *heard) {
	t.Helper()
	h, c := &heard{}, s.Config()
	c.WarningHandlerWithContext = h
	return kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1(), h
}

// TestWhatIsNotBuiltIsRefused: nothing that this version lacks is accepted and then ignored.
func TestWhatIsNotBuiltIsRefused(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `exit 0`)
	c, h := listening(t, p.Server)
	create := metav1.CreateOptions{}
	agent := func(name string, co v1alpha1.AgentCoordination) *v1alpha1.Agent {
		return &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}, Tools: []v1alpha1.AgentTool{{Name: "file_read"}, {Name: "teleport"}}, Coordination: &co,
		}}
	}
	made := kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), agent("chief", v1alpha1.AgentCoordination{Enabled: true}), create))
	warned(t, h, `spec.coordination.allowedAgents: is empty`, `spec.tools[1].name: no tool "teleport" is built in`)
	kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), agent("robot", v1alpha1.AgentCoordination{Autonomous: true}), create))
	warned(t, h, "spec.coordination.autonomous: has no effect without spec.coordination.enabled", "spec.tools[1].name: ")
	kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), agent("clerk", v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"file_read", "file_raed"}}), create))
	warned(t, h, "spec.tools[1].name: ", `spec.coordination.approvalRequiredTools[1]: no tool "file_raed" is built in, exists`)
	kit.Must[*v1alpha1.Tool](t)(c.Tools("default").Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "remote"}, Spec: v1alpha1.ToolSpec{
		Description: "d", MCP: &v1alpha1.ToolMCP{Path: "/other", Remote: &v1alpha1.ToolMCPRemote{URL: "https://mcp.example/mcp"}},
	}}, create))
	warned(t, h, "spec.mcp.path: has no effect on a remote server")
	kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "command"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, AgentRef: &v1alpha1.NamespacedReference{Name: "clerk"},
	}}, create))
	warned(t, h, "spec.agentRef: has no effect on a task of type container")

	ai := func(agent string, change ...func(*v1alpha1.Task)) *v1alpha1.Task {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, Prompt: "hello", AgentRef: &v1alpha1.NamespacedReference{Name: agent},
		}}
		for _, f := range change {
			f(task)
		}
		return task
	}
	for _, tc := range []struct {
		task *v1alpha1.Task
		want string
	}{
		{ai("clerk", func(t *v1alpha1.Task) {
			t.Spec.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://h/r", PushBranch: "b"}
		}), "spec.workspace: Forbidden: not supported yet: "},
		{ai("clerk", func(t *v1alpha1.Task) { t.Spec.PriorTaskRef = &v1alpha1.NamespacedReference{Name: "a"} }), "spec.priorTaskRef: Forbidden: needs spec.workspace"},
	} {
		_, err := c.Tasks("default").Create(t.Context(), tc.task, create)
		refused(t, tc.want, err, 422, tc.want)
	}
	h.take()

	// The agent itself stays writable.
	made.Labels = map[string]string{"a": "b"}
	for {
		now := kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Get(t.Context(), "chief", metav1.GetOptions{}))
		now.Labels = made.Labels
		if _, err := c.Agents("default").Update(t.Context(), now, metav1.UpdateOptions{}); err == nil {
			break
		}
	}
}

// TestPreferencesAreWarnedOf: fields that only a cluster can honour cause a warning when they are written, and in each run.
func TestPreferencesAreWarnedOf(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `exit 0`)
	c, h := listening(t, p.Server)
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "picky"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Command: []string{"true"},
		Execution: &v1alpha1.TaskExecutionSpec{ExecutionPlacement: v1alpha1.ExecutionPlacement{NodeSelector: map[string]string{"disk": "ssd"}}},
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}}
	kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(t.Context(), task, metav1.CreateOptions{}))
	warned(t, h, "spec.execution.nodeSelector: has no effect: ", "spec.resources.limits[cpu]: has no effect: ")
	p.AwaitPhase("picky", v1alpha1.TaskSucceeded)
	trace := kit.Must[*v1alpha1.TaskTrace](t)(c.Tasks("default").GetTrace(t.Context(), "picky", metav1.GetOptions{}))
	i := slices.IndexFunc(trace.Warnings, func(w v1alpha1.TraceProblem) bool {
		return strings.Contains(w.Message, "spec.execution.nodeSelector") && strings.Contains(w.Message, "spec.resources.limits[cpu]")
	})
	if i < 0 || len(trace.Warnings) != 1 || trace.Warnings[0].Type != v1alpha1.EventTaskPhaseChanged {
		t.Errorf("warnings of the run: %+v", trace.Warnings)
	}
}

// TestUnknownToolsOfATask: a name in spec.ai.tools that no tool has causes a warning when the task is written, and in its run, which
// goes on without it.
func TestUnknownToolsOfATask(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, `
models: [scripted-1]
turns:
- match: {lastRole: user, offered: [file_read]}
  reply: {text: done}
`)
	c, h := listening(t, p.Server)
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "hopeful"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "go", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"file_read", "teleport"}},
	}}
	kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(t.Context(), task, metav1.CreateOptions{}))
	warned(t, h, `spec.ai.tools[1]: no tool "teleport" is built in`)
	p.AwaitPhase("hopeful", v1alpha1.TaskSucceeded)
	trace := kit.Must[*v1alpha1.TaskTrace](t)(c.Tasks("default").GetTrace(t.Context(), "hopeful", metav1.GetOptions{}))
	if len(trace.Warnings) != 1 || trace.Warnings[0].Type != v1alpha1.EventTaskPhaseChanged || !strings.Contains(trace.Warnings[0].Message, `no tool "teleport" is built in`) {
		t.Errorf("warnings of the run: %+v", trace.Warnings)
	}
}

// TestVariablesOfAnAITask: spec.env of an ai task is the environment of the programs that the task runs. A source that there
// is only in a Pod is refused.
func TestVariablesOfAnAITask(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, `
models: [scripted-1]
turns:
- match: {lastRole: user}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: 'echo "$PLAIN $TEXT ${#TOKEN} ${GONE-none} $PLATFORM_TASK_NAME"'}}]}
- match: {lastRole: tool}
  reply: {text: "{{ .Results.code_exec.data.output }}"}
`)
	ctx, core := t.Context(), p.Kubernetes(t).CoreV1()
	kit.Must[*corev1.Secret](t)(core.Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tokens"}, StringData: map[string]string{"token": "hunter2hunter2"}}, metav1.CreateOptions{}))
	kit.Must[*corev1.ConfigMap](t)(core.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "texts"}, Data: map[string]string{"text": "of a ConfigMap"}}, metav1.CreateOptions{}))
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "asks"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "go", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"code_exec"}},
		Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "plain"},
			{Name: "PLATFORM_TASK_NAME", Value: "forged"},
			{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "tokens"}, Key: "token"}}},
			{Name: "TEXT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "texts"}, Key: "text"}}},
			{Name: "GONE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "texts"}, Key: "gone", Optional: new(true)}}},
		},
	}}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(ctx, task, metav1.CreateOptions{}))
	p.AwaitPhase("asks", v1alpha1.TaskSucceeded)
	if got, want := strings.TrimSpace(p.ResultOf("asks")), "plain of a ConfigMap 14 none asks"; got != want {
		t.Errorf("the program says %q, want %q", got, want)
	}
	task.Name, task.Spec.Env = "node", []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(ctx, task, metav1.CreateOptions{}))
	if k := p.AwaitPhase("node", v1alpha1.TaskFailed); !strings.Contains(k.Status.Message, "the value of NODE comes from fields of a pod") {
		t.Errorf("a field of a Pod: %s", k.Status.Message)
	}
}

// TestSkippedTool: a Tool that was deleted before a run started is named in an event of the run, and the run goes on without it.
func TestSkippedTool(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]")
	c, h := listening(t, p.Server)
	made := &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "lookup"}, Spec: v1alpha1.ToolSpec{Description: "d", HTTP: &v1alpha1.ToolHTTP{URL: "https://example.com/"}}}
	kit.Must[*v1alpha1.Tool](t)(c.Tools("default").Create(t.Context(), made, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "clerk"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "lookup"}},
	}}, metav1.CreateOptions{}))
	warned(t, h) // it exists
	if err := c.Tools("default").Delete(t.Context(), "lookup", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AgentRef: &v1alpha1.NamespacedReference{Name: "clerk"},
	}}, metav1.CreateOptions{}))
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	var said []string
	for _, e := range p.EventsOf("t", v1alpha1.EventTaskPhaseChanged) {
		if e.Severity == v1alpha1.SeverityWarning {
			said = append(said, e.Summary)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], `no tool "lookup"`) || !strings.Contains(said[0], "runs leave it out") {
		t.Errorf("warnings of the run: %q", said)
	}
}
