// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestCodingAgentPlatformTools: a coding agent calls tools of the platform through its worker: those that its Agent and its lists leave it,
// with the credential of a Tool that it never sees. A policy denies one, people approve another, and each call is an event once.
func TestCodingAgentPlatformTools(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer tool-key-0123456789" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"price":3}`))
	}))
	t.Cleanup(service.Close)
	program := kit.Bin(t, "scriptedagent")
	server, _ := standalone.WithModel(t, askedScript, func(o *standalone.Options) {
		o.AgentPrograms, o.WebFetchAllow = []string{"codex=" + program}, []string{strings.TrimPrefix(service.URL, "http://")}
	})
	p := &publishing{Platform: server, t: t}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tool-key"}, StringData: map[string]string{"key": "tool-key-0123456789"}}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Tool](t)(p.API().Tools("default").Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "price"}, Spec: v1alpha1.ToolSpec{
		Description: "Says what a thing costs.", Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}`)},
		HTTP: &v1alpha1.ToolHTTP{URL: service.URL, AuthSecretRef: &v1alpha1.KeyReference{Name: "tool-key", Key: "key"}},
	}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "equipped"}, Spec: v1alpha1.AgentSpec{
		Runtime:      &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex},
		Tools:        []v1alpha1.AgentTool{{Name: "price"}, {Name: "file_read"}},
		Coordination: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"remember"}},
	}}, metav1.CreateOptions{}))
	policy := host.Policy("cheap", "object.spec.toolName != 'price' || object.spec.strings['of'] != 'gold'", "gold is not for us")
	policy.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	host.Install(t, p.Kubernetes(t), policy, host.Deny("cheap"))
	p.Run("probe", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef, s.Schedule = v1alpha1.TaskTypeAgent, nil, "x", &v1alpha1.NamespacedReference{Name: "equipped"}, "@yearly"
	})
	kit.Await(t, "the policy in force", func() bool {
		c, err := p.API().ToolCalls("default").Create(t.Context(), &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
			TaskName: "probe", ToolName: "price", Arguments: &apiextensionsv1.JSON{Raw: []byte(`{"of":"gold"}`)},
		}}, metav1.CreateOptions{DryRun: []string{"All"}})
		return err == nil && c.Status.Verdict == v1alpha1.ToolCallDenied && c.Spec.Source == v1alpha1.ToolSourceCustom
	})

	p.Run("tools", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "equipped"}
		s.AgentRuntime = &v1alpha1.TaskAgentRuntime{DisallowedTools: []string{"search_transcript"}}
		s.Prompt = strings.Join([]string{
			"do: platform-tools", "do: say |", `do: platform price {"of":"wood"}`, `do: platform price {}`, `do: platform price {"of":"gold"}`, `do: platform search_transcript {"query":"x"}`,
			`do: permit-platform price`, `do: platform remember {"title":"Wood","content":"Wood costs 3."}`, "do: shell env; cat /proc/*/environ",
		}, "\n")
	})
	asked := p.waiting("tools")
	if s := asked.Spec; s.TargetTool != "remember" || !asked.Status.ArgumentsExact || !strings.Contains(string(s.TargetArgsPreview.Raw), "Wood costs 3.") {
		t.Errorf("people are asked about %+v", s)
	}
	kit.Must[*v1alpha1.Approval](t)(p.As(t, "boss", "platform-approver").Approvals("default").Decide(t.Context(), asked.Name, &v1alpha1.ApprovalDecision{
		Spec: v1alpha1.ApprovalDecisionSpec{Decision: "approve"},
	}, metav1.CreateOptions{}))
	p.AwaitPhase("tools", v1alpha1.TaskSucceeded)
	got := (&asking{Platform: server, t: t}).messages("tools")
	names, rest, _ := strings.Cut(got, "|")
	if list := strings.Fields(names); !slices.Contains(list, "price") || !slices.Contains(list, "recall_memory") || slices.Contains(list, "file_read") || slices.Contains(list, "search_transcript") || slices.Contains(list, "delegate_task") {
		t.Errorf("it is offered %q", names)
	}
	for _, want := range []string{`"price":3`, "invalid_arguments", "gold is not for us", "unknown", "yes\n", "mprop-"} {
		if !strings.Contains(rest, want) {
			t.Errorf("it is not told %q: %s", want, rest)
		}
	}
	if strings.Contains(got, "tool-key-0123456789") {
		t.Error("the agent has the credential of the Tool")
	}
	proposals := kit.Must[*v1alpha1.MemoryProposalList](t)(p.API().MemoryProposals("default").List(t.Context(), metav1.ListOptions{})).Items
	if len(proposals) != 1 || proposals[0].Spec.TaskName != "tools" {
		t.Errorf("proposals: %+v", proposals)
	}
	calls := map[string]int{}
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed} {
		for _, e := range p.EventsOf("tools", typ) {
			if strings.HasPrefix(e.ToolCallID, "platform-") {
				calls[string(typ)+" "+e.ToolName]++
			}
		}
	}
	for what, n := range map[string]int{"ToolCallStarted price": 2, "ToolCallCompleted price": 1, "ToolCallFailed price": 1, "ToolCallStarted remember": 1, "ToolCallCompleted remember": 1} {
		if calls[what] != n {
			t.Errorf("%s: %d times; all: %v", what, calls[what], calls)
		}
	}
}

// TestCodingAgentDelegates: a coding agent gives a part of its work to another one and waits for it, in a pool with one place, which it
// gives away meanwhile.
func TestCodingAgentDelegates(t *testing.T) {
	program := kit.Bin(t, "scriptedagent")
	p, _ := standalone.WithModel(t, askedScript, func(o *standalone.Options) {
		o.AgentPrograms, o.Pools.MaxResidentSessions, o.Pools.MaxRunningPrompts = []string{"codex=" + program}, 1, 1
	})
	for name, c := range map[string]*v1alpha1.AgentCoordination{
		"chief": {Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}}}, "clerk": nil,
	} {
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Coordination: c,
		}}, metav1.CreateOptions{}))
	}
	p.Run("whole", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "chief"}
		s.Prompt = "do: delegate clerk do: say a part\ndo: say ."
	})
	p.AwaitPhase("whole", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("whole"); !strings.Contains(got, "a part") {
		t.Errorf("it says %q", got)
	}
	children := p.Below("whole")
	if len(children) != 1 || children[0].Spec.Type != v1alpha1.TaskTypeAgent || children[0].Status.Phase != v1alpha1.TaskSucceeded {
		t.Errorf("below it are %+v", children)
	}
}

// TestCodingAgentImpatient: an agent that asks again and again for what people decide, and waits for nothing, does not flood them.
func TestCodingAgentImpatient(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	program := kit.Bin(t, "scriptedagent")
	p, _ := standalone.WithModel(t, askedScript, func(o *standalone.Options) { o.AgentPrograms = []string{"codex=" + program} })
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "hasty"}, Spec: v1alpha1.AgentSpec{
		Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Coordination: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"remember"}},
	}}, metav1.CreateOptions{}))
	p.Run("hurries", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "hasty"}
		s.Prompt = `do: platform-given-up 150 remember {"title":"T","content":"c"}` + "\ndo: tool read x\ndo: await-cancel waiting"
	})
	kit.Await(t, "the agent has asked", func() bool { return len(p.EventsOf("hurries", v1alpha1.EventToolCallCompleted)) > 0 })
	list := kit.Must[*v1alpha1.ApprovalList](t)(p.API().Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.taskName=hurries,status.state=pending"}))
	if n := len(list.Items); n == 0 || n > 16 { // as many calls as are made at once: one that was given up goes on
		t.Errorf("%d approvals wait", n)
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "hurries", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	p.AwaitPhase("hurries", v1alpha1.TaskCancelled)
}
