// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

const (
	runtimeToken = "controller-token-0f1e2d3c4b5a69788796"
	runtimeKey   = "operation-key/+0f1e2d3c4b5a6978879610"
)

// elsewhere is a server whose Agents "coder" and others are at registered runtimes.
type elsewhere struct {
	*publishing
}

// instance starts an instance of the reference runtime, which breaks the protocol in some ways.
func instance(t *testing.T, name string, change ...func(*runtime.Options)) *runtime.Runtime {
	t.Helper()
	o := runtime.Options{Instance: name, Token: runtimeToken, Key: []byte(runtimeKey), Dir: t.TempDir(), MinLease: 100 * time.Millisecond, MaxLease: 3 * time.Second}
	for _, f := range change {
		f(&o)
	}
	r := kit.Must[*runtime.Runtime](t)(runtime.New(o))
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func broken(names ...string) func(*runtime.Options) {
	return func(o *runtime.Options) { o.Broken = names }
}

// serve serves what a pointer has, so that an instance can be replaced by another one at the same address.
func serve(t *testing.T, first http.Handler) (address string, replace func(http.Handler)) {
	t.Helper()
	var now atomic.Pointer[http.Handler]
	now.Store(&first)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, func(h http.Handler) {
		now.Store(&h)
		s.CloseClientConnections()
	}
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	p := &elsewhere{newPublishing(t)}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "runtime"}, StringData: map[string]string{"token": runtimeToken + "\n", "key": runtimeKey + "\n"},
	}, metav1.CreateOptions{}))
	return p
}

// register registers a runtime, with an Agent of the same name, and waits until it is ready.
func (p *elsewhere) register(name, endpoint string, change ...func(*v1alpha1.AgentSpec)) {
	p.t.Helper()
	kit.Must[*v1alpha1.AgentRuntime](p.t)(p.API().AgentRuntimes("default").Create(p.t.Context(), &v1alpha1.AgentRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentRuntimeSpec{
		ContractVersion: v1alpha1.HarnessV2, Deployment: v1alpha1.AgentRuntimeDeployment{Mode: v1alpha1.RuntimeExternalEndpoint, Endpoint: endpoint},
		ClientAuth: v1alpha1.AgentRuntimeAuth{
			ControllerBearerTokenSecretRef: &v1alpha1.KeyReference{Name: "runtime", Key: "token"}, OperationCapabilitySecretRef: &v1alpha1.KeyReference{Name: "runtime", Key: "key"},
		},
	}}, metav1.CreateOptions{}))
	spec := v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{RuntimeRef: &v1alpha1.LocalReference{Name: name}}}
	for _, f := range change {
		f(&spec)
	}
	kit.Must[*v1alpha1.Agent](p.t)(p.API().Agents("default").Create(p.t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	kit.Await(p.t, "the runtime "+name+" to be ready", func() bool {
		r, err := p.API().AgentRuntimes("default").Get(p.t.Context(), name, metav1.GetOptions{})
		return err == nil && r.Status.Ready
	})
}

// failed waits for the failure of a task, and returns its message.
func (p *elsewhere) failed(task, reason string) string {
	p.t.Helper()
	got := p.AwaitPhase(task, v1alpha1.TaskFailed)
	if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != reason {
		p.t.Errorf("%s: %+v, want %s; %s", task, c, reason, got.Status.Message)
	}
	return got.Status.Message
}

// secretless fails if the file of one of the server's folders has one of the runtime's credentials. Secrets are encrypted there.
func (p *elsewhere) secretless() {
	p.t.Helper()
	files := 0
	err := filepath.WalkDir(p.DataDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		for _, secret := range []string{runtimeToken, runtimeKey} {
			if bytes.Contains(raw, []byte(secret)) {
				p.t.Errorf("%s has a credential of the runtime", path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		p.t.Errorf("%d files: %v", files, err)
	}
}

// TestRemoteAgent: an agent at a registered runtime reads a repository and answers, changes one and its branch is verified, with what the
// agent reports as usage, and with its events, plan and limits as those of a local one. Its session is gone afterwards.
func TestRemoteAgent(t *testing.T) {
	t.Parallel()
	p := newElsewhere(t)
	r := instance(t, "i-1")
	address, _ := serve(t, r)
	p.register("coder", address, func(s *v1alpha1.AgentSpec) {
		s.SystemPrompt, s.Model = &v1alpha1.AgentSystemPrompt{Inline: "Be brief."}, &v1alpha1.AgentModel{Name: "large-1"}
	})
	p.code("reads", "coder", "do: plan look+,answer\ndo: tool read README\ndo: consume\ndo: usage\ndo: read README.md", v1alpha1.WorkspaceRead)
	p.code("told", "coder", "do: system\ndo: model", v1alpha1.WorkspaceRead)
	p.code("writes", "coder", "do: touch docs/plan.md sell less\ndo: touch new.txt fresh\ndo: say changed", v1alpha1.WorkspaceWrite)
	p.code("idles", "coder", "do: say there is nothing to do", v1alpha1.WorkspaceWrite)
	p.code("strays", "coder", "do: touch new.txt x\ndo: say changed", v1alpha1.WorkspaceRead)
	p.code("breaks", "coder", "do: touch new.txt x\ndo: error -32000", v1alpha1.WorkspaceWrite)
	p.agentTask("bare", "coder", "hello")

	task := p.AwaitPhase("reads", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("reads"); got != "a shop\n" {
		t.Errorf("it answered %q", got)
	}
	if e := task.Status.Execution; e == nil || e.AgentRuntimeName != "coder" || e.RuntimeInstanceID != "i-1" || e.AgentRuntimeUID == "" {
		t.Errorf("execution %+v", e)
	}
	for _, typ := range []v1alpha1.EventType{
		v1alpha1.EventAgentRuntimeStarted, v1alpha1.EventAgentRuntimeCommandStarted, v1alpha1.EventAgentRuntimeCompleted, v1alpha1.EventModelMessage,
		v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventPlanUpdated, v1alpha1.EventModelContextUpdated,
	} {
		if events := p.EventsOf("reads", typ); len(events) != 1 {
			t.Errorf("%d events %s", len(events), typ)
		}
	}
	used := p.EventsOf("reads", v1alpha1.EventModelUsageUpdated)
	if len(used) != 1 || *used[0].InputTokens != 1200 || *used[0].OutputTokens != 80 || *used[0].CachedInputTokens != 900 || len(p.EventsOf("reads", v1alpha1.EventModelRequestStarted)) > 0 {
		t.Errorf("usage %+v", used)
	}
	p.AwaitPhase("told", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("told"); got != "Be brief.large-1" {
		t.Errorf("it was told %q", got)
	}
	d := p.AwaitPhase("writes", v1alpha1.TaskSucceeded).Status.Delivery
	if d == nil || d.State != v1alpha1.DeliveryVerifiedExact {
		t.Fatalf("delivery %+v", d)
	}
	if got := p.host.Git(t, "shop", "", "diff", "--name-only", "main", d.Branch); got != "docs/plan.md\nnew.txt" {
		t.Errorf("changed %q", got)
	}
	if got := p.host.Git(t, "shop", "", "show", d.Branch+":docs/plan.md"); got != "sell less" {
		t.Errorf("the plan is %q", got)
	}
	p.failed("idles", v1alpha1.ReasonNoChanges)
	p.failed("breaks", v1alpha1.ReasonAgentFailed)
	p.AwaitPhase("strays", v1alpha1.TaskSucceeded)
	p.AwaitPhase("bare", v1alpha1.TaskSucceeded)
	if p.pushes() != 1 {
		t.Errorf("%d pushes", p.pushes())
	}
	kit.Await(t, "no session is left at the runtime", func() bool { return r.Resident() == 0 })
	p.secretless()
}

// TestRemoteAgentAsks: people approve one call of an agent elsewhere and decline another one, and what the task does not allow is neither asked
// nor made.
func TestRemoteAgentAsks(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newElsewhere(t)
	address, _ := serve(t, instance(t, "i-1"))
	p.register("guarded", address, func(s *v1alpha1.AgentSpec) {
		s.Coordination = &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"execute"}}
		s.Runtime.DefaultAllowedTools = []string{"execute", "read"}
	})
	people := p.As(t, "boss", "platform-approver")
	for word, want := range map[string]string{"approve": "yes", "decline": "no"} {
		p.agentTask(word, "guarded", "do: permit execute make")
		asked := p.waiting(word)
		if s := asked.Spec; s.TargetTool != "execute" || string(s.TargetArgsPreview.Raw) != `{"command":"make"}` {
			t.Errorf("people are asked about %+v", s)
		}
		kit.Must[*v1alpha1.Approval](t)(people.Approvals("default").Decide(t.Context(), asked.Name, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: "so"}}, metav1.CreateOptions{}))
		p.AwaitPhase(word, v1alpha1.TaskSucceeded)
		if got := p.ResultOf(word); got != want {
			t.Errorf("%s: the agent was told %q", word, got)
		}
	}
	p.agentTask("unasked", "guarded", "do: permit delete everything")
	p.AwaitPhase("unasked", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("unasked"); got != "no" {
		t.Errorf("the agent was told %q", got)
	}
}

// TestRemoteAgentEnds: a task that is cancelled ends its agent; after a worker was killed, the next attempt ends the agent of the
// earlier one; a replaced instance is noticed; and each of them ends the task once.
func TestRemoteAgentEnds(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newElsewhere(t)
	first := instance(t, "i-1")
	address, replace := serve(t, first)
	p.register("coder", address)
	at := func(task string) {
		t.Helper()
		kit.Await(t, "the agent of "+task+" is at work", func() bool { return len(p.EventsOf(task, v1alpha1.EventAgentRuntimeCommandStarted)) > 0 })
	}

	p.code("waits", "coder", "do: touch a b\ndo: await-cancel", v1alpha1.WorkspaceWrite)
	at("waits")
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "waits", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	p.AwaitPhase("waits", v1alpha1.TaskCancelled)
	kit.Await(t, "the end of the agent is recorded", func() bool { return len(p.EventsOf("waits", v1alpha1.EventAgentRuntimeCancelled)) == 1 })
	kit.Await(t, "its session is gone", func() bool { return first.Resident() == 0 })

	p.Run("killed", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, "do: await-cancel", &v1alpha1.NamespacedReference{Name: "coder"}
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(1)}
	})
	at("killed")
	if err := syscall.Kill(p.WorkerOf(p.task("killed")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the second attempt is at work", func() bool { return len(p.EventsOf("killed", v1alpha1.EventAgentRuntimeCommandStarted)) == 2 })
	if n := first.Resident(); n != 1 {
		t.Errorf("%d sessions", n)
	}

	// The instance is replaced under the second attempt.
	replace(instance(t, "i-2"))
	if said := p.failed("killed", v1alpha1.ReasonRuntimeReplaced); !strings.Contains(said, "i-2") || !strings.Contains(said, "not known") {
		t.Errorf("it says %q", said)
	}
	if n := len(p.EventsOf("killed", v1alpha1.EventTaskFailed)); n != 1 {
		t.Errorf("%d ends", n)
	}
	p.secretless()
}

// TestRemoteAgentIsRefused: tasks are given to runtimes that are registered, ready and answer as they should.
func TestRemoteAgentIsRefused(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newElsewhere(t)
	for name, tc := range map[string]struct {
		breaks []string
		prompt string
		intent v1alpha1.WorkspaceIntent
		reason string
	}{
		"lease":   {[]string{"no-renewal"}, "do: await-cancel", v1alpha1.WorkspaceRead, v1alpha1.ReasonRuntimeLeaseLost},
		"unknown": {[]string{"unknown-event"}, "do: usage", v1alpha1.WorkspaceRead, v1alpha1.ReasonProtocolViolated},
		"digest":  {[]string{"delta-digest"}, "do: touch new.txt x", v1alpha1.WorkspaceWrite, v1alpha1.ReasonProtocolViolated},
		"long":    {[]string{"long-result", "long-line"}, "do: say " + strings.Repeat("x", 40<<10), v1alpha1.WorkspaceRead, v1alpha1.ReasonProtocolViolated},
		"gap":     {[]string{"gap-in-numbers"}, "do: say x\ndo: say y", v1alpha1.WorkspaceRead, v1alpha1.ReasonProtocolViolated},
	} {
		address, _ := serve(t, instance(t, "i-"+name, broken(tc.breaks...)))
		p.register(name, address)
		p.code(name, name, tc.prompt, tc.intent)
		if said := p.failed(name, tc.reason); strings.Contains(said, runtimeToken) || strings.Contains(said, runtimeKey) {
			t.Errorf("%s: %s", name, said)
		}
	}
	if p.pushes() > 0 {
		t.Errorf("%d pushes", p.pushes())
	}
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "absent"}, Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{RuntimeRef: &v1alpha1.LocalReference{Name: "absent"}}},
	}, metav1.CreateOptions{}))
	p.agentTask("absent", "absent", "hello")
	p.failed("absent", v1alpha1.ReasonAgentRuntimeNotFound)
	p.secretless()
}
